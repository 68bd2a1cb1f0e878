//! Real language servers behind `agents lsp serve --proxy auto`: what an editor gets of them is what they say directly.

use std::time::{Duration, Instant};

use agents_e2e::{Editor, Repo, World, agents, tool, wait_until};
use serde_json::{Value, json};

const LONG: Duration = Duration::from_secs(120);
const SOON: Duration = Duration::from_secs(3);

/// A file with the servers of its language, and places to ask about.
struct Case {
    language: &'static str,
    file: &'static str,
    text: &'static str,
    servers: &'static [(&'static str, &'static [&'static str])],
    /// Line and character of a use of something that is defined in the file.
    place: (u32, u32),
    /// What is asked there first, until there is an answer: then the server has read the file.
    first: &'static str,
}

const CASES: &[Case] = &[
    Case {
        language: "python",
        file: "a.py",
        text: "import os\n\n\ndef helper() -> str:\n    \"\"\"Says é.\"\"\"\n    return 1\n\n\nprint(\"é😀\", helper())\n",
        servers: &[("ruff", &["server"]), ("basedpyright-langserver", &["--stdio"])],
        place: (8, 15),
        first: "textDocument/hover",
    },
    Case {
        language: "python",
        file: "b.py",
        text: "def helper() -> str:\n    return 1\n\n\nprint(\"é😀\", helper())\n",
        servers: &[("ty", &["server"])],
        place: (4, 15),
        first: "textDocument/hover",
    },
    Case {
        language: "c",
        file: "a.c",
        text: "/** Says é. */\nint helper(int a) { return a; }\n\nint main(void) { int b = 0; if (b = helper(1)) { return 1; } return 0; }\n",
        servers: &[("clangd", &["--background-index=false"])],
        place: (3, 38),
        first: "textDocument/hover",
    },
    Case {
        language: "typescript",
        file: "a.ts",
        text: "import { join } from \"node:path\";\nfunction helper(): string {\n  return 1;\n}\nconsole.log(\"é😀\", helper());\n",
        servers: &[("typescript-language-server", &["--stdio"])],
        place: (4, 20),
        first: "textDocument/hover",
    },
    Case {
        language: "shellscript",
        file: "a.sh",
        text: "#!/bin/bash\n# Says é.\nhelper() { echo $1; }\nunused=1\n\nhelper \"é😀\"; helper b\n",
        servers: &[("bash-language-server", &["start"])],
        place: (5, 15),
        first: "textDocument/references",
    },
    Case {
        language: "yaml",
        file: "a.yaml",
        text: "base: &base\n  a: é😀\nuse: *base\nuse: again\n",
        servers: &[("yaml-language-server", &["--stdio"])],
        place: (2, 8),
        first: "textDocument/definition",
    },
];

/// What is asked of servers that have it.
const QUESTIONS: [(&str, &str); 6] = [
    ("textDocument/hover", "/hoverProvider"),
    ("textDocument/definition", "/definitionProvider"),
    ("textDocument/references", "/referencesProvider"),
    ("textDocument/prepareRename", "/renameProvider/prepareProvider"),
    ("textDocument/rename", "/renameProvider"),
    ("textDocument/documentSymbol", "/documentSymbolProvider"),
];

fn capabilities() -> Value {
    json!({
        "general": { "positionEncodings": ["utf-16"] },
        "workspace": { "workspaceEdit": { "documentChanges": true } },
        "textDocument": {
            "hover": { "contentFormat": ["markdown"] }, "definition": {}, "references": {},
            "rename": { "prepareSupport": true }, "documentSymbol": { "hierarchicalDocumentSymbolSupport": true },
            "codeAction": {
                "codeActionLiteralSupport": { "codeActionKind": { "valueSet": ["quickfix", "refactor", "source"] } },
                "dataSupport": true, "resolveSupport": { "properties": ["edit"] },
            },
            "publishDiagnostics": { "versionSupport": true, "relatedInformation": true },
        },
    })
}

/// An editor with one file open.
struct Session<'a> {
    editor: Editor,
    uri: String,
    case: &'a Case,
    /// What was published for the file last.
    diagnostics: Vec<Value>,
    /// The capabilities that were told at the start.
    offered: Value,
}

impl<'a> Session<'a> {
    fn start(editor: Editor, repo: &Repo, case: &'a Case) -> Self {
        let mut editor = editor;
        let offered = editor.initialize(repo.path(), &capabilities())["capabilities"].clone();
        let uri = format!("file://{}/{}", repo.path().display(), case.file);
        editor.open(&uri, case.language, case.text);
        Self { editor, uri, case, diagnostics: Vec::new(), offered }
    }

    fn offers(&self, provider: &str) -> bool {
        !matches!(self.offered.pointer(provider), None | Some(Value::Null | Value::Bool(false)))
    }

    fn ask(&mut self, method: &str) -> Value {
        let (line, character) = self.case.place;
        let params = json!({
            "textDocument": { "uri": self.uri }, "position": { "line": line, "character": character },
            "context": { "includeDeclaration": true }, "newName": "renamed",
        });
        self.editor.answer(method, &params)["result"].clone()
    }

    /// The answer once there is one; a server that still reads the project may have none yet.
    fn useful(&mut self, method: &str) -> Value {
        wait_until(method, LONG, || {
            Some(self.ask(method)).filter(|answer| !answer.is_null() && *answer != json!([]))
        })
    }

    /// The answer, which may be that there is nothing: a server that has read the file finds what there is soon.
    fn answer(&mut self, method: &str) -> Value {
        let end = Instant::now() + SOON;
        loop {
            let answer = self.ask(method);
            if !answer.is_null() && answer != json!([]) || Instant::now() > end {
                return answer;
            }
            std::thread::park_timeout(Duration::from_millis(100));
        }
    }

    /// The diagnostics once there are some of each of these sources.
    fn settle(&mut self, sources: &[String]) -> Vec<Value> {
        loop {
            let (uri, method) = (self.uri.clone(), "textDocument/publishDiagnostics");
            let (_, published) = self.editor.wait_for(&format!("{sources:?}"), LONG, |message| {
                message["method"] == method && message["params"]["uri"] == uri.as_str()
            });
            self.diagnostics = published["params"]["diagnostics"].as_array().cloned().unwrap_or_default();
            let has = |source: &String| self.diagnostics.iter().any(|one| one["source"] == source.as_str());
            if !self.diagnostics.is_empty() && sources.iter().all(has) {
                return self.diagnostics.clone();
            }
        }
    }

    /// Titles and kinds of what can be done about a diagnostic.
    fn actions(&mut self, diagnostic: &Value) -> Vec<String> {
        let params = json!({
            "textDocument": { "uri": self.uri }, "range": diagnostic["range"], "context": { "diagnostics": [diagnostic] },
        });
        let answer = self.editor.answer("textDocument/codeAction", &params)["result"].clone();
        let actions = answer.as_array().into_iter().flatten();
        let mut actions: Vec<String> = actions
            .map(|action| format!("{}: {}", action["kind"].as_str().unwrap_or("-"), action["title"]))
            .collect();
        actions.sort();
        actions
    }
}

/// What tells diagnostics apart, sorted.
fn plain(diagnostics: &[Value]) -> Vec<String> {
    let mut plain: Vec<String> = diagnostics
        .iter()
        .map(|one| {
            let keys = ["source", "code", "severity", "message", "range"];
            keys.map(|key| one[key].to_string()).join(" ")
        })
        .collect();
    plain.sort();
    plain
}

#[test]
fn an_editor_gets_through_the_proxy_what_each_server_says_directly() {
    let world = World::new();
    let files: Vec<(&str, &str)> =
        CASES.iter().map(|case| (case.file, case.text)).chain([("compile_flags.txt", "-Wall\n")]).collect();
    let repo = world.repo_with("repo", &files);
    for case in CASES {
        for (program, args) in case.servers {
            world.real_server(program, args, &[case.language]);
        }
    }
    for case in CASES {
        let mut proxied = {
            let mut command = world.command(agents());
            let names: Vec<&str> = case.servers.iter().map(|(program, _)| *program).collect();
            command.args(["lsp", "serve", "--proxy", &names.join(",")]);
            Session::start(Editor::start(&mut command), &repo, case)
        };
        let mut direct: Vec<Session<'_>> = case
            .servers
            .iter()
            .map(|(program, args)| {
                let mut command = world.command(tool(program));
                Session::start(Editor::start(command.args(*args).current_dir(repo.path())), &repo, case)
            })
            .collect();
        // The last server of each language is the one that knows the program.
        let knows = direct.len() - 1;
        let first = direct[knows].useful(case.first);
        assert_eq!(proxied.useful(case.first), first, "{} in {}", case.first, case.file);
        for (method, provider) in QUESTIONS {
            if direct[knows].offers(provider) {
                // A server that still reads may find more the second time.
                wait_until(&format!("the same to {method} in {}", case.file), LONG, || {
                    let expected = direct[knows].answer(method);
                    (proxied.answer(method) == expected).then_some(())
                });
            }
        }
        let said: Vec<Vec<Value>> = direct.iter_mut().map(|session| session.settle(&[])).collect();
        let sources: Vec<String> =
            said.iter().map(|set| set[0]["source"].as_str().unwrap_or_default().to_owned()).collect();
        let all = said.concat();
        let mut got = proxied.settle(&sources);
        while plain(&got) != plain(&all) {
            // Servers may say more later; in the end it is the same.
            got = proxied.settle(&sources);
        }
        for (session, set) in direct.iter_mut().zip(&said) {
            let same =
                |one: &&Value| plain(std::slice::from_ref(*one)) == plain(std::slice::from_ref(&set[0]));
            let passed_on = got.iter().find(same).expect("it is among them").clone();
            let expected = session.actions(&set[0]);
            let actions = proxied.actions(&passed_on);
            for action in &expected {
                assert!(actions.contains(action), "{action} of {} is not among {actions:#?}", case.file);
            }
        }
        assert_eq!(proxied.editor.shutdown(), Some(0));
    }
    drop(repo);
    world.assert_quiet();
}
