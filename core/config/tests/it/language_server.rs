//! Language-server files: what loads, and what is refused where.

use agents_config::{KINDS, Severity, language_hints, load_language_server};
use agents_domain::language_server::{Capability, HealthCheck, LanguageServerDefinition, Transport};
use serde_json::json;

use crate::lines;

const LEAST: &str = "name: local/ruff\nlanguages: [python]\ncommand: ruff\n";

fn load(text: &str) -> LanguageServerDefinition {
    load_language_server(text, "s.yaml").unwrap_or_else(|p| panic!("{}", lines(&p))).value
}

fn refused(text: &str) -> String {
    lines(&load_language_server(text, "s.yaml").unwrap_err())
}

fn hints(text: &str) -> String {
    lines(&load_language_server(text, "s.yaml").unwrap_or_else(|p| panic!("{}", lines(&p))).hints)
}

fn with(more: &str) -> String {
    format!("{LEAST}{more}")
}

// LSP-004..010
#[test]
fn the_smallest_server_has_the_defaults() {
    let server = load(LEAST);
    assert_eq!(server.args, Vec::<String>::new());
    assert_eq!(server.transport, Transport::Stdio);
    assert_eq!(server.root_path, "{{ project.root }}");
    assert_eq!(server.health_check, HealthCheck::default());
    assert_eq!((server.capabilities, server.init_options), (None, json!(null)));
    assert_eq!(hints(LEAST), "");
}

// LSP-002..010: every key there is; `${NAME}` stays as it is written.
#[test]
fn a_whole_server_loads() {
    let text = r#"
name: team/pyright
description: Types
languages: [python, pyi]
command: pyright-langserver
args: ["--stdio"]
env: {PYTHONPATH: "${HOME}/lib:/x", PORT: "8080"}
transport: tcp
tcp: {port: 9000}
root_path: "{{ project.root }}/src"
init_options:
  python.analysis.typeCheckingMode: strict
  nested: {on: true, off: null, path: "${PY:/usr/bin/python3}"}
workspace_settings: {ruff: {lineLength: 100}}
capabilities: [diagnostics, hover, completions, references, definitions, rename, code_actions, formatting, signature_help, document_symbols, workspace_symbols, symbols]
health_check: {interval_seconds: 10, max_restarts: 0}
"#;
    let server = load(text);
    assert_eq!(hints(text), "");
    assert_eq!(server.name.to_string(), "team/pyright");
    assert_eq!(server.env["PYTHONPATH"], "${HOME}/lib:/x");
    assert_eq!(server.transport, Transport::Tcp { host: "127.0.0.1".to_owned(), port: 9000 });
    assert_eq!(
        server.init_options["nested"],
        json!({ "on": true, "off": null, "path": "${PY:/usr/bin/python3}" })
    );
    assert_eq!(server.workspace_settings, json!({ "ruff": { "lineLength": 100 } }));
    assert_eq!(server.capabilities.unwrap().len(), 12);
    assert_eq!(
        server.health_check,
        HealthCheck { interval_seconds: 10, max_restarts: 0, ..HealthCheck::default() }
    );
}

// Ruling 15, ruling 12
#[test]
fn other_spellings_load_with_a_hint_each() {
    for wrapper in ["lsp_server", "lsp", "language_server"] {
        let text = format!(
            "{wrapper}:\n  name: pyls\n  languages: [python]\n  command: pyls\n  initialization: {{a: 1}}\n"
        );
        assert_eq!(load(&text).init_options, json!({ "a": 1 }));
        assert_eq!(load(&text).name.to_string(), "local/pyls");
        assert_eq!(
            hints(&text),
            format!(
                "1:1 : `{wrapper}:` around the file is not needed: its keys can stand at the top
5:3 initialization: `initialization` is usually written `init_options`\n"
            )
        );
    }
    assert_eq!(
        refused(&with("initialization: {}\ninit-options: {}\n")).lines().next().unwrap(),
        "5:1 init-options: `init-options` and `initialization` mean the same: keep one"
    );
}

#[test]
fn a_command_line_is_split_as_a_shell_would_unless_there_are_arguments() {
    let server = |command: &str, args: &str| {
        let s = load(&format!("name: s\nlanguages: [c]\ncommand: {command}\n{args}"));
        (s.command, s.args)
    };
    let words = |w: &[&str]| w.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
    assert_eq!(
        server("clangd --log=error -j 2", ""),
        ("clangd".to_owned(), words(&["--log=error", "-j", "2"]))
    );
    assert_eq!(server("clangd -x", "args: []\n"), ("clangd".to_owned(), words(&["-x"])));
    assert_eq!(
        server(r#"'"/opt/my tools/clangd" --query "a b"'"#, ""),
        ("/opt/my tools/clangd".to_owned(), words(&["--query", "a b"]))
    );
    // With arguments of its own the command is a path as it is.
    assert_eq!(
        server("/opt/my tools/clangd", "args: [-x]\n"),
        ("/opt/my tools/clangd".to_owned(), words(&["-x"]))
    );
    assert_eq!(
        hints("name: s\nlanguages: [c]\ncommand: clangd -x\n"),
        "3:10 command: arguments are usually written as a list under `args`\n"
    );
    assert_eq!(
        refused("name: s\nlanguages: [c]\ncommand: clangd \"-x\n"),
        "3:10 command: `command` has a quote that is not closed, or a `\\` at its end\n"
    );
}

// LSP-003, LSP-010, LSP-011
#[test]
fn what_is_wrong_is_refused_at_its_place() {
    let cases = [
        (LEAST.replace("[python]", "[]"), "2:12 languages: `languages` needs at least 1 entry\n"),
        (LEAST.replace("languages: [python]\n", ""), "1:1 languages: the key `languages` is missing\n"),
        (
            LEAST.replace("ruff\n", "''\n").replace("local/''", "local/ruff"),
            "3:10 command: `command` is empty\n",
        ),
        (
            with("health_check:\n  interval_seconds: 9\n"),
            "5:21 health_check.interval_seconds: `health_check.interval_seconds` must be at least 10, not 9\n",
        ),
        (
            with("health_check: {max_restarts: -1}\n"),
            "4:30 health_check.max_restarts: `health_check.max_restarts` must be at least 0, not -1\n",
        ),
        (
            with("health_check: {interval_seconds: 4294967296}\n"),
            "4:34 health_check.interval_seconds: `health_check.interval_seconds` must be at most 4294967295, not 4294967296\n",
        ),
        (
            with("health_check: {enabld: true}\n"),
            "4:16 health_check.enabld: there is no key `enabld`: did you mean `enabled`?\n",
        ),
        (with("transport: tcp\n"), "4:12 tcp: `transport: tcp` needs a `tcp` mapping with the `port`\n"),
        (
            with("transport: pipe\n"),
            "4:12 transport: `transport` must be one of `stdio`, `tcp`, not the text `pipe`\n",
        ),
        (
            with("transport: tcp\ntcp: {port: 70000}\n"),
            "5:13 tcp.port: `tcp.port` must be at most 65535, not 70000\n",
        ),
        (with("env: {A: 1}\n"), "4:10 env.A: `env.A` must be a text, not the number 1: put it in quotes\n"),
        (with("env: {A=B: x}\n"), "4:7 env.A=B: `A=B` cannot be the name of a variable\n"),
        (
            with("init_options: [1]\n"),
            "4:15 init_options: `init_options` must be a mapping (`key: value` lines), not a list\n",
        ),
        (
            with("capabilities: [hovr]\n"),
            "4:16 capabilities[0]: `capabilities[0]` must be one of `diagnostics`, `hover`, `completions`, `references`, `definitions`, `rename`, `code_actions`, `formatting`, `signature_help`, `document_symbols`, `workspace_symbols`, `symbols`, not the text `hovr`: did you mean `hover`?\n",
        ),
        (with("argz: []\n"), "4:1 argz: there is no key `argz`: did you mean `args`?\n"),
        (
            LEAST.replace("local/ruff", "a/b/c"),
            "1:7 name: `name`: `a/b/c` is not a name: it has a character that is not allowed; expected [[server:]namespace/]name with letters, digits, `-` and `_` (and `.` in the name), such as local/my-name\n",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(refused(&text), expected, "{text}");
    }
    assert!(refused(&with("root_path: \"{{ project.root\"\n")).starts_with("4:"));
}

#[test]
fn what_has_no_effect_is_said() {
    assert_eq!(
        hints(&with("tcp: {port: 1}\ncapabilities: []\n")),
        "5:15 capabilities: an empty `capabilities` lends nothing: leave it out to lend all
4:1 tcp: `tcp` has no effect without `transport: tcp`\n"
    );
    assert_eq!(
        hints(&LEAST.replace("[python]", "[python, python]")),
        "2:21 languages[1]: `python` is there twice\n"
    );
}

#[test]
fn unknown_languages_are_hints() {
    let text = LEAST.replace("[python]", "[python, pyi, klingon]");
    let loaded = load_language_server(&text, "s.yaml").unwrap();
    let known = |name: &str| matches!(name, "python" | "pyi").then(|| "python".to_owned());
    let hints = language_hints(&loaded, known);
    assert_eq!(
        lines(&hints),
        "2:21 languages[1]: `pyi` is understood as `python`
2:26 languages[2]: no files are known to be `klingon`: the server will serve none by it\n"
    );
    assert!(hints.iter().all(|h| h.severity == Severity::Hint));
}

// The examples of the requirements, in words of our own.
#[test]
fn servers_people_have_load() {
    let gopls = "name: local/gopls\ndescription: Go, reading only\nlanguages:\n  - go\ncommand: gopls\nargs: [serve]\n\
                 capabilities:\n  - diagnostics\n  - symbols\nhealth_check:\n  interval_seconds: 120\n  max_restarts: 5\n";
    assert_eq!(load(gopls).capabilities, Some(vec![Capability::Diagnostics, Capability::Symbols]));
    assert_eq!(load(gopls).health_check.max_restarts, 5);
    let typescript = "name: local/ts-server\nlanguages: [typescript, javascript, tsx, jsx]\ncommand: typescript-language-server\n\
                      args:\n- --stdio\ninit_options:\n  preferences:\n    includeInlayParameterNameHints: all\n";
    assert_eq!(load(typescript).init_options["preferences"]["includeInlayParameterNameHints"], "all");
    let rust = "name: local/rust-analyzer\nlanguages: [rust]\ncommand: rust-analyzer\nenv:\n  CARGO_HOME: /home/user/.cargo\n\
                init_options:\n  cargo: {allFeatures: true}\n";
    assert_eq!(load(rust).env["CARGO_HOME"], "/home/user/.cargo");
    for text in [gopls, typescript, rust] {
        assert_eq!(hints(text), "");
    }
}

#[test]
fn the_schemas_describe_the_files() {
    let schema = |name: &str| (KINDS.iter().find(|k| k.name == name).unwrap().schema)();
    let server = schema("lsp_server");
    assert_eq!(server["properties"]["transport"]["enum"], json!(["stdio", "tcp"]));
    assert_eq!(server["properties"]["languages"]["minItems"], 1);
    assert_eq!(server["additionalProperties"], false);
    assert_eq!(server["$defs"]["HealthCheck"]["properties"]["interval_seconds"]["minimum"], 10);
    assert_eq!(server["$defs"]["HealthCheck"]["properties"]["interval_seconds"]["default"], 60);
    assert!(server["$defs"]["HealthCheck"].get("required").is_none());
    let action = schema("action");
    assert_eq!(
        action["required"],
        json!(["name", "description", "definition_of_done", "strategy_actor", "execution_actor"])
    );
    assert_eq!(
        action["properties"]["safety_profile"]["properties"]["max_retries_per_step"]["type"],
        "integer"
    );
}
