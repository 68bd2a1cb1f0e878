use serde_json::{Value, json};

use super::*;
use crate::ports::tool::{Capability, ToolSpec};

fn name(text: &str) -> QualifiedName {
    text.parse().unwrap()
}

fn skill(value: Value) -> SkillDefinition {
    serde_json::from_value(value).unwrap()
}

fn tool(name: &str, writes: bool) -> (String, KnownTool) {
    let capability =
        Capability { read_only: !writes, writes, checkpointable: writes, ..Capability::default() };
    let spec = ToolSpec {
        name: name.to_owned(),
        description: format!("What {name} does"),
        input: json!({ "type": "object" }),
        group: None,
        capability: capability.clone(),
    };
    let offered = Offered {
        capability,
        checkpoint_scope: writes.then_some(CheckpointScope::File),
        write_scope: Vec::new(),
    };
    let source = if name.starts_with("local/") { ToolSource::Custom } else { ToolSource::Builtin };
    (name.to_owned(), KnownTool { spec, offered, source, category: "edit".to_owned() })
}

fn offers(tools: &[&str]) -> DiscoveredServer {
    let tools = tools.iter().map(|name| McpTool {
        name: (*name).to_owned(),
        input: json!({ "type": "object" }),
        ..McpTool::default()
    });
    DiscoveredServer { tools: tools.collect(), ..DiscoveredServer::default() }
}

fn discovered(servers: &[(&str, &[&str])]) -> Discovered {
    let servers = servers.iter().map(|(name, tools)| ((*name).to_owned(), offers(tools)));
    Discovered { servers: servers.collect(), ..Discovered::default() }
}

/// The skills of the specification's example: files, git, GitHub, and one that has them all.
fn world() -> Known {
    let mut known = Known::default();
    let files = ["read_file", "write_file", "edit_file", "delete_file", "move_file", "copy_file"];
    let folders = ["create_directory", "list_directory", "delete_directory"];
    let git = ["git_status", "git_diff", "git_log", "git_blame"];
    let reading = ["read_file", "list_directory", "git_status", "git_diff", "git_log", "git_blame"];
    for (group, names) in
        [("file_operations", &files[..]), ("directory_operations", &folders), ("git_operations", &git)]
    {
        for bare in names {
            let (whole, tool) = tool(&format!("builtin/{bare}"), !reading.contains(bare));
            known.tools.insert(whole.clone(), tool);
            known.groups.entry(group.to_owned()).or_default().push(whole);
        }
    }
    known.tools.extend([tool("local/run-migrations", true), tool("local/deploy-staging", true)]);
    let github = json!({
        "name": "local/github",
        "mcp_servers": [{
            "name": "github", "transport": "stdio", "command": "npx",
            "overrides": [{ "tool": "create_pr", "human_approval_required": true, "write_scope": ["github:pulls"] }],
        }],
    });
    let skills = [
        (
            json!({ "name": "local/file-ops", "builtins": [{ "group": "file_operations" }, { "group": "directory_operations" }] }),
            Discovered::default(),
        ),
        (
            json!({ "name": "local/git-ops", "builtins": [{ "group": "git_operations" }] }),
            Discovered::default(),
        ),
        (
            github,
            discovered(&[("github", &["create_issue", "create_pr", "list_repos", "get_file_contents"])]),
        ),
    ];
    for (definition, discovered) in skills {
        let definition = skill(definition);
        known.skills.insert(definition.name.clone(), (definition, discovered));
    }
    known
}

fn full_stack() -> SkillDefinition {
    skill(json!({
        "name": "local/full-stack-dev",
        "includes": [{ "name": "local/file-ops" }, { "name": "local/git-ops" }, { "name": "local/github" }],
        "agent_skills": [{ "path": "./skills/code-review-checklist" }],
        "tools": [{ "name": "local/run-migrations" }, { "name": "local/deploy-staging" }],
    }))
}

fn calls(flat: &Flat) -> Vec<&str> {
    flat.tools.iter().map(|tool| tool.call.as_str()).collect()
}

// SKILLC-007, SKILL-023, SKILL-022: the specification's own example has 20 tools.
#[test]
fn the_flattened_set_is_that_of_all_included_skills_in_their_order_then_its_own() {
    let mut found = Discovered::default();
    let review = AgentSkill {
        name: "code-review-checklist".to_owned(),
        description: "How to review".to_owned(),
        license: None,
        compatibility: None,
        metadata: BTreeMap::new(),
        allowed_tools: Some(vec!["Read".to_owned()]),
    };
    found.agent_skills.insert("./skills/code-review-checklist".to_owned(), review);
    let flat = flatten(&full_stack(), &found, &world());
    assert_eq!(flat.missing, Vec::<String>::new());
    assert_eq!(
        calls(&flat),
        [
            "read_file",
            "write_file",
            "edit_file",
            "delete_file",
            "move_file",
            "copy_file",
            "create_directory",
            "list_directory",
            "delete_directory",
            "git_status",
            "git_diff",
            "git_log",
            "git_blame",
            "create_issue",
            "create_pr",
            "list_repos",
            "get_file_contents",
            "local/run-migrations",
            "local/deploy-staging",
            "code-review-checklist",
        ]
    );
    assert_eq!(flat.tools.iter().filter(|tool| tool.direct).count(), 3);
    // SKILLC-014
    let counted = summary(&flat.tools);
    assert_eq!((counted.total_tools, counted.read_only + counted.writes), (20, 20));
    assert_eq!((counted.read_only, counted.checkpointable, counted.requires_approval), (9, 9, 1));
    // SKILL-019, SKILL-020
    let told: Vec<_> = ["create_pr", "list_repos", "write_file", "code-review-checklist"]
        .map(|call| flat.find(call).map(|tool| (tool.source_text(), tool.checkpoint())).unwrap())
        .to_vec();
    assert_eq!(
        told,
        [
            ("mcp:github".to_owned(), Some("no")),
            ("mcp:github".to_owned(), None),
            ("builtin".to_owned(), Some("file")),
            ("agent_skill".to_owned(), None),
        ]
    );
}

// SKILLC-008, SKILL-024, G-43
#[test]
fn tools_of_one_name_both_stay_and_are_called_with_their_skill_before_them() {
    let mut known = world();
    let linear = skill(json!({
        "name": "local/linear",
        "mcp_servers": [{ "name": "linear", "transport": "stdio", "command": "x" }],
    }));
    known.skills.insert(linear.name.clone(), (linear, discovered(&[("linear", &["create_issue"])])));
    let both = skill(
        json!({ "name": "local/both", "includes": [{ "name": "local/github" }, { "name": "local/linear" }] }),
    );
    let flat = flatten(&both, &Discovered::default(), &known);
    assert_eq!(
        calls(&flat),
        [
            "local/github.create_issue",
            "create_pr",
            "list_repos",
            "get_file_contents",
            "local/linear.create_issue"
        ]
    );
    for call in ["local/linear.create_issue", "linear.create_issue"] {
        assert_eq!(flat.find(call).unwrap().skill, name("local/linear"), "{call}");
    }
    assert_eq!(
        flat.find("create_issue").unwrap_err(),
        "`create_issue` is ambiguous: call local/github.create_issue or local/linear.create_issue"
    );
    assert_eq!(flat.find("nothing").unwrap_err(), "there is no tool `nothing`");

    // Its own tool wins the plain name.
    let own = skill(json!({
        "name": "local/own", "includes": [{ "name": "local/github" }],
        "inline_tools": [{ "name": "create_issue", "code": "result = 1" }],
    }));
    let flat = flatten(&own, &Discovered::default(), &known);
    assert_eq!(flat.find("create_issue").unwrap().source, ToolSource::Custom);
    assert_eq!(flat.find("local/github.create_issue").unwrap().source, ToolSource::Mcp);

    // Two servers of one skill are told apart by their names.
    let two = skill(json!({
        "name": "local/two",
        "mcp_servers": [
            { "name": "a", "transport": "stdio", "command": "x" },
            { "name": "b", "transport": "stdio", "command": "x" },
        ],
    }));
    let flat = flatten(&two, &discovered(&[("a", &["go"]), ("b", &["go"])]), &known);
    assert_eq!(calls(&flat), ["a.go", "b.go"]);
    // A skill that is reached twice is there once.
    let twice = skill(
        json!({ "name": "local/t", "includes": [{ "name": "local/both" }, { "name": "local/github" }] }),
    );
    known.skills.insert(both.name.clone(), (both, Discovered::default()));
    assert_eq!(flatten(&twice, &Discovered::default(), &known).tools.len(), 5);
}

// SKILLC-006
#[test]
fn a_circle_of_includes_is_found_with_its_way() {
    let mut known = Known::default();
    for (own, other) in
        [("local/b", "local/c"), ("local/c", "local/a"), ("local/x", "local/x2"), ("local/x2", "local/x")]
    {
        let definition = skill(json!({ "name": own, "includes": [{ "name": other }] }));
        known.skills.insert(definition.name.clone(), (definition, Discovered::default()));
    }
    let a = skill(json!({ "name": "local/a", "includes": [{ "name": "local/x" }, { "name": "local/b" }] }));
    let way = cycle(&a, &known).unwrap();
    assert_eq!(way, ["local/a", "local/b", "local/c", "local/a"].map(name));
    assert_eq!(
        cycle(&skill(json!({ "name": "local/z", "includes": [{ "name": "local/x" }] })), &known),
        None
    );
    // One that is there nevertheless does not hang.
    assert_eq!(flatten(&a, &Discovered::default(), &known).tools, []);
}

// SKILLC-012, MCP-010, TOOL-038: an override holds where it is said and nowhere else.
#[test]
fn overrides_hold_in_the_skill_that_says_them() {
    let known = world();
    let outer = skill(json!({
        "name": "local/outer",
        "includes": [{
            "name": "local/github",
            "tool_overrides": [
                { "tool": "create_issue", "override": { "description": "Ours", "capability": { "write_scope": ["github:org"], "checkpointable": true } } },
                { "tool": "none", "override": {} },
            ],
        }],
        "tools": [{ "name": "local/run-migrations", "override": { "capability": { "read_only": true } } }],
    }));
    let flat = flatten(&outer, &Discovered::default(), &known);
    let issue = flat.find("create_issue").unwrap();
    assert_eq!((issue.description.as_str(), issue.checkpoint()), ("Ours", Some("file")));
    assert_eq!(issue.offered.write_scope, ["github:org"]);
    assert_eq!(flat.warnings, ["`local/github` has no tool `none` to override"]);
    // Saying that it reads only settles that it does not write.
    let run = flat.find("local/run-migrations").unwrap();
    assert!(run.offered.capability.read_only && !run.offered.capability.writes);

    let (github, found) = &known.skills[&name("local/github")];
    let inner = flatten(github, found, &known);
    let issue = inner.find("create_issue").unwrap();
    assert_eq!((issue.checkpoint(), issue.offered.write_scope.len()), (Some("no"), 0));
    let pull = inner.find("create_pr").unwrap();
    assert!(pull.offered.capability.human_approval_required && pull.offered.capability.writes);
}

// SKILLC-003, SKILLC-005, SKILLC-009, SKILLC-016
#[test]
fn what_is_named_and_not_there_is_told() {
    let flat = flatten(
        &skill(json!({
            "name": "local/a", "tools": [{ "name": "local/none" }], "includes": [{ "name": "local/gone" }],
            "builtins": [{ "group": "magic" }],
        })),
        &Discovered::default(),
        &world(),
    );
    assert_eq!(
        flat.missing,
        [
            "the skill `local/gone`, which `local/a` includes",
            "the group of built-in tools `magic`",
            "the tool `local/none`",
        ]
    );
    let empty = flatten(&skill(json!({ "name": "local/empty" })), &Discovered::default(), &world());
    assert_eq!(empty, Flat::default());
}

// MCP-009, G-34
#[test]
fn what_an_mcp_tool_may_do_is_inferred_from_annotations_then_from_words_of_its_name() {
    let read_only = |name: &str, hints: Value| {
        let hints = serde_json::from_value(hints).unwrap();
        let offered = infer(&McpTool { name: name.to_owned(), hints, ..McpTool::default() });
        assert_eq!(offered.capability.writes, !offered.capability.read_only, "{name}");
        offered.capability.read_only
    };
    for (name, expected) in [
        ("read_file", true),
        ("get-settings", true),
        ("listAssets", true),
        ("searchHTTPLogs", true),
        ("find", true),
        // `set` inside another word is none.
        ("get_settings", true),
        ("write_file", false),
        ("createIssue", false),
        ("update", false),
        ("delete_dir", false),
        ("set_value", false),
        // A word that writes wins.
        ("get_or_create_user", false),
        ("readAndUpdate", false),
        // No word at all is taken to write.
        ("push", false),
        ("thread_dump", false),
        ("targets", false),
    ] {
        assert_eq!(read_only(name, json!({})), expected, "{name}");
    }
    assert!(read_only("delete_nothing", json!({ "read_only": true })));
    assert!(!read_only("get", json!({ "read_only": false })));
    assert!(!read_only("get", json!({ "destructive": true })));
    assert!(!read_only("get", json!({ "read_only": true, "destructive": true })));
}

// MCP-012
#[test]
fn a_filter_includes_then_excludes() {
    let filter = |value| serde_json::from_value::<ToolFilter>(value).unwrap();
    let all = ["a", "b", "c"];
    let passing = |filter: ToolFilter| all.into_iter().filter(|tool| filter.passes(tool)).collect::<String>();
    assert_eq!(passing(ToolFilter::default()), "abc");
    assert_eq!(passing(filter(json!({ "include": ["a", "b"], "exclude": ["b"] }))), "a");
    assert_eq!(passing(filter(json!({ "exclude": ["b"] }))), "ac");
    assert_eq!(passing(filter(json!({ "include": [] }))), "");
}

// SKILLMD-009: the head, then what the skill's file says, then what is said where it is included.
#[test]
fn what_an_agent_skill_may_do_is_said_in_three_places_the_nearest_wins() {
    let head = |metadata: Value, allowed: Option<Vec<&str>>| AgentSkill {
        name: "a".to_owned(),
        description: "b".to_owned(),
        license: None,
        compatibility: None,
        metadata: serde_json::from_value(metadata).unwrap(),
        allowed_tools: allowed.map(|tools| tools.into_iter().map(str::to_owned).collect()),
    };
    let writes = |skill: &AgentSkill| skill.offered().capability.writes;
    assert!(writes(&head(json!({}), None)));
    assert!(!writes(&head(json!({}), Some(vec!["Read", "Grep"]))));
    assert!(writes(&head(json!({}), Some(vec!["Read", "Bash(docker:*)"]))));
    assert!(!writes(&head(json!({ "writes": "false" }), Some(vec!["Bash"]))));
    let definition = skill(
        json!({ "name": "local/s", "agent_skills": [{ "path": "a", "capability": { "writes": true } }] }),
    );
    let found = Discovered {
        agent_skills: BTreeMap::from([("a".to_owned(), head(json!({ "writes": false }), None))]),
        ..Discovered::default()
    };
    let mut known = Known::default();
    assert!(flatten(&definition, &found, &known).tools[0].offered.capability.writes);
    known.skills.insert(definition.name.clone(), (definition, found));
    let outer = skill(json!({
        "name": "local/o",
        "includes": [{ "name": "local/s", "tool_overrides": [{ "tool": "a", "override": { "capability": { "read_only": true } } }] }],
    }));
    assert!(!flatten(&outer, &Discovered::default(), &known).tools[0].offered.capability.writes);
}

// SKILLMD-003
#[test]
fn the_block_of_the_system_prompt_names_each_skill_and_its_tool() {
    assert_eq!(prompt_block(&[]), "");
    let skill = AvailableSkill {
        name: "deploy-to-staging".to_owned(),
        description: "Deploys <the branch>\n& tells".to_owned(),
        tool: "local/deploy-staging".to_owned(),
    };
    assert_eq!(
        prompt_block(&[skill]),
        "<available_agent_skills>\n  <agent_skill>\n    <name>deploy-to-staging</name>\n    <description>Deploys &lt;the branch&gt; &amp; tells</description>\n    <tool>local/deploy-staging</tool>\n  </agent_skill>\n</available_agent_skills>"
    );
}
