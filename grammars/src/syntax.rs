//! Parsing, and where the syntax of a text is broken.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use tree_sitter::{Node, ParseOptions, Parser, Point, Tree};

use crate::Language;

/// The largest text that is parsed, in bytes. Larger ones are data, not source.
pub const MAX_BYTES: usize = 4 * 1024 * 1024;

/// The most errors that [`syntax_errors`] reports for one text.
pub const MAX_SYNTAX_ERRORS: usize = 100;

/// Repairing a text that is far from the language can take very long; real source takes a thousandth of this.
pub(crate) const PARSE_TIME: Duration = Duration::from_secs(10);

/// As [`PARSE_TIME`], for one file of many.
pub(crate) const INDEX_TIME: Duration = Duration::from_secs(2);

/// The longest piece of text that a message quotes, in characters.
const MAX_QUOTE: usize = 40;

/// Why a text was not parsed. It says nothing about whether its syntax is right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The text is longer than [`MAX_BYTES`].
    #[error("a text of {bytes} bytes is too large to parse, the limit is {MAX_BYTES}")]
    TooLarge {
        /// The length of the text in bytes.
        bytes: usize,
    },
    /// The parser gave up after its time limit.
    #[error("parsing took longer than a few seconds")]
    TooSlow,
}

/// A place in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Position {
    /// The line, counted from 0. Lines end with `\n`.
    pub line: usize,
    /// The column in bytes, counted from 0: what the protocol calls a UTF-8 character offset.
    pub column: usize,
}

/// A part of a text; the end is exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Range {
    /// Where it starts, in bytes from the start of the text.
    pub start_byte: usize,
    /// Where it ends, in bytes from the start of the text.
    pub end_byte: usize,
    /// `start_byte` as line and column.
    pub start: Position,
    /// `end_byte` as line and column.
    pub end: Position,
}

impl Range {
    pub(crate) fn of(node: Node<'_>) -> Self {
        Self {
            start_byte: node.start_byte(),
            end_byte: node.end_byte(),
            start: position(node.start_position()),
            end: position(node.end_position()),
        }
    }

    pub(crate) fn contains(&self, byte: usize) -> bool {
        self.start_byte <= byte && byte < self.end_byte
    }
}

fn position(point: Point) -> Position {
    Position { line: point.row, column: point.column }
}

/// A place where the syntax is broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// The text that fits no rule of the language; empty where something is missing.
    pub range: Range,
    /// What is wrong, for people: ``missing `)` `` or ``unexpected `retrun x` ``.
    pub message: String,
}

/// The syntax tree of a text. Broken syntax gives a tree too, with error nodes in it.
///
/// # Errors
/// The text is larger than [`MAX_BYTES`], or so far from the language that the parser ran out of time.
pub fn parse(language: Language, text: impl AsRef<[u8]>) -> Result<Tree, ParseError> {
    parse_within(language, text.as_ref(), PARSE_TIME)
}

pub(crate) fn parse_within(language: Language, text: &[u8], time: Duration) -> Result<Tree, ParseError> {
    if text.len() > MAX_BYTES {
        return Err(ParseError::TooLarge { bytes: text.len() });
    }
    thread_local! {
        // What a parser allocates is worth keeping when many small texts follow each other.
        static PARSER: RefCell<Parser> = RefCell::new(Parser::new());
    }
    PARSER.with_borrow_mut(|parser| {
        // A grammar of another generation than the library is a fault of the build, which a test of this crate finds.
        #[allow(clippy::expect_used)]
        parser.set_language(&grammar(language)).expect("the grammars in use fit the parser");
        let in_time = deadline(time);
        let mut check = |_: &tree_sitter::ParseState| in_time();
        let options = ParseOptions::new().progress_callback(&mut check);
        let tree =
            parser.parse_with_options(&mut |at, _| text.get(at..).unwrap_or_default(), None, Some(options));
        if tree.is_none() {
            // Else the next text would be taken for the rest of this one.
            parser.reset();
        }
        tree.ok_or(ParseError::TooSlow)
    })
}

/// Where the syntax of a text is broken, in the order of the text, [`MAX_SYNTAX_ERRORS`] at most. An empty list means
/// that the parser found nothing. It is more lenient than a compiler: it takes some wrong indentation and most of older versions.
///
/// # Errors
/// As [`parse`]: the text was not checked.
pub fn syntax_errors(language: Language, text: impl AsRef<[u8]>) -> Result<Vec<SyntaxError>, ParseError> {
    let text = text.as_ref();
    Ok(faults(language, text, &parse(language, text)?))
}

/// As [`syntax_errors`], of a tree that is there already.
pub(crate) fn faults(language: Language, text: &[u8], tree: &Tree) -> Vec<SyntaxError> {
    let mut errors = Vec::new();
    let mut cursor = tree.walk();
    // Nesting can be as deep as the text is long: a loop, no recursion.
    loop {
        let node = cursor.node();
        let message = fault(language, node, text);
        let broken = message.is_some();
        errors.extend(message.map(|message| SyntaxError { range: Range::of(node), message }));
        if errors.len() == MAX_SYNTAX_ERRORS {
            return errors;
        }
        // What is inside an error is the parser's guess, not one more error.
        if !broken && may_hold_faults(language, node) && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return errors;
            }
        }
    }
}

/// What is wrong with a node itself.
fn fault(language: Language, node: Node<'_>, text: &[u8]) -> Option<String> {
    if node.is_missing() {
        let kind = node.kind();
        // Tokens are named by themselves, everything else by a word of the grammar.
        let what = if node.is_named() { kind.replace('_', " ") } else { format!("`{kind}`") };
        return Some(format!("missing {what}"));
    }
    if node.is_error() {
        return Some(match quote(&text[node.byte_range()]) {
            Some(quote) if node.parent().is_none() => format!("no valid syntax from `{quote}` on"),
            Some(quote) => format!("unexpected `{quote}`"),
            None => "unexpected end".to_owned(),
        });
    }
    is_empty_block(language, node).then(|| "missing an indented block".to_owned())
}

/// Whether a node may have faults below it; subtrees that are right are passed over.
fn may_hold_faults(language: Language, node: Node<'_>) -> bool {
    // An empty block is no error to the parser, see below.
    // Most of a text is expressions, and no block is below one.
    let may_hold_block = || node.named_child_count() > 0 && node.kind() != "expression_statement";
    node.has_error() || (language == Language::Python && may_hold_block())
}

/// The grammar of Python takes a block without a statement; Python does not. Deleting lines makes them easily.
fn is_empty_block(language: Language, node: Node<'_>) -> bool {
    language == Language::Python
        && node.kind() == "block"
        && node.named_children(&mut node.walk()).all(|child| child.kind() == "comment")
}

/// The first line of a text that is not blank, shortened.
fn quote(text: &[u8]) -> Option<String> {
    let line = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).find(|line| !line.is_empty())?;
    // Four bytes a character at most: a line of megabytes is not decoded whole.
    let line = String::from_utf8_lossy(&line[..line.len().min(4 * (MAX_QUOTE + 1))]);
    let mut short: String = line.chars().take(MAX_QUOTE).collect();
    if short.len() < line.len() {
        short.push('…');
    }
    Some(short)
}

/// Breaks off what has taken longer than a time from now on.
pub(crate) fn deadline(time: Duration) -> impl Fn() -> ControlFlow<()> {
    let end = Instant::now() + time;
    move || if Instant::now() < end { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
}

pub(crate) fn grammar(language: Language) -> tree_sitter::Language {
    match language {
        Language::Python => tree_sitter_python::LANGUAGE.into(),
        Language::Rust => tree_sitter_rust::LANGUAGE.into(),
        Language::TypeScript => tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
        Language::TypeScriptReact => tree_sitter_typescript::LANGUAGE_TSX.into(),
        Language::JavaScript | Language::JavaScriptReact => tree_sitter_javascript::LANGUAGE.into(),
    }
}
