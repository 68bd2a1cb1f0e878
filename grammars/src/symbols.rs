//! The symbols that a text declares, as the queries in `queries/<language>/symbols.scm` find them.
//!
//! A match of a query captures `@name`, the identifier, and the declaration under the name of its kind
//! (`@function`, `@type-alias`, see [`SymbolKind`]). Where several matches share a name the widest declaration counts
//! (a function with its decorators). A capture `@lead` marks what belongs to the declaration that it stands before.
//! The rest follows from nesting: what contains what, and which functions are methods.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tree_sitter::{Node, Query, QueryCursor, QueryCursorOptions, StreamingIterator, Tree};

use crate::facts::{
    Declared, Facts, Import, Role as ReferenceRole, doc_of_comments, doc_of_string, reference, signature,
    use_tree,
};
use crate::syntax::{INDEX_TIME, PARSE_TIME, Range, SyntaxError, deadline, faults, grammar, parse_within};
use crate::{Language, ParseError, parse};

/// The most containers that a symbol names; of deeper nesting the innermost are kept.
const MAX_CONTAINERS: usize = 32;

/// The most levels of the syntax tree that declarations are looked for in; no person nests as deep.
const MAX_DEPTH: u32 = 500;

/// What a symbol is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // The words are the languages' own.
pub enum SymbolKind {
    Module,
    Class,
    Struct,
    Union,
    Enum,
    EnumMember,
    Trait,
    /// A Rust `impl` block; its name is its head: `impl Display for Shape`.
    Impl,
    Function,
    /// A function directly inside a class, trait or `impl` block.
    Method,
    Macro,
    TypeAlias,
    Constant,
    Variable,
    Field,
}

impl SymbolKind {
    /// The word for people and for JSON: `function`, `type-alias`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Module => "module",
            Self::Class => "class",
            Self::Struct => "struct",
            Self::Union => "union",
            Self::Enum => "enum",
            Self::EnumMember => "enum-member",
            Self::Trait => "trait",
            Self::Impl => "impl",
            Self::Function => "function",
            Self::Method => "method",
            Self::Macro => "macro",
            Self::TypeAlias => "type-alias",
            Self::Constant => "constant",
            Self::Variable => "variable",
            Self::Field => "field",
        }
    }

    /// The number of the nearest `SymbolKind` of the Language Server Protocol (3.17, `textDocument/documentSymbol`).
    pub fn lsp_number(self) -> u32 {
        match self {
            Self::Module => 2,
            Self::Class => 5,
            Self::Method => 6,
            Self::Field => 8,
            Self::Enum => 10,
            Self::Trait => 11,
            Self::Function | Self::Macro => 12,
            Self::Variable => 13,
            Self::Constant => 14,
            Self::Impl => 19,
            Self::EnumMember => 22,
            Self::Struct | Self::Union => 23,
            Self::TypeAlias => 26,
        }
    }

    /// The kind with this word.
    pub fn from_word(word: &str) -> Option<Self> {
        if word == Self::Method.as_str() { Some(Self::Method) } else { Self::from_capture(word) }
    }

    /// The kind with this word; methods are found by nesting, not by a query.
    fn from_capture(name: &str) -> Option<Self> {
        use SymbolKind::*;
        const ALL: [SymbolKind; 14] = [
            Module, Class, Struct, Union, Enum, EnumMember, Trait, Impl, Function, Macro, TypeAlias,
            Constant, Variable, Field,
        ];
        ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    fn is_scope(self) -> bool {
        use SymbolKind::*;
        matches!(self, Module | Function | EnumMember) || self.has_members()
    }

    fn has_members(self) -> bool {
        use SymbolKind::*;
        matches!(self, Class | Struct | Union | Enum | Trait | Impl)
    }
}

/// A declaration in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    /// The name as it is declared; of an `impl` block its head.
    pub name: Arc<str>,
    /// What it is.
    pub kind: SymbolKind,
    /// The whole declaration with the decorators, attributes and documentation before it.
    pub range: Range,
    /// The name; of an `impl` block the type that it is for.
    pub selection_range: Range,
    /// The names of what it is declared in, outermost first. An `impl` block counts under the name of its type.
    pub container: Arc<[Arc<str>]>,
}

impl Symbol {
    /// The name with those of its containers before it: `Shape.area` in Python, `Shape::area` in Rust.
    pub fn qualified_name(&self, language: Language) -> String {
        let mut parts: Vec<&str> = self.container.iter().map(AsRef::as_ref).collect();
        parts.push(&self.name);
        parts.join(language.path_separator())
    }
}

/// The symbols that a text declares, in the order of the text, what contains others before them. Local variables are
/// not among them, local functions are. Works on broken syntax as well as the parser could make sense of it.
///
/// # Errors
/// As [`parse`].
pub fn symbols(language: Language, text: impl AsRef<[u8]>) -> Result<Vec<Symbol>, ParseError> {
    let text = text.as_ref();
    declared(language, text, &parse(language, text)?)
}

/// What a text declares and where its syntax is broken, from one parse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    /// As [`symbols`] finds them.
    pub symbols: Vec<Symbol>,
    /// As [`syntax_errors`](crate::syntax_errors) finds them.
    pub syntax_errors: Vec<SyntaxError>,
}

/// What a text declares and where its syntax is broken, for the price of one parse.
///
/// # Errors
/// As [`parse`].
pub fn outline(language: Language, text: impl AsRef<[u8]>) -> Result<Outline, ParseError> {
    let text = text.as_ref();
    let tree = parse(language, text)?;
    Ok(Outline { symbols: declared(language, text, &tree)?, syntax_errors: faults(language, text, &tree) })
}

fn declared(language: Language, text: &[u8], tree: &Tree) -> Result<Vec<Symbol>, ParseError> {
    let query = CodeQuery::symbols(language);
    Ok(with_containers(captured(query, text, tree.root_node(), PARSE_TIME)?.declarations, text))
}

/// Everything the queries find, from one parse.
pub(crate) fn details(language: Language, text: &[u8]) -> Result<Facts, ParseError> {
    let tree = parse_within(language, text, INDEX_TIME)?;
    let found = captured(CodeQuery::whole(language), text, tree.root_node(), INDEX_TIME)?;
    let piece = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
    let described: Vec<(String, String)> = found
        .declarations
        .iter()
        .map(|Declaration { kind, head, range, signed, doc, .. }| {
            let signed = match kind {
                // Their values can be long.
                SymbolKind::EnumMember
                | SymbolKind::Field
                | SymbolKind::Variable
                | SymbolKind::Constant
                | SymbolKind::Macro => {
                    piece(signed.start, signed.end).split(|byte| *byte == b'\n').next().unwrap_or_default()
                }
                _ => piece(signed.start, signed.end),
            };
            let doc = match doc {
                Some(string) => doc_of_string(&String::from_utf8_lossy(piece(string.start, string.end))),
                None if range.start_byte < *head => {
                    doc_of_comments(&String::from_utf8_lossy(piece(range.start_byte, *head)))
                }
                None => String::new(),
            };
            (signature(signed), doc)
        })
        .collect();
    let symbols = with_containers(found.declarations, text).into_iter();
    let declarations = symbols
        .zip(described)
        .map(|(symbol, (signature, doc))| Declared { symbol, signature, doc })
        .collect();
    Ok(Facts { declarations, imports: found.imports, references: found.references })
}

/// The innermost symbol at a line (counted from 0): the one around its first character that is not blank, or around
/// the line's end where it is blank. `None` outside of all symbols and after the text's last line.
///
/// # Errors
/// As [`parse`].
pub fn symbol_at(
    language: Language,
    text: impl AsRef<[u8]>,
    line: usize,
) -> Result<Option<Symbol>, ParseError> {
    let text = text.as_ref();
    let Some(byte) = first_character(text, line) else { return Ok(None) };
    let around = symbols(language, text)?.into_iter().filter(|symbol| symbol.range.contains(byte));
    Ok(around.min_by_key(|symbol| symbol.range.end_byte - symbol.range.start_byte))
}

/// Where the first character of a line that is not blank stands, in bytes from the text's start.
fn first_character(text: &[u8], line: usize) -> Option<usize> {
    let mut start = 0;
    for (number, content) in text.split(|byte| *byte == b'\n').enumerate() {
        if number == line {
            return Some(start + (content.len() - content.trim_ascii_start().len()));
        }
        start += content.len() + 1;
    }
    None
}

struct Declaration {
    kind: SymbolKind,
    /// Where it starts in bytes, without what stands before it.
    head: usize,
    range: Range,
    selection_range: Range,
    /// What its signature is read from: up to its body or value.
    signed: std::ops::Range<usize>,
    /// A string that documents it.
    doc: Option<std::ops::Range<usize>>,
}

/// What the queries found in a text.
#[derive(Default)]
struct Captured {
    /// In the order of the text, what contains others before them.
    declarations: Vec<Declaration>,
    imports: Vec<Import>,
    references: Vec<crate::facts::Reference>,
}

struct CodeQuery {
    query: Query,
    /// By the index of a capture.
    roles: Vec<Role>,
}

#[derive(Clone, Copy)]
enum Role {
    Name,
    Lead,
    Kind(SymbolKind),
    Reference(ReferenceRole),
    ImportTree,
    ImportModule,
    ImportName,
    ImportAlias,
    /// Only for a condition of the query: its name begins with `_`.
    Condition,
}

impl CodeQuery {
    // The queries are part of this crate: a fault in one is found by any test that uses its language.
    #[allow(clippy::expect_used)]
    fn new(language: Language, source: &str) -> Self {
        let query = Query::new(&grammar(language), source).expect("the query fits the grammar");
        let role = |name: &&str| match *name {
            "name" => Role::Name,
            "lead" => Role::Lead,
            "import.tree" => Role::ImportTree,
            "import.module" => Role::ImportModule,
            "import.name" => Role::ImportName,
            "import.alias" => Role::ImportAlias,
            other if other.starts_with('_') => Role::Condition,
            other => match other.strip_prefix("ref.") {
                Some(word) => Role::Reference(ReferenceRole::from_word(word).expect("a role of references")),
                None => Role::Kind(SymbolKind::from_capture(other).expect("captures are kinds of symbols")),
            },
        };
        let roles = query.capture_names().iter().map(role).collect();
        Self { query, roles }
    }

    /// Symbols alone.
    fn symbols(language: Language) -> &'static Self {
        static QUERIES: [OnceLock<CodeQuery>; Language::ALL.len()] =
            [const { OnceLock::new() }; Language::ALL.len()];
        QUERIES[language as usize].get_or_init(|| Self::new(language, language.symbol_queries()))
    }

    /// Symbols, imports and references in one run, which takes little longer than one of them.
    fn whole(language: Language) -> &'static Self {
        static QUERIES: [OnceLock<CodeQuery>; Language::ALL.len()] =
            [const { OnceLock::new() }; Language::ALL.len()];
        QUERIES[language as usize].get_or_init(|| Self::new(language, language.query_source()))
    }
}

fn captured(
    CodeQuery { query, roles }: &CodeQuery,
    text: &[u8],
    root: Node<'_>,
    time: Duration,
) -> Result<Captured, ParseError> {
    let mut by_name: HashMap<usize, Declaration> = HashMap::new();
    let mut leads: HashMap<usize, Range> = HashMap::new();
    let mut all = Captured::default();
    let mut cursor = QueryCursor::new();
    cursor.set_max_start_depth(Some(MAX_DEPTH));
    // A query can take time that is square in the length of a broken text.
    let in_time = deadline(time);
    let mut out_of_time = false;
    let mut check = |_: &tree_sitter::QueryCursorState| {
        let flow = in_time();
        out_of_time |= flow.is_break();
        flow
    };
    let written = |node: Node<'_>| words(text, node.start_byte(), node.end_byte());
    let options = QueryCursorOptions::new().progress_callback(&mut check);
    let mut matches = cursor.matches_with_options(query, root, text, options);
    while let Some(found) = matches.next() {
        let (mut name, mut declaration) = (None, None);
        let (mut module, mut imported, mut alias) = (None, None, None);
        for capture in found.captures() {
            let node = capture.node;
            match roles[capture.index as usize] {
                Role::Reference(role) => all.references.push(reference(Range::of(node), role)),
                Role::Name => name = Some(Range::of(node)),
                Role::Kind(kind) => declaration = Some((kind, node)),
                // Some take their line's end with them: what they lead begins where they end, blanks aside.
                Role::Lead => {
                    let range = Range::of(node);
                    leads.insert(without_blanks_after(text, range.end_byte), range);
                }
                Role::ImportTree => all.imports.extend(use_tree(&written(node), node.start_position().row)),
                Role::ImportModule => module = Some(node),
                Role::ImportName => imported = Some(node),
                Role::ImportAlias => alias = Some(node),
                Role::Condition => {}
            }
        }
        if let Some(module) = module {
            all.imports.push(Import {
                module: written(module),
                name: imported.map(written),
                alias: alias.map(written),
                line: module.start_position().row,
            });
        }
        let (Some(selection_range), Some((kind, node))) = (name, declaration) else { continue };
        match by_name.entry(selection_range.start_byte) {
            Entry::Vacant(entry) => _ = entry.insert(Declaration::new(kind, node, selection_range)),
            Entry::Occupied(mut entry) => {
                let known = entry.get();
                // A constant whose value is a function is a function.
                let says_more = kind == SymbolKind::Function && known.kind != SymbolKind::Function;
                if node.start_byte() < known.head || node.start_byte() == known.head && says_more {
                    entry.insert(Declaration::new(kind, node, selection_range));
                }
            }
        }
    }
    drop(matches);
    if out_of_time {
        return Err(ParseError::TooSlow);
    }
    let mut found: Vec<Declaration> = by_name.into_values().collect();
    for declaration in &mut found {
        while let Some(lead) = leads.get(&declaration.range.start_byte) {
            // Repaired syntax can hold nodes without any text.
            if lead.start_byte >= declaration.range.start_byte {
                break;
            }
            declaration.range.start_byte = lead.start_byte;
            declaration.range.start = lead.start;
        }
    }
    // `a, b = 1, 2` are two names in one range: the name's place settles their order.
    found.sort_by_key(|Declaration { range, selection_range, .. }| {
        (range.start_byte, usize::MAX - range.end_byte, selection_range.start_byte)
    });
    all.declarations = found;
    Ok(all)
}

impl Declaration {
    fn new(kind: SymbolKind, node: Node<'_>, selection_range: Range) -> Self {
        let part = |name: &str| node.child_by_field_name(name);
        let inner = part("definition").or_else(|| part("declaration")).unwrap_or(node);
        let value = || inner.named_child(0)?.child_by_field_name("value")?.child_by_field_name("body");
        let body =
            inner.child_by_field_name("body").or_else(|| value().filter(|_| kind == SymbolKind::Function));
        // The first statement of a body, when it is nothing but a string.
        let first = body.and_then(|body| body.named_child(0)).filter(|n| n.kind() == "expression_statement");
        let string = first.and_then(|statement| statement.named_child(0)).filter(|n| n.kind() == "string");
        Self {
            kind,
            head: node.start_byte(),
            range: Range::of(node),
            selection_range,
            signed: inner.start_byte()..body.map_or(inner.end_byte(), |body| body.start_byte()),
            doc: string.map(|string| string.byte_range()),
        }
    }
}

fn without_blanks_after(text: &[u8], at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    at + (rest.len() - rest.trim_ascii_start().len())
}

/// Names the declarations, finds what each is in, and tells methods from functions. They come in the order of the text.
fn with_containers(declarations: Vec<Declaration>, text: &[u8]) -> Vec<Symbol> {
    struct Scope {
        end_byte: usize,
        kind: SymbolKind,
        path: Arc<[Arc<str>]>,
    }
    let outside: Arc<[Arc<str>]> = Arc::new([]);
    let mut scopes: Vec<Scope> = Vec::new();
    let mut symbols = Vec::with_capacity(declarations.len());
    for Declaration { mut kind, head, range, selection_range, .. } in declarations {
        while scopes.last().is_some_and(|scope| scope.end_byte <= range.start_byte) {
            scopes.pop();
        }
        let scope = scopes.last();
        if kind == SymbolKind::Function && scope.is_some_and(|scope| scope.kind.has_members()) {
            kind = SymbolKind::Method;
        }
        let container = scope.map_or_else(|| Arc::clone(&outside), |scope| Arc::clone(&scope.path));
        let selected = words(text, selection_range.start_byte, selection_range.end_byte);
        let name: Arc<str> = match kind {
            SymbolKind::Impl => words(text, head, selection_range.end_byte).into(),
            _ => selected.as_str().into(),
        };
        if kind.is_scope() || kind == SymbolKind::Method {
            // `impl<T> Stack<T>` holds members of `Stack`.
            let segment: Arc<str> = match (kind, selected.split_once('<')) {
                (SymbolKind::Impl, Some((before, _))) if !before.is_empty() => before.into(),
                (SymbolKind::Impl, _) => selected.as_str().into(),
                _ => Arc::clone(&name),
            };
            let skipped = (container.len() + 1).saturating_sub(MAX_CONTAINERS);
            let path = container.iter().skip(skipped).cloned().chain([segment]).collect();
            scopes.push(Scope { end_byte: range.end_byte, kind, path });
        }
        symbols.push(Symbol { name, kind, range, selection_range, container });
    }
    symbols
}

/// A piece of the text with every run of blanks as one space.
fn words(text: &[u8], from: usize, to: usize) -> String {
    let piece = text.get(from..to).unwrap_or_default();
    String::from_utf8_lossy(piece).split_whitespace().collect::<Vec<_>>().join(" ")
}
