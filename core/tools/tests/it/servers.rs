//! Each real server through the tools, as far as it offers what they ask: a table of small files with the exact answers.

use serde_json::{Value, json};

use crate::world::{World, definition, each, tool};

/// A file, a server of its language, and what the tools say about a name in it.
struct Case {
    language: &'static str,
    program: &'static str,
    args: &'static [&'static str],
    file: &'static str,
    text: &'static str,
    /// Line from 1 and the name that stands there.
    name: (u32, &'static str),
    /// What its hover holds; `None` for servers without hovers.
    hover: Option<&'static str>,
    definition: &'static str,
    references: Option<&'static [&'static str]>,
    /// Places that a rename changes.
    renamed: Option<usize>,
    /// What a diagnostic says.
    finding: &'static str,
    /// A title of what can be done about it.
    action: Option<&'static str>,
}

const CASES: &[Case] = &[
    Case {
        language: "python",
        program: "ty",
        args: &["server"],
        file: "a.py",
        text: "def helper() -> str:\n    return 1\n\n\nprint(\"é😀\", helper())\n",
        name: (5, "helper"),
        hover: Some("def helper() -> str"),
        definition: "a.py:1:5",
        references: Some(&["a.py:1:5", "a.py:5:13"]),
        renamed: Some(2),
        finding: "Return type does not match",
        action: None,
    },
    Case {
        language: "python",
        program: "basedpyright-langserver",
        args: &["--stdio"],
        file: "a.py",
        text: "def helper() -> str:\n    return 1\n\n\nprint(\"é😀\", helper())\n",
        name: (5, "helper"),
        hover: Some("def helper() -> str"),
        definition: "a.py:1:5",
        references: Some(&["a.py:1:5", "a.py:5:13"]),
        renamed: Some(2),
        finding: "is not assignable to return type",
        action: Some("pyright: ignore"),
    },
    Case {
        language: "c",
        program: "clangd",
        args: &["--background-index=false"],
        file: "a.c",
        text: "/** Says é. */\nint helper(int a) { return a; }\nint main(void) { return helper(1) }\n",
        name: (3, "helper"),
        hover: Some("Says é."),
        definition: "a.c:2:5",
        references: Some(&["a.c:2:5", "a.c:3:25"]),
        renamed: Some(2),
        finding: "Expected ';'",
        action: Some("insert"),
    },
    Case {
        language: "typescript",
        program: "typescript-language-server",
        args: &["--stdio"],
        file: "a.ts",
        text: "function helper(): string {\n  return 1;\n}\nconsole.log(\"é😀\", helper());\n",
        name: (4, "helper"),
        hover: Some("function helper(): string"),
        definition: "a.ts:1:10",
        references: Some(&["a.ts:1:10", "a.ts:4:19"]),
        renamed: Some(2),
        finding: "is not assignable to type 'string'",
        action: None,
    },
    Case {
        language: "shellscript",
        program: "bash-language-server",
        args: &["start"],
        file: "a.sh",
        text: "#!/bin/bash\n# Says é.\nhelper() { echo $1; }\nhelper \"é😀\"; helper b\n",
        name: (4, "helper"),
        hover: Some("helper"),
        definition: "a.sh:3:1",
        references: Some(&["a.sh:3:1", "a.sh:4:1", "a.sh:4:14"]),
        renamed: Some(3),
        finding: "Double quote to prevent globbing",
        action: Some("Apply fix for SC2086"),
    },
    Case {
        language: "yaml",
        program: "yaml-language-server",
        args: &["--stdio"],
        file: "a.yaml",
        text: "base: &anchor\n  a: é😀\nuse: *anchor\nuse: again\n",
        name: (3, "anchor"),
        hover: None,
        definition: "a.yaml:2:3",
        references: None,
        renamed: Some(2),
        finding: "Map keys must be unique",
        action: None,
    },
];

#[tokio::test(flavor = "multi_thread")]
async fn each_real_server_answers_the_tools_as_far_as_it_offers_what_they_ask() {
    for case in CASES {
        let what = case.program;
        let server = definition(&format!("local/{what}"), &[case.language], tool(what), case.args);
        let world =
            World::new(&[(case.file, case.text), ("compile_flags.txt", "-Wall\n")], vec![server]).await;
        let at = |more: Value| {
            let mut arguments = json!({ "path": case.file, "line": case.name.0, "symbol": case.name.1 });
            arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            arguments
        };
        let found = world.call("lsp/diagnostics", json!({ "path": case.file })).await;
        assert_eq!(found["complete"], true, "{what}: {found}");
        assert!(found.to_string().contains(case.finding), "{what}: {found}");
        let place = world.call("lsp/definition", at(json!({}))).await;
        assert_eq!(each(&place, "at"), [case.definition], "{what}: {place}");
        match case.hover {
            Some(words) => {
                let hover = world.call("lsp/hover", at(json!({}))).await;
                assert!(hover["text"].as_str().unwrap().contains(words), "{what}: {hover}");
            }
            // A server may say that it hovers and have nothing to say here.
            None => drop(world.try_call("lsp/hover", at(json!({}))).await),
        }
        match case.references {
            Some(expected) => {
                let references =
                    world.call("lsp/references", at(json!({ "include_declaration": true }))).await;
                let mut places = each(&references, "at");
                places.sort_unstable();
                assert_eq!(places, expected, "{what}: {references}");
            }
            None => {
                world.fails("lsp/references", at(json!({}))).await;
            }
        }
        match case.renamed {
            Some(places) => {
                let rename =
                    world.call("lsp/rename", at(json!({ "new_name": "other", "with_edits": true }))).await;
                let edits = rename["edits"].as_array().unwrap().iter();
                let changed: usize = edits.map(|file| file["edits"].as_array().unwrap().len()).sum();
                assert_eq!(changed, places, "{what}: {rename}");
            }
            None => {
                let why = world.fails("lsp/rename", at(json!({ "new_name": "other" }))).await;
                assert!(why.contains(what), "{what}: {why}");
            }
        }
        if let Some(title) = case.action {
            let at = found["results"][0]["at"].as_str().unwrap();
            let line: u32 = at.rsplit(':').nth(1).unwrap().parse().unwrap();
            let asked = json!({ "path": case.file, "line": line });
            let actions = world.call("lsp/code-actions", asked).await;
            assert!(actions.to_string().contains(title), "{what}: {actions}");
        }
        // LSP-039: whatever was computed, nothing was written.
        assert_eq!(std::fs::read_to_string(world.root().join(case.file)).unwrap(), case.text, "{what}");
        world.close().await;
    }
}
