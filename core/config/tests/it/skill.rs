//! Skill files, and heads of SKILL.md: what loads, and what is refused where.

use agents_config::{KINDS, kind_of, load_agent_skill, load_skill};
use agents_domain::skill::{McpTransport, SandboxPolicy, SkillDefinition};
use serde_json::{Value, json};

use crate::lines;

/// The specification's toolkit, in its own spellings.
const TOOLKIT: &str = r#"cleveragents:
  version: "3.0"

skill:
  name: local/devops-toolkit
  description: "Full-stack development tools"
  tools:
    - local/run-migrations
    - name: local/deploy-staging
      override:
        capability:
          human_approval_required: true
  includes:
    - local/file-ops
    - name: local/github
      tool_overrides:
        - tool: local/create-github-issue
          override:
            capability:
              write_scope: [github:issues:org-only]
  mcp_servers:
    - name: linear
      command: "npx @anthropic/mcp-linear"
      env:
        LINEAR_API_KEY: "${LINEAR_API_KEY}"
      overrides:
        - tool: create_issue
          writes: true
          write_scope: [linear:issues]
        - tool: list_issues
          read_only: true
  agent_skills:
    - path: ./skills/code-review-checklist
      sandbox_policy: none
  builtins:
    - group: shell_operations
  anonymous_tools:
    - description: "One-off cleanup"
      input_schema: {type: object, properties: {directory: {type: string}}}
      capability: {writes: true, checkpointable: true, checkpoint_scope: file}
      code: |
        return {"removed": []}
"#;

fn load(text: &str) -> SkillDefinition {
    load_skill(text, "s.yaml").unwrap_or_else(|p| panic!("{}", lines(&p))).value
}

fn refused(text: &str) -> String {
    lines(&load_skill(text, "s.yaml").unwrap_err())
}

// SKILLC-001, SKILLC-002, SKILLC-004, SKILLC-005, SKILLC-009, SKILLC-010, SKILLC-011, MCP-011, MCP-017, G-35, G-37, G-40
#[test]
fn the_toolkit_of_the_specification_loads_in_its_own_spellings() {
    let skill = load(TOOLKIT);
    assert_eq!(skill.name.to_string(), "local/devops-toolkit");
    assert_eq!(skill.tools[0].name, "local/run-migrations");
    assert_eq!(skill.tools[1].overrides.capability.human_approval_required, Some(true));
    assert_eq!(skill.includes[0].name.to_string(), "local/file-ops");
    let said = &skill.includes[1].tool_overrides[0];
    assert_eq!(
        said.overrides.capability.write_scope.as_deref(),
        Some(&["github:issues:org-only".to_owned()][..])
    );
    let linear = &skill.mcp_servers[0];
    assert_eq!((linear.transport, linear.command.as_deref()), (McpTransport::Stdio, Some("npx")));
    assert_eq!(linear.args, ["@anthropic/mcp-linear"]);
    // The value of a variable is not in it.
    assert_eq!(linear.env["LINEAR_API_KEY"], "${LINEAR_API_KEY}");
    assert_eq!(linear.overrides[1].capability.read_only, Some(true));
    assert_eq!(skill.agent_skills[0].sandbox_policy, SandboxPolicy::None);
    assert_eq!(skill.builtins[0].group, "shell_operations");
    assert_eq!(skill.inline_tools[0].name, "inline_1");
    assert_eq!(skill.inline_tools[0].capability.writes, Some(true));
    // Flat, it is the same.
    let flat: String = TOOLKIT
        .lines()
        .skip(4)
        .map(|line| format!("{}\n", line.strip_prefix("  ").unwrap_or(line)))
        .collect();
    assert_eq!(load(&flat), skill);
}

// SKILLC-002: three ways to say the same.
#[test]
fn a_tool_is_named_in_three_ways() {
    let tools = |text: &str| load(&format!("name: s\ntools:\n{text}")).tools;
    let flat = tools("  - {name: local/a, description: X, writes: true, checkpointable: false}\n");
    let nested = tools(
        "  - name: local/a\n    override: {description: X, capability: {writes: true, checkpointable: false}}\n",
    );
    assert_eq!(flat, nested);
    assert_eq!(tools("  - local/a\n"), tools("  - name: local/a\n"));
}

// SKILLC-004
#[test]
fn an_inline_tool_may_say_what_it_does_beside_its_name() {
    let text = "name: local/text\ninline_tools:\n  - name: word_count\n    source: custom\n    code: |\n      def run(input_data):\n          return 1\n    writes: false\n    side_effects: network_call\n";
    let tool = &load(text).inline_tools[0];
    assert_eq!(tool.capability.writes, Some(false));
    assert_eq!(tool.capability.side_effects.as_deref(), Some(&["network_call".to_owned()][..]));
    let twice = format!("{text}  - {{name: word_count, code: x}}\n");
    assert_eq!(
        refused(&twice),
        "10:12 inline_tools[1].name: `word_count` is there twice in `inline_tools`; the first is on line 3\n"
    );
}

// SKILLC-001, SKILLC-016, SKILLC-017, MCP-011, MCP-014, TOOL-009, TOOL-039
#[test]
fn what_is_wrong_is_refused_at_its_place() {
    assert_eq!(
        load("name: local/empty\n"),
        serde_json::from_value::<SkillDefinition>(json!({ "name": "local/empty" })).unwrap()
    );
    let cases = [
        ("description: x\ntools: [a]\n", "1:1 name: the key `name` is missing\n"),
        ("name: a\ntols: [b]\n", "2:1 tols: there is no key `tols`: did you mean `tools`?\n"),
        (
            "name: a\nmcp_servers:\n  - {name: x, transport: streamable-http}\n",
            "3:6 mcp_servers[0].url: `transport: streamable-http` needs a `url`\n",
        ),
        (
            "name: a\nmcp_servers:\n  - {name: x, transport: stdio, url: 'https://x'}\n",
            "3:6 mcp_servers[0].command: `transport: stdio` needs a `command`\n3:33 mcp_servers[0].url: `url` has no meaning for `transport: stdio`\n",
        ),
        (
            "name: a\nmcp_servers:\n  - {name: x, url: 'ftp://x'}\n",
            "3:20 mcp_servers[0].url: `ftp://x` is no address: it starts with `https://` or `http://`\n",
        ),
        (
            "name: a\nmcp_servers: [{command: x, overrides: [{tool: y, read_only: true, writes: true}]}]\n",
            "2:75 mcp_servers[0].overrides[0].writes: a tool cannot both write and be `read_only`\n",
        ),
        (
            "name: a\ntools:\n  - {name: b, override: {input_schema: {}}}\n",
            "3:26 tools[0].override.input_schema: there is no key `input_schema`: the keys here are description, capability\n",
        ),
        ("name: a\nincludes: [local/a]\n", "2:12 includes[0].name: a skill cannot include itself\n"),
        (
            "name: a\nagent_skills: [{path: x, sandbox_policy: magic}]\n",
            "2:42 agent_skills[0].sandbox_policy: `agent_skills[0].sandbox_policy` must be one of `none`, `process`, `container`, not the text `magic`\n",
        ),
    ];
    for (text, expected) in cases {
        let told = refused(text);
        assert!(told.contains(expected.lines().next().unwrap()), "{text}\n{told}");
        if expected.lines().count() > 1 {
            assert_eq!(told, expected, "{text}");
        }
    }
}

// MCP-011, G-35: what is not said is inferred.
#[test]
fn transport_and_name_of_a_server_are_inferred() {
    let server = |text: &str| {
        let server = load(&format!("name: a\nmcp_servers:\n  - {text}\n")).mcp_servers.remove(0);
        (server.name, server.transport)
    };
    assert_eq!(
        server("{url: 'https://mcp.example.org/v1'}"),
        ("mcp.example.org".to_owned(), McpTransport::StreamableHttp)
    );
    assert_eq!(
        server("{command: npx, args: ['-y', '@acme/mcp-linear']}"),
        ("mcp-linear".to_owned(), McpTransport::Stdio)
    );
    assert_eq!(server("{command: /opt/bin/files}"), ("files".to_owned(), McpTransport::Stdio));
}

// MCP-017: a secret that stands in the file is warned of.
#[test]
fn a_secret_in_the_file_is_warned_of() {
    let text = "name: a\nmcp_servers:\n  - {name: x, command: y, env: {API_TOKEN: abcdef, MODE: fast, KEY2: '${KEY2}'}}\n";
    let hints = lines(&load_skill(text, "s.yaml").unwrap().hints);
    assert_eq!(hints.lines().count(), 1, "{hints}");
    assert!(
        hints.contains("mcp_servers[0].env.API_TOKEN: this looks like a secret")
            && hints.contains("`${API_TOKEN}`")
    );
}

#[test]
fn the_kind_of_a_skill_is_known_and_what_it_includes_is_a_mention() {
    assert_eq!(kind_of(TOOLKIT).map(|kind| kind.name), Some("skill"));
    assert!(KINDS.iter().any(|kind| kind.name == "skill"));
    let mentions = agents_config::editing::mentions(TOOLKIT);
    let named: Vec<&str> = mentions.iter().map(|mention| mention.name.as_str()).collect();
    assert_eq!(named, ["local/devops-toolkit", "local/file-ops", "local/github"]);
    let at = TOOLKIT.find("local/file-ops").unwrap() + 3;
    let names = |_| vec![("local/file-ops".to_owned(), None)];
    let found = agents_config::editing::complete(TOOLKIT, at, names);
    assert!(found.iter().any(|completion| completion.label == "local/file-ops"), "{found:?}");
}

// SKILLMD-001, SKILLMD-002
#[test]
fn the_head_of_a_skill_md_is_read_and_checked() {
    let text = "---\nname: code-review\ndescription: Reviews code. Use it before a merge.\nlicense: MIT\nallowed-tools: Read Grep, Bash(git diff:*)\nmetadata:\n  version: 1\n---\n# How\n";
    let skill = load_agent_skill(text, "SKILL.md").unwrap();
    assert_eq!(skill.hints, []);
    assert_eq!(skill.value.name, "code-review");
    assert_eq!(skill.value.allowed_tools.unwrap(), ["Read", "Grep", "Bash(git diff:*)"]);
    assert_eq!(skill.value.metadata["version"], Value::from(1));
    let refused = |text: &str| lines(&load_agent_skill(text, "SKILL.md").unwrap_err());
    assert!(refused("# no head\n").contains("must begin with a line `---`"));
    assert!(refused("---\nname: a\n").contains("must begin with a line `---`"));
    assert_eq!(refused("---\nname: a\n---\n"), "2:1 description: the key `description` is missing\n");
    assert!(
        refused("---\nname: Code Review\ndescription: x\n---\n")
            .starts_with("2:7 name: `Code Review` is no name")
    );
    assert!(refused("---\nname: a\ndescription: ''\n---\n").contains("`description` is empty"));
    assert!(
        refused(&format!("---\nname: a\ndescription: {}\n---\n", "x".repeat(1025)))
            .contains("longer than 1024")
    );
}
