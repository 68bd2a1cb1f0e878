//! What an index answers.

use agents_domain::ports::code_index::CodeIndexes;

use crate::{Desk, paths};

const SHAPES: &str = r#""""Shapes."""
import math
from .base import Thing as Base


class Circle(Base):
    """A round one."""

    def __init__(self, radius: float):
        self.radius = radius

    def area(self) -> float:
        """The area of the
        circle."""
        square = self.radius ** 2
        return math.pi * square


def make_circle(radius):
    return Circle(radius)
"#;

fn desk() -> Desk {
    let desk = Desk::new(&[
        ("shapes/circle.py", SHAPES),
        ("shapes/base.py", "class Thing:\n    pass\n"),
        ("other/base.py", "class Thing:\n    pass\n"),
        ("use.py", "from shapes.circle import make_circle\n\nmake_circle(2).area()\n"),
        (
            "src/geometry.rs",
            "/// A square.\n#[derive(Debug)]\npub struct Square<T>(T);\n\nimpl Square<f64> {\n    pub fn new(side: f64) -> Self {\n        let value = side;\n        Self(value)\n    }\n}\n",
        ),
        (
            "src/main.rs",
            "mod geometry;\nuse crate::geometry::{Square as S, self};\n\nfn main() {\n    S::new(1.0);\n}\n",
        ),
    ]);
    desk.scan();
    desk
}

#[test]
fn symbols_have_container_signature_and_documentation() {
    let desk = desk();
    let symbols = desk.index.symbols_of("shapes/circle.py").unwrap();
    let area = symbols.iter().find(|symbol| symbol.name == "area").unwrap();
    assert_eq!((area.kind.as_str(), area.container.as_str()), ("method", "Circle"));
    assert_eq!(area.signature, "def area(self) -> float");
    assert_eq!(area.doc, "The area of the\ncircle.");
    assert_eq!((area.range.start.line, area.range.end.line, area.name_range.start.column), (11, 15, 8));
    let square = &desk.index.symbols_of("src/geometry.rs").unwrap()[0];
    assert_eq!((square.signature.as_str(), square.doc.as_str()), ("pub struct Square<T>", "A square."));
    let new = &desk.index.symbols_named("new", 10).unwrap()[0];
    assert_eq!(new.what.signature, "pub fn new(side: f64) -> Self");
    assert!(new.ascii && new.language == "rust" && new.path == "src/geometry.rs");
}

#[test]
fn imports_are_read_and_found_by_module() {
    let desk = desk();
    let imports = desk.index.imports_of("shapes/circle.py").unwrap();
    let shown: Vec<_> =
        imports.iter().map(|i| (i.module.as_str(), i.name.as_deref(), i.alias.as_deref(), i.line)).collect();
    assert_eq!(shown, [("math", None, None, 1), (".base", Some("Thing"), Some("Base"), 2)]);
    let imports = desk.index.imports_of("src/main.rs").unwrap();
    let shown: Vec<_> =
        imports.iter().map(|i| (i.module.as_str(), i.name.as_deref(), i.alias.as_deref())).collect();
    assert_eq!(shown, [("crate::geometry", Some("Square"), Some("S")), ("crate", Some("geometry"), None)]);
    assert_eq!(desk.index.importers_of("shapes.circle", 10).unwrap(), ["use.py"]);
}

#[test]
fn occurrences_have_the_role_that_syntax_tells() {
    let desk = desk();
    assert_eq!(
        desk.places("make_circle"),
        ["shapes/circle.py:18:4 declaration", "use.py:0:26 import", "use.py:2:0 call"]
    );
    assert_eq!(
        desk.places("radius"),
        [
            "shapes/circle.py:14:22 member",
            "shapes/circle.py:18:16 parameter",
            "shapes/circle.py:19:18 read",
            "shapes/circle.py:8:23 parameter",
            "shapes/circle.py:9:13 member-write",
            "shapes/circle.py:9:22 read",
        ]
    );
    assert_eq!(desk.places("area"), ["shapes/circle.py:11:8 declaration", "use.py:2:15 member-call"]);
    assert_eq!(desk.places("Are"), Vec::<String>::new(), "whole names only");
    assert_eq!(desk.places("AREA"), Vec::<String>::new(), "as they are written");
    assert_eq!(desk.index.occurrences("radius", 2).unwrap()[0].what.len(), 2, "no more than asked for");
    for odd in ["", "\"", "a b", "names : x", "*", "_", "r#", "é é"] {
        assert_eq!(desk.places(odd), Vec::<String>::new(), "{odd:?}");
    }
}

#[test]
fn a_search_finds_whole_names_then_beginnings_then_words() {
    let desk = desk();
    let search = |query: &str| {
        let found = desk.index.search_symbols(query, 10).unwrap();
        found.into_iter().map(|found| found.what.name).collect::<Vec<_>>()
    };
    assert_eq!(search("circle"), ["Circle", "make_circle"]);
    assert_eq!(search("maCi"), ["make_circle"]);
    assert_eq!(search("make_c"), ["make_circle"]);
    assert_eq!(search("m c"), ["make_circle"]);
    assert_eq!(search("nothing"), Vec::<String>::new());
    for odd in ["\"", "*", "(", "a OR", "\u{0}", "%"] {
        search(odd);
    }
    assert_eq!(search("").len(), 10, "nothing asked is anything");
    assert_eq!(desk.index.search_symbols("c", 1).unwrap().len(), 1);
}

#[test]
fn documentation_is_searched_by_words() {
    let desk = desk();
    assert_eq!(desk.index.search_text("round", 10).unwrap(), ["shapes/circle.py"]);
    let found = desk.index.search_text("a square", 10).unwrap();
    assert!(found.contains(&"src/geometry.rs".to_owned()), "{found:?}");
    assert!(desk.index.search_text("  ", 10).unwrap().is_empty());
}

#[test]
fn a_definition_is_the_local_name_then_the_files_then_the_imported_one() {
    let desk = desk();
    // `square` in `return math.pi * square`; `radius` in `return Circle(radius)`.
    assert_eq!(desk.definitions("shapes/circle.py", 15, 27), ["shapes/circle.py:14 variable"]);
    assert_eq!(desk.definitions("shapes/circle.py", 19, 20), ["shapes/circle.py:18 parameter"]);
    // `Circle` in the same file.
    assert_eq!(desk.definitions("shapes/circle.py", 19, 12), ["shapes/circle.py:5 class"]);
    // `Base` is `Thing` of the module beside this one, not the other of that name.
    assert_eq!(desk.definitions("shapes/circle.py", 5, 14), ["shapes/base.py:0 class"]);
    assert_eq!(desk.definitions("use.py", 2, 0), ["shapes/circle.py:18 function"]);
    assert_eq!(desk.definitions("use.py", 2, 16), ["shapes/circle.py:11 method"]);
    // `S` and `new` in Rust.
    assert_eq!(desk.definitions("src/main.rs", 4, 4), ["src/geometry.rs:2 struct"]);
    assert_eq!(desk.definitions("src/main.rs", 4, 8), ["src/geometry.rs:5 method"]);
    assert_eq!(desk.definitions("src/geometry.rs", 7, 14), ["src/geometry.rs:6 variable"]);
    // On the declaration it is itself; on no name there is none.
    assert_eq!(desk.definitions("src/geometry.rs", 5, 12), ["src/geometry.rs:5 method"]);
    assert_eq!(desk.definitions("use.py", 1, 0), Vec::<String>::new());
}

#[test]
fn before_the_first_scan_there_is_nothing() {
    let desk = Desk::new(&[("a.py", "x = 1\n")]);
    let status = desk.index.status().unwrap();
    assert!(!status.complete && status.files == 0 && !status.busy);
    assert!(paths(&desk.index.search_symbols("x", 10).unwrap()).is_empty());
    assert!(agents_context::Indexes::new(desk.data.path()).all().is_empty());
    assert!(agents_context::Indexes::new(desk.data.path()).of(&desk.path("a.py")).is_err(), "no folder");
}

#[test]
fn scripts_of_the_web_find_what_they_import_across_their_languages() {
    let desk = Desk::new(&[
        ("src/shape.ts", "/** A shape. */\nexport class Shape {}\n"),
        ("lib/shape.ts", "export class Shape {}\n"),
        ("src/lib/index.js", "export const make = () => 1;\n"),
        (
            "src/app/view.tsx",
            "import { Shape as Form } from \"../shape\";\nimport { make } from \"../lib\";\nmake(<Form />);\n",
        ),
    ]);
    desk.scan();
    assert_eq!(desk.definitions("src/app/view.tsx", 2, 7), ["src/shape.ts:1 class"]);
    assert_eq!(desk.definitions("src/app/view.tsx", 2, 1), ["src/lib/index.js:0 function"]);
    let shape = &desk.index.symbols_of("src/shape.ts").unwrap()[0];
    assert_eq!((shape.signature.as_str(), shape.doc.as_str()), ("class Shape", "A shape."));
    assert_eq!(
        desk.places("make"),
        ["src/app/view.tsx:1:9 import", "src/app/view.tsx:2:0 call", "src/lib/index.js:0:13 write"]
    );
}
