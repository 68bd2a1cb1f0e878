//! What is seen in texts: small ones with the exact result, odd ones, random ones and large ones.

// Helpers of tests fail like tests.
#![allow(clippy::unwrap_used)]

use agents_grammars::{
    Language, MAX_BYTES, MAX_SYNTAX_ERRORS, ParseError, Symbol, parse, symbol_at, symbols, syntax_errors,
};
use proptest::prelude::*;

#[path = "it/scripts.rs"]
mod scripts;

/// One symbol a line: lines of the declaration (from 0, both inclusive), kind, qualified name.
fn outline(language: Language, text: &str) -> String {
    let line = |symbol: Symbol| {
        let (first, last) = (symbol.range.start.line, symbol.range.end.line);
        let name = symbol.qualified_name(language);
        format!("{first}-{last} {} {name}\n", symbol.kind.as_str())
    };
    symbols(language, text).unwrap().into_iter().map(line).collect()
}

/// One error a line: its range as line:column-line:column, the message.
fn errors(language: Language, text: &str) -> Vec<String> {
    let line = |error: agents_grammars::SyntaxError| {
        let (from, to) = (error.range.start, error.range.end);
        format!("{}:{}-{}:{} {}", from.line, from.column, to.line, to.column, error.message)
    };
    syntax_errors(language, text).unwrap().into_iter().map(line).collect()
}

const PYTHON: &str = "\
LIMIT = 1
_limit: int = 2
a, b = 1, 2
type Alias = int
type Pairs[T] = list[tuple[T, T]]

@final
@dataclass(frozen=True)
class Shape(Base):
    sides: int = 1
    name: str
    p, q = 1, 2

    @property
    def area(self):
        self.cached = 1
        def inner():
            pass

    async def draw(self): ...
    if True:
        def maybe(self): ...

    class Kind:
        ROUND = 1

async def main():
    local = 1

if True:
    def fallback(): pass
";

#[test]
fn symbols_of_python() {
    let expected = "\
0-0 constant LIMIT
1-1 variable _limit
2-2 variable a
2-2 variable b
3-3 type-alias Alias
4-4 type-alias Pairs
6-24 class Shape
9-9 field Shape.sides
10-10 field Shape.name
11-11 field Shape.p
11-11 field Shape.q
13-17 method Shape.area
16-17 function Shape.area.inner
19-19 method Shape.draw
21-21 method Shape.maybe
23-24 class Shape.Kind
24-24 field Shape.Kind.ROUND
26-27 function main
30-30 function fallback
";
    assert_eq!(outline(Language::Python, PYTHON), expected);
}

const RUST: &str = "\
//! About the file.
/// A stack.
#[derive(Debug)]
pub struct Stack<T> {
    /// What it holds.
    items: Vec<T>, // not the next one's
    len: usize,
}

impl<T: Clone>
    Stack<T>
{
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        fn inner() {}
        todo!()
    }
}

#[cfg(test)]
unsafe impl<T> Send for Stack<T> {}

mod numbers {
    pub const ONE: u8 = 1;
    const _: () = ();
    static TWO: u8 = 2;
    type Byte = u8;
    macro_rules! three { () => { 3 } }
    union Bits { a: u8 }
}

/** A shape. */
enum Shape {
    Dot,
    Circle { radius: f32 },
}

trait Draw {
    type Canvas;
    fn draw(&self);
    fn twice(&self) {}
}

extern \"C\" { fn abs(x: i32) -> i32; }
";

#[test]
fn symbols_of_rust() {
    let expected = "\
1-7 struct Stack
4-5 field Stack::items
6-6 field Stack::len
9-18 impl impl<T: Clone> Stack<T>
12-17 method Stack::new
15-15 function Stack::new::inner
20-21 impl unsafe impl<T> Send for Stack<T>
23-30 module numbers
24-24 constant numbers::ONE
26-26 variable numbers::TWO
27-27 type-alias numbers::Byte
28-28 macro numbers::three
29-29 union numbers::Bits
29-29 field numbers::Bits::a
32-36 enum Shape
34-34 enum-member Shape::Dot
35-35 enum-member Shape::Circle
35-35 field Shape::Circle::radius
38-42 trait Draw
39-39 type-alias Draw::Canvas
40-40 method Draw::draw
41-41 method Draw::twice
44-44 function abs
";
    assert_eq!(outline(Language::Rust, RUST), expected);
}

#[test]
fn the_selection_is_the_name_and_columns_are_bytes() {
    let text = "class Größe:\n    '''😀'''; x = 1\n\n    def fläche(self): ...\n";
    let found = symbols(Language::Python, text).unwrap();
    let selected: Vec<&str> =
        found.iter().map(|s| &text[s.selection_range.start_byte..s.selection_range.end_byte]).collect();
    assert_eq!(selected, ["Größe", "x", "fläche"]);
    assert_eq!(found[1].selection_range.start.column, "    '''😀'''; ".len());
    assert_eq!(found[2].container.iter().map(AsRef::as_ref).collect::<Vec<&str>>(), ["Größe"]);
    let class = found[0].range;
    assert_eq!(&text[class.start_byte..class.end_byte], text.trim_end());
}

#[test]
fn line_ends_of_windows_change_no_line() {
    for (language, text) in [(Language::Python, PYTHON), (Language::Rust, RUST)] {
        assert_eq!(outline(language, &text.replace('\n', "\r\n")), outline(language, text));
    }
}

#[test]
fn the_symbol_at_a_line_is_the_innermost() {
    let at = |language, text, line| {
        let found = symbol_at(language, text, line).unwrap();
        found.map_or("none".to_owned(), |symbol| symbol.qualified_name(language))
    };
    for (line, name) in [
        (0, "LIMIT"),
        (2, "a"),
        (5, "none"),
        (6, "Shape"),
        (8, "Shape"),
        (9, "Shape.sides"),
        (12, "Shape"),
        (13, "Shape.area"),
        (15, "Shape.area"),
        (17, "Shape.area.inner"),
        (27, "main"),
        (29, "none"),
        (30, "fallback"),
        (31, "none"),
        (9999, "none"),
    ] {
        assert_eq!(at(Language::Python, PYTHON, line), name, "line {line}");
    }
    for (line, name) in [
        (0, "none"),
        (1, "Stack"),
        (4, "Stack::items"),
        (8, "none"),
        (10, "impl<T: Clone> Stack<T>"),
        (13, "Stack::new"),
        (16, "Stack::new"),
        (18, "impl<T: Clone> Stack<T>"),
        (29, "numbers::Bits"),
        (44, "none"),
    ] {
        assert_eq!(at(Language::Rust, RUST, line), name, "line {line}");
    }
}

#[test]
fn right_syntax_has_no_errors() {
    assert_eq!(errors(Language::Python, PYTHON), [""; 0]);
    assert_eq!(errors(Language::Rust, RUST), [""; 0]);
    for language in Language::ALL {
        assert_eq!(errors(*language, ""), [""; 0]);
        assert_eq!(outline(*language, ""), "");
    }
}

#[test]
fn errors_of_python_say_where_and_what() {
    let expect = |text, expected: &[&str]| assert_eq!(errors(Language::Python, text), expected, "{text}");
    expect("def f(:\n    pass\n", &["0:6-0:6 missing `)`"]);
    expect("import os\n\nretrun x y\n", &["2:0-2:8 unexpected `retrun x`"]);
    expect("x = 'abc\ny = 2\n", &["0:4-0:5 unexpected `'`"]);
    expect("a = 1\nx = = 2\nb = 3\nclass:\n", &["1:4-1:5 unexpected `=`", "3:0-3:6 unexpected `class:`"]);
}

#[test]
fn a_block_of_python_without_a_statement_is_an_error() {
    let expect = |text, expected: &[&str]| assert_eq!(errors(Language::Python, text), expected, "{text}");
    expect("if x:\nprint(1)\n", &["0:5-0:5 missing an indented block"]);
    expect("def f():\n    # nothing\n\nx = 1\n", &["0:8-0:8 missing an indented block"]);
    expect("class A:\n    def f(self):\n\n    def g(self): pass\n", &["1:16-1:16 missing an indented block"]);
    expect("def f(): ...\nclass A: pass\nfor x in y:\n    # why\n    pass\n", &[]);
}

#[test]
fn errors_of_rust_say_where_and_what() {
    let expect = |text, expected: &[&str]| assert_eq!(errors(Language::Rust, text), expected, "{text}");
    expect("fn main() {\n    foo(1;\n}\n", &["1:9-1:9 missing `)`"]);
    expect("fn a() {}\n}}}\nfn b() {}\n", &["1:0-1:3 unexpected `}}}`"]);
    expect("struct A { x i32 }\n", &["0:11-0:16 unexpected `x i32`"]);
    expect("fn main() {\n    foo(1)\n", &["0:0-2:0 no valid syntax from `fn main() {` on"]);
}

#[test]
fn long_text_is_quoted_short() {
    let text = format!("fn a() {{}}\n}} {} }}\n", "é".repeat(100_000));
    let found = errors(Language::Rust, &text);
    assert!(found.iter().all(|line| line.chars().count() < 100), "{found:?}");
}

#[test]
fn the_number_of_errors_is_bounded() {
    let text = "fn f() { let x = ; }\n".repeat(10 * MAX_SYNTAX_ERRORS);
    assert_eq!(syntax_errors(Language::Rust, text).unwrap().len(), MAX_SYNTAX_ERRORS);
}

#[test]
fn broken_text_keeps_the_symbols_around_the_fault() {
    let text =
        "class A:\n    def f(self):\n        return (\n\n    def g(self):\n        pass\n\ndef h(): pass\n";
    let found = outline(Language::Python, text);
    assert!(found.contains("A.f") && found.contains("h\n"), "{found}");
}

#[test]
fn a_text_that_is_too_large_is_not_checked_rather_than_right() {
    let text = vec![b' '; MAX_BYTES + 1];
    assert_eq!(syntax_errors(Language::Python, &text), Err(ParseError::TooLarge { bytes: MAX_BYTES + 1 }));
    assert!(symbols(Language::Rust, &text).is_err());
}

#[test]
fn deep_nesting_overflows_no_stack() {
    let depth = 10_000;
    let texts = [
        (Language::Python, "(".repeat(depth)),
        (Language::Python, format!("x = {}{}\n", "[".repeat(depth), "]".repeat(depth))),
        (Language::Rust, "mod a {".repeat(depth)),
        (Language::Rust, format!("{}{}", "mod a { fn f() { ".repeat(depth), "} }".repeat(depth))),
        (Language::Rust, format!("type A = {}u8{};", "Vec<".repeat(depth), ">".repeat(depth))),
    ];
    for (language, text) in texts {
        // The parser may give up on some of them; what counts is that it comes back.
        if let Ok(found) = symbols(language, &text) {
            assert!(found.iter().all(|symbol| symbol.container.len() <= 32));
        }
        _ = syntax_errors(language, &text);
    }
}

#[test]
fn a_large_file_is_seen_whole() {
    let python: String =
        (0..5_000).map(|n| format!("class C{n}:\n    def f(self, x):\n        return x + {n}\n\n")).collect();
    let found = symbols(Language::Python, &python).unwrap();
    assert_eq!(found.len(), 10_000);
    assert_eq!(found[9_999].qualified_name(Language::Python), "C4999.f");
    assert_eq!(errors(Language::Python, &python), [""; 0]);

    let rust: String =
        (0..5_000).map(|n| format!("/// Doc.\n#[inline]\nfn f{n}(x: u32) -> u32 {{ x + {n} }}\n")).collect();
    let found = symbols(Language::Rust, &rust).unwrap();
    assert_eq!(found.len(), 5_000);
    assert_eq!(found[4_999].range.start.line, 3 * 4_999);
}

/// Texts that get further into a parser than random bytes: pieces of the language in any order.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(vec![
        "def f(",
        "class A",
        ":",
        "\n",
        "\n    ",
        "\n        ",
        "@x",
        "x = 1",
        "a, b = ",
        "'",
        "\"\"\"",
        "type X",
        "lambda",
        "fn f(",
        "struct S",
        "impl ",
        " for ",
        "enum E",
        "mod m",
        "{",
        "}",
        "(",
        ")",
        "<",
        ">",
        "#[a]",
        "/// d",
        "/*",
        "*/",
        "//",
        "r#\"",
        "trait T",
        "macro_rules! m",
        ";",
        ",",
        "const _: ",
        "\r",
        "\t",
        "\0",
        "😀",
        "é",
        "f\"{x}\"",
        "\\",
    ]);
    let bytes = prop::collection::vec(any::<u8>(), 0..4);
    let part = prop_oneof![9 => piece.prop_map(|piece| piece.as_bytes().to_vec()), 1 => bytes];
    prop::collection::vec(part, 0..60).prop_map(|parts| parts.concat())
}

fn check(text: &[u8]) {
    let lines = text.split(|byte| *byte == b'\n').count();
    let valid = |range: agents_grammars::Range| {
        assert!(range.start_byte <= range.end_byte && range.end_byte <= text.len(), "{range:?}");
        assert!(range.start <= range.end && range.end.line < lines, "{range:?}");
        let line_start = range.start_byte - range.start.column;
        assert!(line_start == 0 || text[line_start - 1] == b'\n', "{range:?}");
    };
    for language in Language::ALL {
        assert!(parse(*language, text).is_ok());
        for error in syntax_errors(*language, text).unwrap() {
            valid(error.range);
            assert!(!error.message.is_empty());
        }
        let found = symbols(*language, text).unwrap();
        for symbol in &found {
            valid(symbol.range);
            valid(symbol.selection_range);
            assert!(symbol.range.start_byte <= symbol.selection_range.start_byte);
            assert!(symbol.selection_range.end_byte <= symbol.range.end_byte);
        }
        assert!(found.is_sorted_by_key(|symbol| symbol.range.start_byte));
        for line in 0..=lines {
            if let Some(symbol) = symbol_at(*language, text, line).unwrap() {
                assert!((symbol.range.start.line..=symbol.range.end.line).contains(&line));
                assert!(found.contains(&symbol));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_taken(text in prop::collection::vec(any::<u8>(), 0..200)) {
        check(&text);
    }

    #[test]
    fn any_pieces_of_a_language_are_taken(text in pieces()) {
        check(&text);
    }

    #[test]
    fn any_name_and_content_are_taken(name in ".{0,20}", content in prop::collection::vec(any::<u8>(), 0..200)) {
        agents_grammars::detect(name.as_ref(), &content);
        agents_grammars::LanguageId::from_name(&name);
    }

    #[test]
    fn any_first_line_is_taken(line in "(#!|# vim:|-\\*-)[a-z/= :;*.-]{0,30}(-\\*-)?") {
        agents_grammars::detect("file".as_ref(), line.as_bytes());
    }
}
