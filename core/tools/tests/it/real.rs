//! Real servers, for truth. They come from `tests/setup`; without it these tests fail rather than pass unseen.

use serde_json::{Value, json};

use crate::world::{World, definition, each, tool};

const SHAPES: &str = "\
from abc import ABC, abstractmethod


class Shape(ABC):
    \"\"\"Something with an area.\"\"\"

    @abstractmethod
    def area(self) -> float: ...


class Square(Shape):
    def __init__(self, side: float) -> None:
        self.side = side

    def area(self) -> float:
        return self.side * self.side
";
const USE: &str = "\
from shapes import Square


def total(sides: list[float]) -> float:
    return sum(Square(side).area() for side in sides)
";
const TEST: &str = "\
from shapes import Square


def test_area() -> None:
    assert Square(2.0).area() == 4.0
";

async fn python() -> World {
    let server = definition("local/basedpyright", &["python"], tool("basedpyright-langserver"), &["--stdio"]);
    let linter = definition("local/ruff", &["python"], tool("ruff"), &["server"]);
    let files = [
        ("shapes.py", SHAPES),
        ("use.py", USE),
        ("tests/test_shapes.py", TEST),
        ("lint.py", "import os\nx=1\n"),
    ];
    World::new(&files, vec![linter, server]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn python_answers_everything_a_model_asks() {
    let world = python().await;
    let hover = world.call("lsp/hover", json!({"path": "use.py", "symbol": "total"})).await;
    assert_eq!(hover["server"], "local/basedpyright");
    assert!(hover["text"].as_str().unwrap().contains("list[float]"), "{hover}");
    let definition =
        world.call("lsp/definition", json!({"path": "use.py", "line": 5, "symbol": "Square"})).await;
    assert_eq!(each(&definition, "at"), ["shapes.py:11:7"]);
    assert_eq!(definition["results"][0]["code"], "class Square(Shape):");
    let library = world.call("lsp/definition", json!({"path": "use.py", "line": 5, "symbol": "sum"})).await;
    assert_eq!(library["results"][0]["outside"], true, "{library}");
    let references = world.call("lsp/references", json!({"path": "shapes.py", "symbol": "Square"})).await;
    let at = each(&references, "at");
    for place in ["use.py:1:20", "use.py:5:16", "tests/test_shapes.py:5:12"] {
        assert!(at.contains(&place), "{place} in {at:?}");
    }
    let completions = world
        .call("lsp/completions", json!({"path": "use.py", "line": 5, "column": 29, "prefix": "ar"}))
        .await;
    assert_eq!(each(&completions, "label"), ["area"]);
    let signature =
        world.call("lsp/signature", json!({"path": "use.py", "line": 5, "symbol": "Square"})).await;
    assert!(signature["results"][0]["label"].as_str().unwrap().contains("side"), "{signature}");
    let symbols = world.call("lsp/symbols", json!({"path": "shapes.py", "kind": "class"})).await;
    assert_eq!(each(&symbols, "name"), ["Shape", "Square"]);
    let found = world.call("lsp/workspace-symbols", json!({"query": "total"})).await;
    assert_eq!(found["results"][0]["at"], "use.py:4:5", "{found}");
    let callers =
        world.call("lsp/call-hierarchy", json!({"path": "shapes.py", "symbol": "Square.area"})).await;
    let names = each(&callers, "name");
    assert!(names.contains(&"total") && names.contains(&"test_area"), "{callers}");
    let callees = world
        .call("lsp/call-hierarchy", json!({"path": "use.py", "symbol": "total", "direction": "callees"}))
        .await;
    assert!(each(&callees, "name").contains(&"area"), "{callees}");
    let implementations =
        world.call("lsp/implementation", json!({"path": "shapes.py", "symbol": "Shape.area"})).await;
    assert!(each(&implementations, "at").contains(&"shapes.py:15:9"), "{implementations}");
    let impact = world.call("lsp/impact", json!({"path": "shapes.py", "symbol": "Square"})).await;
    assert_eq!(impact["defined"][0]["at"], "shapes.py:11:7");
    assert_eq!(
        (&impact["code"][0]["path"], &impact["tests"][0]["path"]),
        (&json!("use.py"), &json!("tests/test_shapes.py"))
    );
    assert_eq!(impact["references"], 4, "{impact}");
    let rename =
        world.call("lsp/rename", json!({"path": "shapes.py", "symbol": "Square", "new_name": "Quad"})).await;
    assert_eq!(rename["total_files"], 3, "{rename}");
    let preview = json!({"also_check": ["use.py"], "steps": [
        {"edits": [{"path": "shapes.py", "old_text": "something", "new_text": "x"}]},
    ]});
    assert!(world.fails("lsp/preview-edit", preview).await.contains("does not stand"));
    let preview = json!({"also_check": ["use.py", "tests/test_shapes.py"], "steps": [
        {"label": "docs", "edits": [{"path": "shapes.py", "old_text": "Something", "new_text": "Anything"}]},
        {"label": "rename", "edits": [{"path": "shapes.py", "old_text": "class Square", "new_text": "class Quad"}]},
        {"label": "follow", "edits": [
            {"path": "use.py", "new_text": USE.replace("Square", "Quad")},
            {"path": "tests/test_shapes.py", "new_text": TEST.replace("Square", "Quad")},
        ]},
    ]});
    let preview = world.call("lsp/preview-edit", preview).await;
    assert_eq!(preview["breaks_at"], 2, "{preview:#}");
    assert_eq!(preview["steps"][0]["verdict"], "same", "{preview:#}");
    assert!(preview["steps"][1]["added"][0]["message"].as_str().unwrap().contains("Square"), "{preview:#}");
    assert_ne!(preview["overall"]["verdict"], "worse", "{preview:#}");
    let actions =
        world.call("lsp/code-actions", json!({"path": "lint.py", "line": 1, "kind": "quickfix"})).await;
    assert!(each(&actions, "title").iter().any(|title| title.contains("Remove unused import")), "{actions}");
    let format = world.call("lsp/format", json!({"path": "lint.py"})).await;
    assert!(format["files"][0]["diff"].as_str().unwrap().contains("+x = 1"), "{format}");
    let overlay = agents_tools::enrich::Enrichment { type_annotations: true, ..Default::default() };
    let lines = agents_tools::enrich::lines(&world.lens, None, "use.py", &overlay).await;
    assert!(
        lines.iter().any(|line| line.starts_with("use.py:4:5 ") && line.contains("list[float]")),
        "{lines:#?}"
    );
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn typescript_answers_across_files() {
    let server =
        definition("local/typescript", &["typescript"], tool("typescript-language-server"), &["--stdio"]);
    let files = [
        ("tsconfig.json", "{\"compilerOptions\": {\"strict\": true}}\n"),
        (
            "shape.ts",
            "export interface Shape { area(): number }\nexport class Square implements Shape {\n  constructor(readonly side: number) {}\n  area(): number { return this.side ** 2; }\n}\n",
        ),
        (
            "use.ts",
            "import { Square } from './shape';\nexport const total = (sides: number[]) => sides.map(s => new Square(s).area());\n",
        ),
        ("use.spec.ts", "import { Square } from './shape';\nconst area: number = new Square(2).area();\n"),
    ];
    let world = World::new(&files, vec![server]).await;
    let found = world.call("lsp/workspace-symbols", json!({"query": "Square"})).await;
    assert_eq!(found["results"][0]["at"], "shape.ts:2:1", "{found}");
    let hover = world.call("lsp/hover", json!({"path": "use.ts", "symbol": "total"})).await;
    assert!(hover["text"].as_str().unwrap().contains("number[]"), "{hover}");
    let implementations =
        world.call("lsp/implementation", json!({"path": "shape.ts", "symbol": "Shape"})).await;
    assert_eq!(each(&implementations, "at"), ["shape.ts:2:14"]);
    let impact = world.call("lsp/impact", json!({"path": "shape.ts", "symbol": "Square.area"})).await;
    // The method of the interface is the same symbol to this server.
    let paths = |side: &str| -> Vec<String> {
        impact[side].as_array().unwrap().iter().map(|one| one["path"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(
        (paths("code"), paths("tests")),
        (vec!["shape.ts".into(), "use.ts".into()], vec!["use.spec.ts".into()])
    );
    let rename = world
        .call(
            "lsp/rename",
            json!({"path": "shape.ts", "symbol": "Square", "new_name": "Quad", "with_edits": true}),
        )
        .await;
    assert_eq!(rename["edits"].as_array().unwrap().len(), 3, "{rename}");
    let preview = world.call("lsp/preview-edit", json!({"steps": [
        {"edits": [{"path": "shape.ts", "old_text": "area(): number { return", "new_text": "area(): string { return"}]},
    ]})).await;
    assert_eq!(preview["breaks_at"], 1, "{preview:#}");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn c_answers_with_what_its_server_reads_from_disk() {
    let server = definition("local/clangd", &["c", "cpp"], tool("clangd"), &["--background-index=false"]);
    let files = [
        ("a.h", "/// Adds.\nint add(int a, int b);\n"),
        (
            "a.c",
            "#include \"a.h\"\nint add(int a, int b) { return a + b; }\nint twice(int x) { return add(x, x); }\n",
        ),
        (
            "shape.cpp",
            "struct Shape { virtual double area() = 0; };\nstruct Square : Shape { double area() override { return 4; } };\n",
        ),
    ];
    let world = World::new(&files, vec![server]).await;
    let hover = world.call("lsp/hover", json!({"path": "a.c", "line": 3, "symbol": "add"})).await;
    assert!(hover["text"].as_str().unwrap().contains("Adds."), "{hover}");
    let callers = world.call("lsp/call-hierarchy", json!({"path": "a.c", "line": 2, "symbol": "add"})).await;
    assert_eq!(each(&callers, "name"), ["twice"], "{callers}");
    assert_eq!(callers["results"][0]["call_lines"], json!([3]));
    let signature = world.call("lsp/signature", json!({"path": "a.c", "line": 3, "symbol": "add"})).await;
    assert_eq!(signature["results"][0]["active_parameter"], "int a", "{signature}");
    let preview = world
        .call(
            "lsp/preview-edit",
            json!({"steps": [
                {"edits": [{"path": "a.c", "old_text": "add(x, x)", "new_text": "add(x)"}]},
            ]}),
        )
        .await;
    assert_eq!(preview["breaks_at"], 1, "{preview:#}");
    let subtypes = world.call("lsp/type-hierarchy", json!({"path": "shape.cpp", "symbol": "Shape"})).await;
    assert_eq!(each(&subtypes, "name"), ["Square"], "{subtypes}");
    let bases = json!({"path": "shape.cpp", "symbol": "Square", "direction": "supertypes"});
    assert_eq!(each(&world.call("lsp/type-hierarchy", bases).await, "name"), ["Shape"]);
    let after: Value = world.call("lsp/diagnostics", json!({"path": "a.c"})).await;
    assert_eq!((&after["total"], &after["complete"]), (&json!(0), &json!(true)), "{after}");
    world.close().await;
}
