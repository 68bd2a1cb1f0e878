//! Action files: what loads, and what is refused where.

use agents_config::{Severity, kind_of, load_action, to_error};
use agents_domain::action::{ActionState, ArgumentType};
use agents_domain::profile::built_in_profiles;
use serde_json::json;

use crate::{lines, pointed_at};

const LEAST: &str = "\
name: local/tidy
description: Tidy up
strategy_actor: builtin/fix-diagnostics
execution_actor: builtin/fix-diagnostics
definition_of_done: Nothing is left to tidy
";

/// The problems of a file that must not load.
fn refused(text: &str) -> String {
    lines(&load_action(text, "a.yaml").unwrap_err())
}

/// The hints of a file that must load.
fn hints(text: &str) -> String {
    lines(&load_action(text, "a.yaml").unwrap_or_else(|p| panic!("{}", lines(&p))).hints)
}

/// The smallest file with more at its end.
fn with(more: &str) -> String {
    format!("{LEAST}{more}")
}

// ACT-002, ACT-003, ACTION-003
#[test]
fn the_smallest_action_has_the_defaults() {
    let loaded = load_action(LEAST, "a.yaml").unwrap();
    assert!(loaded.hints.is_empty());
    let action = loaded.value;
    assert_eq!(action.name.to_string(), "local/tidy");
    assert!(
        action.reusable && !action.read_only && action.arguments.is_empty() && action.invariants.is_empty()
    );
    assert_eq!(action.state, ActionState::Available);
    assert_eq!(
        (action.estimation_actor, action.automation_profile, action.safety_profile),
        (None, None, None)
    );
}

// ACT-001, ACT-003, ACT-004: every key there is.
#[test]
fn a_whole_action_loads() {
    let text = r#"---
# Raises coverage.
name: coverage
description: "Raise coverage to {{ target }}"
long_description: |
  Finds what is not tested
  and writes tests for it.
strategy_actor: anthropic/claude-3.5-sonnet
execution_actor: prod:acme/builder
estimation_actor: local/estimator
review_actor: local/reviewer
apply_actor: local/applier
invariant_actor: local/reconciler
definition_of_done: |
  Coverage is at least {{ target }} percent
  {% if focus is defined %}in {{ focus | join(", ") }}{% endif %}
reusable: false
read_only: true
state: archived
arguments:
  - {name: target, type: integer, required: true, description: Percent, min_value: 1, max_value: 100}
  - name: command
    type: string
    default: "pytest --cov"
    validation_pattern: "^[a-z]+( --[a-z]+)*$"
  - {name: ratio, type: float, default: 1, min_value: 0.5}
  - {name: fast, type: boolean, default: false}
  - {name: focus, type: list, default: ["**/core/**"]}
automation_profile: trusted
invariants:
  - Tests touch no network
safety_profile:
  max_cost_per_plan: 2.5
"#;
    let loaded = load_action(text, "a.yaml").unwrap_or_else(|p| panic!("{}", lines(&p)));
    assert_eq!(lines(&loaded.hints), "");
    let action = loaded.value;
    assert_eq!(action.name.to_string(), "local/coverage"); // ACT-005
    assert_eq!(action.execution_actor.to_string(), "prod:acme/builder");
    assert_eq!(action.arguments.len(), 5);
    assert_eq!(action.arguments[0].argument_type, ArgumentType::Integer);
    assert_eq!(action.arguments[0].max_value, Some(100.0));
    assert_eq!(action.arguments[4].default, Some(json!(["**/core/**"])));
    assert_eq!(action.safety_profile, Some(json!({ "max_cost_per_plan": 2.5 })));
    assert_eq!((action.state, action.reusable, action.read_only), (ActionState::Archived, false, true));
}

#[test]
fn json_is_taken_too() {
    let json = json!({
        "name": "local/a", "description": "x \u{1F600} / \"q\"", "strategy_actor": "local/s", "execution_actor": "local/e",
        "definition_of_done": "done", "arguments": [{ "name": "n", "type": "integer", "default": -3 }],
    });
    for text in [json.to_string(), serde_json::to_string_pretty(&json).unwrap().replace("  ", "\t")] {
        let action = load_action(&text, "a.json").unwrap_or_else(|p| panic!("{}", lines(&p))).value;
        assert_eq!(action.description, "x \u{1F600} / \"q\"");
        assert_eq!(action.arguments[0].default, Some(json!(-3)));
    }
    let escaped = json.to_string().replace('\u{1F600}', "\\ud83d\\ude00").replace('/', "\\/");
    assert_eq!(load_action(&escaped, "a.json").unwrap().value.description, "x \u{1F600} / \"q\"");
}

// Ruling 12, CONF-029
#[test]
fn other_spellings_load_with_a_hint_each() {
    let text = "\
action:
  cleveragents: {version: \"3.0\"}
  name: local/fix-bug
  description: Fix it
  strategy-actor: anthropic/claude-3.5-sonnet
  execution_actor: anthropic/claude-3.5-sonnet
  definition-of-done: It is fixed
  args:
    - name: what
      type: str
    - name: hard
      type: bool
    - name: times
      type: int
";
    assert_eq!(
        hints(&text.replace("  cleveragents: {version: \"3.0\"}\n", "")),
        "1:1 : `action:` around the file is not needed: its keys can stand at the top
4:3 strategy-actor: `strategy-actor` is usually written `strategy_actor`
6:3 definition-of-done: `definition-of-done` is usually written `definition_of_done`
7:3 args: `args` is usually written `arguments`
9:13 arguments[0].type: the type `str` is usually written `string`
11:13 arguments[1].type: the type `bool` is usually written `boolean`
13:13 arguments[2].type: the type `int` is usually written `integer`
"
    );
    assert!(load_action(text, "a.yaml").is_ok());
    for version in
        ["cleveragents:\n  version: \"3.0\"\n", "cleveragents.version: 3.0\n", "cleveragents: {version: 3}\n"]
    {
        assert_eq!(hints(&with(version)), "");
    }
    assert_eq!(
        refused(&with("cleveragents: {version: \"4.0\"}\n")),
        "6:25 cleveragents.version: this program reads version \"3.0\", not the text `4.0`\n"
    );
}

#[test]
fn two_spellings_of_one_key_are_refused() {
    assert_eq!(
        refused(&with("arguments: []\nargs: []\n")),
        "7:1 args: `args` and `arguments` mean the same: keep one\n"
    );
}

// ACT-002, ACTION-001, ACTION-006
#[test]
fn unknown_and_missing_keys_are_all_reported_at_once() {
    assert_eq!(
        refused("name: local/a\ndescripton: x\nexecution_actor: local/e\narguments:\n  - nmae: x\n    type: integre\n"),
        "1:1 description: the key `description` is missing
1:1 definition_of_done: the key `definition_of_done` is missing
1:1 strategy_actor: the key `strategy_actor` is missing
2:1 descripton: there is no key `descripton`: did you mean `description`?
5:5 arguments[0].nmae: there is no key `nmae`: did you mean `name`?
5:5 arguments[0].name: the key `name` of `arguments[0]` is missing
6:11 arguments[0].type: `arguments[0].type` must be one of `string`, `integer`, `float`, `boolean`, `list`, not the text `integre`: did you mean `integer`?
"
    );
}

#[test]
fn a_value_of_the_wrong_type_is_shown_with_what_would_be_right() {
    let cases = [
        ("reusable: maybe\n", "6:11 reusable: `reusable` must be `true` or `false`, not the text `maybe`\n"),
        (
            "reusable: \"true\"\n",
            "6:11 reusable: `reusable` must be `true` or `false`, not the text `true`: leave the quotes out\n",
        ),
        (
            "long_description: 12\n",
            "6:19 long_description: `long_description` must be a text, not the number 12: put it in quotes\n",
        ),
        (
            "arguments: {a: 1}\n",
            "6:12 arguments: `arguments` must be a list (`- entry` lines), not a mapping\n",
        ),
        ("invariants: [a, [b]]\n", "6:17 invariants[1]: `invariants[1]` must be a text, not a list\n"),
        (
            "arguments:\n  - 7\n",
            "7:5 arguments[0]: `arguments[0]` must be a mapping (`key: value` lines), not the number 7\n",
        ),
        ("state: gone\n", "6:8 state: `state` must be one of `available`, `archived`, not the text `gone`\n"),
        (
            "arguments:\n- {name: n, type: integer, min_value: low}\n",
            "7:39 arguments[0].min_value: `arguments[0].min_value` must be a number, not the text `low`\n",
        ),
        (
            "safety_profile: {max_retries: 1}\n",
            "6:18 safety_profile.max_retries: there is no key `max_retries`: did you mean `max_retries_per_step`?\n",
        ),
    ];
    for (more, expected) in cases {
        assert_eq!(refused(&with(more)), expected);
    }
}

#[test]
fn a_key_with_nothing_behind_it_counts_as_left_out() {
    assert_eq!(hints(&with("arguments:\nlong_description:\ninvariants: ~\n")), "");
    assert_eq!(
        refused(&LEAST.replace("Tidy up", "")),
        "2:12 description: `description` must be a text, not nothing\n"
    );
    assert_eq!(refused(&LEAST.replace("Tidy up", "' '")), "2:14 description: `description` is empty\n");
}

// ACT-005, LSP-002
#[test]
fn bad_names_are_refused_with_their_rule() {
    let problems = load_action(&LEAST.replace("local/tidy", "local/tidy up"), "a.yaml").unwrap_err();
    assert!(
        problems[0]
            .message
            .starts_with("`name`: `local/tidy up` is not a name: it has a character that is not allowed")
    );
    let text = LEAST.replace("execution_actor: builtin/fix-diagnostics", "execution_actor: \"{{ actor }}\"");
    let problems = load_action(&text, "a.yaml").unwrap_err();
    assert_eq!(pointed_at(&text, &problems[0]), "\"{{ actor }}\"");
    assert!(problems[0].message.ends_with("names are plain, without variables"));
}

// ACTION-004
#[test]
fn what_arguments_say_must_fit_together() {
    let argument = |rest: &str| with(&format!("arguments:\n  - {{name: n, {rest}}}\n"));
    let cases = [
        (
            "type: integer, default: \"5\"",
            "7:39 arguments[0].default: the default must be of type integer, not the text `5`",
        ),
        (
            "type: integer, default: 1.5",
            "7:39 arguments[0].default: the default must be of type integer, not the number 1.5",
        ),
        (
            "type: string, default: 5",
            "7:38 arguments[0].default: the default must be of type string, not the number 5: put it in quotes",
        ),
        (
            "type: list, default: a",
            "7:36 arguments[0].default: the default must be of type list, not the text `a`",
        ),
        (
            "type: integer, min_value: 3, max_value: 2",
            "7:55 arguments[0].max_value: `max_value` 2 is less than `min_value` 3",
        ),
        (
            "type: integer, min_value: 3, default: 2",
            "7:53 arguments[0].default: the default 2 is less than `min_value` 3",
        ),
        (
            "type: float, max_value: 3, default: 3.5",
            "7:51 arguments[0].default: the default 3.5 is greater than `max_value` 3",
        ),
        (
            "type: string, validation_pattern: \"^(a\"",
            "7:49 arguments[0].validation_pattern: `validation_pattern` is not a regular expression: unclosed group",
        ),
        (
            "type: string, validation_pattern: ^a$, default: b",
            "7:63 arguments[0].default: the default does not match `validation_pattern` `^a$`",
        ),
    ];
    for (rest, expected) in cases {
        assert_eq!(refused(&argument(rest)), format!("{expected}\n"), "{rest}");
    }
    assert_eq!(
        refused(&with(
            "arguments:\n  - {name: n, type: string}\n  - {name: n, type: list}\n  - {name: a b, type: list}\n"
        )),
        "8:12 arguments[1].name: there are two arguments `n`; the first is on line 7
9:12 arguments[2].name: `a b` is no name of an argument: use letters, digits and `_`
"
    );
    assert_eq!(
        hints(&argument("type: list, min_value: 1, validation_pattern: x, required: true, default: []")),
        "7:41 arguments[0].validation_pattern: `validation_pattern` has no effect on an argument of type list
7:27 arguments[0].min_value: `min_value` has no effect on an argument of type list
7:64 arguments[0].required: an argument with a `default` is never missing: `required` has no effect
"
    );
}

#[test]
fn a_broken_template_is_reported_inside_the_text() {
    let text = LEAST.replace("Tidy up", "Tidy {{ what | upper( }} up");
    let problems = load_action(&text, "a.yaml").unwrap_err();
    assert_eq!(problems[0].range.start.line, 1);
    assert_eq!(problems[0].field_path, "description");
    assert!(
        problems[0].message.starts_with("the template in `description` is not one: unexpected"),
        "{}",
        problems[0]
    );
    let block = LEAST.replace("Nothing is left to tidy", "|\n  All good\n  {% if x %}\n    open {{ x\n  end");
    let problems = load_action(&block, "a.yaml").unwrap_err();
    assert_eq!(
        (problems[0].range.start.line, problems[0].field_path.as_str()),
        (8, "definition_of_done"),
        "{}",
        problems[0]
    );
}

#[test]
fn a_name_that_is_no_argument_is_warned_about_where_it_stands() {
    let more = "arguments:\n  - {name: target, type: integer}\n";
    let text = with(more).replace(
        "Nothing is left to tidy",
        "|\n  First\n    then {{ 1 + targt }} or {% if other.x %}{% endif %}",
    );
    let loaded = load_action(&text, "a.yaml").unwrap();
    let found: Vec<_> =
        loaded.hints.iter().map(|p| (pointed_at(&text, p), p.message.as_str(), p.severity)).collect();
    assert_eq!(
        found,
        [
            ("other", "`other` is no argument of this action", Severity::Warning),
            ("targt", "`targt` is no argument of this action: did you mean `target`?", Severity::Warning),
        ]
    );
}

// CONF-013
#[test]
fn a_profile_that_is_not_built_in_needs_its_full_name() {
    for profile in built_in_profiles() {
        assert_eq!(hints(&with(&format!("automation_profile: {}\n", profile.name))), "");
    }
    assert_eq!(hints(&with("automation_profile: acme/careful\n")), "");
    assert_eq!(
        hints(&with("automation_profile: trustd\n")),
        "6:21 automation_profile: `trustd` is not a built-in profile: did you mean `trusted`?\n"
    );
}

#[test]
fn the_whole_file_has_one_error_with_all_places() {
    let error = to_error(&load_action("name: x\nfoo: 1\n", "dir/a.yaml").unwrap_err());
    assert_eq!(error.message, "dir/a.yaml cannot be used: there are 5 problems in it");
    assert_eq!(error.detail.unwrap().lines().count(), 5);
    assert_eq!(error.data.unwrap()["problems"].as_array().unwrap().len(), 5);
}

#[test]
fn places_of_values_are_kept_for_those_who_know_more() {
    let loaded =
        load_action(&with("arguments:\n  - name: n\n    type: list\n    default: [a]\n"), "a.yaml").unwrap();
    let problem = loaded.problem(Severity::Error, "strategy_actor", "there is no actor `x`");
    assert_eq!(problem.to_string(), "a.yaml:3:17: there is no actor `x`");
    assert_eq!(loaded.place("arguments[0].default[0]").unwrap().start.line, 8);
    assert_eq!(loaded.place("nothing"), None);
}

#[test]
fn the_kind_of_a_file_shows_in_its_keys() {
    assert_eq!(kind_of(LEAST).unwrap().name, "action");
    assert_eq!(kind_of("action:\n  name: x\n").unwrap().name, "action");
    assert_eq!(kind_of("name: a\nlanguages: [c]\ncommand: clangd\n").unwrap().name, "lsp_server");
    assert!(kind_of("name: a\n").is_none());
    assert!(kind_of("[").is_none());
}

// The examples of the requirements, in words of our own.
#[test]
fn actions_people_have_load() {
    let lint = "name: local/lint\ndescription: \"Run the linters\"\n\nstrategy_actor: local/strategist\nexecution_actor: local/executor\n\n\
                definition_of_done: |\n  No linter reports an error.\n\nreusable: true\nread_only: true\nstate: available\n";
    let audit = "# Checks security.\nname: local/audit\ndescription: Audit\nlong_description: |\n  Covers:\n  - dependencies (CVEs)\n\
                 strategy_actor: local/s\nexecution_actor: local/e\nreview_actor: local/r\ndefinition_of_done: |\n  All found:\n  - each rated\n\
                 arguments:\n  - name: threshold\n    type: string\n    required: false\n    default: \"low\"\n    \
                 validation_pattern: \"^(critical|high|low)$\"\n\n  - name: fix\n    type: boolean\n    default: false\n  - name: most\n    \
                 type: integer\n    default: 100\n    min_value: 1\n    max_value: 1000\n  - name: ignore\n    type: list\n    \
                 default: [\"**/node_modules/**\", \"**/.git/**\"]\n\nautomation_profile: supervised\n\ninvariants:\n  - \"Change no schema\"\n";
    assert_eq!(hints(lint), "");
    assert_eq!(hints(audit), "");
    let audit = load_action(audit, "a.yaml").unwrap().value;
    assert_eq!(audit.arguments[3].default, Some(json!(["**/node_modules/**", "**/.git/**"])));
    assert_eq!(audit.long_description.unwrap(), "Covers:\n- dependencies (CVEs)\n");
}
