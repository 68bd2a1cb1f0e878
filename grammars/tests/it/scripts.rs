//! TypeScript and JavaScript: small texts with the exact result.

use agents_grammars::{Facts, Language, facts};

use super::{errors, outline};

const TYPESCRIPT: &str = "\
import fs, { join as j, type Dirent } from \"node:path\";
import * as models from \"./models\";
import \"./side-effect\";
export { Shape as Form } from \"./shape\";
export * from \"./all\";
const old = require(\"./old\");

/** How many. */
export const LIMIT = 10;
let count = 0;

/**
 * A shape
 * with sides.
 */
export abstract class Shape extends Base<number> implements Drawn {
  static sides: number = 1;
  #hidden = 2;
  constructor(private readonly name: string) { super(); }
  /** Its area. */
  area(scale?: number): number {
    function inner() {}
    this.sides = scale;
    return j(count, ...rest);
  }
  abstract draw(): void;
}

export interface Drawn {
  color: string;
  paint(with: Brush): void;
}
type Pair<T> = [T, T];
enum Kind { Round, Square = 2 }
namespace geo {
  export function far() {}
}
export const twice = async (x: number): Promise<number> => {
  const local = x * 2;
  return local;
};
export default function main(): void {
  for (const one of models.all()) { new Shape(one); }
}
";

#[test]
fn symbols_of_typescript_are_found_with_their_containers() {
    let expected = "\
5-5 constant old
7-8 constant LIMIT
9-9 variable count
11-26 class Shape
16-16 field Shape.sides
17-17 field Shape.#hidden
18-18 method Shape.constructor
19-24 method Shape.area
21-21 function Shape.area.inner
25-25 method Shape.draw
28-31 trait Drawn
29-29 field Drawn.color
30-30 method Drawn.paint
32-32 type-alias Pair
33-33 enum Kind
33-33 enum-member Kind.Round
33-33 enum-member Kind.Square
34-36 module geo
35-35 function geo.far
37-40 function twice
41-43 function main
";
    assert_eq!(outline(Language::TypeScript, TYPESCRIPT), expected);
    assert_eq!(outline(Language::TypeScriptReact, TYPESCRIPT), expected, "the same text with React");
    assert_eq!(errors(Language::TypeScript, TYPESCRIPT), [""; 0]);
    let windows = TYPESCRIPT.replace('\n', "\r\n");
    assert_eq!(outline(Language::TypeScript, &windows), expected);
}

#[test]
fn imports_of_typescript_name_module_name_and_alias() {
    let found = facts(Language::TypeScript, TYPESCRIPT).unwrap();
    let shown: Vec<String> = found
        .imports
        .iter()
        .map(|import| {
            let part = |mark: &str, part: &Option<String>| {
                part.as_ref().map(|part| format!("{mark}{part}")).unwrap_or_default()
            };
            let (name, alias) = (part(" ", &import.name), part(" as ", &import.alias));
            format!("{} {}{name}{alias}", import.line, import.module)
        })
        .collect();
    assert_eq!(
        shown,
        [
            "0 node:path fs",
            // Of one line, those without another name come first.
            "0 node:path Dirent",
            "0 node:path join as j",
            "1 ./models as models",
            "2 ./side-effect",
            "3 ./shape Shape",
            "4 ./all *",
            "5 ./old as old",
        ]
    );
}

fn role(found: &Facts, text: &str, place: &str) -> &'static str {
    let (before, name) = place.split_once('|').unwrap();
    let start = text.find(&format!("{before}{name}")).unwrap() + before.len();
    let reference = found.references.iter().find(|reference| reference.start_byte == start);
    reference.unwrap_or_else(|| panic!("{place}")).role.as_str()
}

#[test]
fn names_of_typescript_have_their_roles_and_declarations_their_heads() {
    let found = facts(Language::TypeScript, TYPESCRIPT).unwrap();
    for (place, expected) in [
        ("import |fs", "import"),
        ("join as |j", "import"),
        ("class |Shape", "declaration"),
        ("extends |Base", "type"),
        ("implements |Drawn", "type"),
        ("area(|scale", "parameter"),
        ("this.|sides", "member-write"),
        ("return |j(", "call"),
        ("j(|count", "read"),
        ("  |paint(", "declaration"),
        ("with: |Brush", "type"),
        ("models.|all", "member-call"),
        ("new |Shape", "call"),
        ("const |one", "write"),
        ("(|x: number", "parameter"),
    ] {
        assert_eq!(role(&found, TYPESCRIPT, place), expected, "{place}");
    }
    let declared = |name: &str| {
        let one = found.declarations.iter().find(|one| *one.symbol.name == *name).unwrap();
        (one.signature.as_str(), one.doc.as_str())
    };
    assert_eq!(
        declared("Shape"),
        ("abstract class Shape extends Base<number> implements Drawn", "A shape\nwith sides.")
    );
    assert_eq!(declared("area"), ("area(scale?: number): number", "Its area."));
    assert_eq!(declared("twice").0, "const twice = async (x: number): Promise<number> =>");
    assert_eq!(declared("LIMIT").1, "How many.");
}

const JAVASCRIPT: &str = "\
import { render } from \"preact\";

class Counter extends Component {
  state = { n: 0 };
  static #made = 0;
  get value() { return this.state.n; }
  render(props, { n = 1, ...rest }) { return <b onClick={() => this.go(n)}>{props.text}</b>; }
}
export function App() { return <Counter text=\"a\" />; }
var seen = [], total;
export const go = function* () {};
";

#[test]
fn symbols_and_names_of_javascript_with_elements_are_found() {
    let expected = "\
2-7 class Counter
3-3 field Counter.state
4-4 field Counter.#made
5-5 method Counter.value
6-6 method Counter.render
8-8 function App
9-9 variable seen
9-9 variable total
10-10 constant go
";
    assert_eq!(outline(Language::JavaScript, JAVASCRIPT), expected);
    assert_eq!(outline(Language::JavaScriptReact, JAVASCRIPT), expected);
    assert_eq!(errors(Language::JavaScript, JAVASCRIPT), [""; 0]);
    let found = facts(Language::JavaScript, JAVASCRIPT).unwrap();
    for (place, expected) in [
        ("{ |render }", "import"),
        ("extends |Component", "type"),
        ("render(|props", "parameter"),
        ("this.|go", "member-call"),
        ("<|Counter", "read"),
        ("state.|n", "member"),
    ] {
        assert_eq!(role(&found, JAVASCRIPT, place), expected, "{place}");
    }
}

#[test]
fn errors_of_typescript_and_javascript_say_where_and_what() {
    for language in [Language::TypeScript, Language::JavaScript] {
        assert_eq!(errors(language, "function f() {\n  g(1;\n}\n"), ["1:5-1:5 missing `)`"], "{language:?}");
        assert_eq!(errors(language, "const a = ;\n").len(), 1, "{language:?}");
    }
    assert_eq!(errors(Language::TypeScript, "let a: number = 1;\n"), [""; 0]);
    assert!(!errors(Language::JavaScript, "let a: number = 1;\n").is_empty(), "types are no JavaScript");
}
