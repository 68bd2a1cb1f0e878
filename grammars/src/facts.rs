//! Everything of a text that an index of code keeps, from one parse and one run of the queries: what it declares, with
//! signature and documentation; what it imports; and where it uses which names, in which role as far as syntax tells.
//!
//! `queries/<language>/imports.scm` captures `@import.module`, `@import.name` and `@import.alias`, one match per name, or
//! `@import.tree` where imports nest. `queries/<language>/references.scm` captures names as `@ref.<role>`, see [`Role`].

use crate::symbols::{Symbol, details};
use crate::syntax::{Position, Range};
use crate::{Language, ParseError};

/// What an index keeps of one text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts {
    /// What it declares, in the order of the text.
    pub declarations: Vec<Declared>,
    /// What it imports, in the order of the text.
    pub imports: Vec<Import>,
    /// Where names stand, in the order of the text; each place once.
    pub references: Vec<Reference>,
}

/// A symbol with what people want to read of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    /// The symbol.
    pub symbol: Symbol,
    /// Its head as it is written, without body and decorators, blanks as single spaces: `def area(self) -> float`.
    pub signature: String,
    /// Its documentation without comment marks and quotes; empty where there is none.
    pub doc: String,
}

/// A name that a text brings in from elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    /// The module as it is written: `os.path`, `.models`, `std::collections`.
    pub module: String,
    /// What of it: `join`, `*`; `None` for the module itself.
    pub name: Option<String>,
    /// The name it has here, where it is given another.
    pub alias: Option<String>,
    /// The line, counted from 0.
    pub line: usize,
}

/// A place where a name stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reference {
    /// Where it starts, in bytes from the text's start.
    pub start_byte: usize,
    /// Where it ends, exclusive.
    pub end_byte: usize,
    /// `start_byte` as line and column; a name never spans lines.
    pub start: Position,
    /// What it does there.
    pub role: Role,
}

/// What a name does where it stands. Of several that fit, the first of this list counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Role {
    /// It is declared: the name of a class, function, field.
    Declaration,
    /// It is a parameter.
    Parameter,
    /// It is imported.
    Import,
    /// It names an argument of a call.
    Argument,
    /// It is called.
    Call,
    /// It is called as a member: `x.name()`.
    MemberCall,
    /// It names a type.
    Type,
    /// It is bound or assigned.
    Write,
    /// A member of something is assigned: `x.name = 1`.
    MemberWrite,
    /// It is a member of something: `x.name`.
    Member,
    /// Anything else: its value is used.
    Read,
}

impl Role {
    /// All of them; each stands at the place of its number.
    pub const ALL: [Self; 11] = {
        use Role::*;
        [Declaration, Parameter, Import, Argument, Call, MemberCall, Type, Write, MemberWrite, Member, Read]
    };

    /// The word for people, JSON and queries: `member-call`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Declaration => "declaration",
            Self::Parameter => "parameter",
            Self::Import => "import",
            Self::Argument => "argument",
            Self::Call => "call",
            Self::MemberCall => "member-call",
            Self::Type => "type",
            Self::Write => "write",
            Self::MemberWrite => "member-write",
            Self::Member => "member",
            Self::Read => "read",
        }
    }

    pub(crate) fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == word)
    }
}

/// What a text declares, imports and uses.
///
/// # Errors
/// As [`parse`](crate::parse), with a shorter time limit: an index of many files does not wait long for one.
pub fn facts(language: Language, text: impl AsRef<[u8]>) -> Result<Facts, ParseError> {
    let mut facts = details(language, text.as_ref())?;
    facts.references.sort_by_key(|reference| (reference.start_byte, reference.role));
    facts.references.dedup_by_key(|reference| reference.start_byte);
    facts.imports.sort_by_key(|import| import.line);
    Ok(facts)
}

/// The most names that are read out of one `use`.
const MAX_TREE: usize = 1000;

/// The names that a Rust `use` brings in: `a::{b, c::{self, d as e}, f::*}`.
pub(crate) fn use_tree(tree: &str, line: usize) -> Vec<Import> {
    let mut imports = Vec::new();
    // The prefix in front of each open brace, the innermost last.
    let mut prefixes: Vec<String> = vec![String::new()];
    let mut rest = tree;
    while imports.len() < MAX_TREE {
        let end = rest.find(['{', '}', ',']).unwrap_or(rest.len());
        let (piece, mark) = (rest[..end].trim(), rest[end..].chars().next());
        let prefix = prefixes.last().cloned().unwrap_or_default();
        match mark {
            Some('{') => prefixes.push(format!("{prefix}{piece}")),
            _ => {
                imports.extend(used(&prefix, piece, line));
                if mark == Some('}') {
                    prefixes.pop();
                }
            }
        }
        if mark.is_none() || prefixes.len() > MAX_TREE {
            break;
        }
        rest = &rest[end + 1..];
    }
    imports
}

fn used(prefix: &str, piece: &str, line: usize) -> Option<Import> {
    let (path, alias) = match piece.split_once(" as ") {
        Some((path, alias)) => (path.trim(), Some(alias.trim().to_owned())),
        None => (piece, None),
    };
    if path.is_empty() {
        return None;
    }
    let whole: String = format!("{prefix}{path}").split_whitespace().collect();
    let whole = whole.strip_suffix("::self").unwrap_or(&whole);
    let (module, name) = match whole.rsplit_once("::") {
        Some((module, name)) => (module.to_owned(), Some(name.to_owned())),
        None => (whole.to_owned(), None),
    };
    Some(Import { module, name, alias, line })
}

/// Documentation as comments: `///`, `/** */`. `lead` is what stands before a declaration.
pub(crate) fn doc_of_comments(lead: &str) -> String {
    let mut lines: Vec<&str> = Vec::new();
    let mut inside = false;
    for line in lead.lines().map(str::trim) {
        if inside || (line.starts_with("/**") && !line.starts_with("/**/")) {
            let line = if inside { line } else { &line[3..] };
            inside = !line.ends_with("*/");
            let line = line.strip_suffix("*/").unwrap_or(line);
            let line = line.trim_start().strip_prefix('*').unwrap_or(line);
            lines.push(line.strip_prefix(' ').unwrap_or(line).trim_end());
        } else if let Some(line) = line.strip_prefix("///").filter(|line| !line.starts_with('/')) {
            lines.push(line.strip_prefix(' ').unwrap_or(line));
        }
    }
    limited(lines.join("\n").trim_matches('\n'))
}

/// A documentation string as it is written, with prefix and quotes: what it says, its indentation taken away.
pub(crate) fn doc_of_string(written: &str) -> String {
    let written = written.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let quotes = ["\"\"\"", "'''", "\"", "'"];
    let quote = quotes.into_iter().find(|quote| written.starts_with(quote)).unwrap_or("");
    let inner = written.strip_prefix(quote).unwrap_or(written);
    let inner = inner.strip_suffix(quote).unwrap_or(inner);
    let indentation = inner.lines().skip(1).filter(|line| !line.trim().is_empty());
    let indentation = indentation.map(|line| line.len() - line.trim_start().len()).min().unwrap_or(0);
    let dedented = inner.lines().enumerate().map(|(at, line)| match at {
        0 => line.trim(),
        _ => line.get(indentation..).unwrap_or_default().trim_end(),
    });
    limited(dedented.collect::<Vec<_>>().join("\n").trim())
}

/// The longest documentation that is kept, in bytes.
const MAX_DOC: usize = 4096;
/// The longest signature that is kept, in bytes.
const MAX_SIGNATURE: usize = 500;

fn limited(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_DOC)].to_owned()
}

/// A head of a declaration as one line.
pub(crate) fn signature(head: &[u8]) -> String {
    let head = String::from_utf8_lossy(&head[..head.len().min(2 * MAX_SIGNATURE)]);
    let words = head.split_whitespace().collect::<Vec<_>>().join(" ");
    let words = words.trim_end_matches([':', '{', ';', ',', '=']).trim_end();
    words[..words.floor_char_boundary(MAX_SIGNATURE)].to_owned()
}

/// A range on one line or many as the start of a reference.
pub(crate) fn reference(range: Range, role: Role) -> Reference {
    Reference { start_byte: range.start_byte, end_byte: range.end_byte, start: range.start, role }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(tree: &str) -> Vec<String> {
        let shown = |import: Import| {
            let name = import.name.map(|name| format!(" {name}")).unwrap_or_default();
            format!("{}{name}{}", import.module, import.alias.map(|a| format!(" as {a}")).unwrap_or_default())
        };
        use_tree(tree, 0).into_iter().map(shown).collect()
    }

    #[test]
    fn a_use_is_taken_apart() {
        assert_eq!(names("a"), ["a"]);
        assert_eq!(names("a::b as c"), ["a b as c"]);
        assert_eq!(names("a::{b, c::{self, d as e,}, f::*}"), ["a b", "a c", "a::c d as e", "a::f *"]);
        assert_eq!(names("{x, y::z}"), ["x", "y z"]);
        assert_eq!(names("a::{"), Vec::<String>::new());
        assert_eq!(names("}}}"), Vec::<String>::new());
    }

    #[test]
    fn documentation_loses_its_marks_and_indentation() {
        assert_eq!(doc_of_comments("/// One.\n    ///\n    ///  Two.\n#[test]\n"), "One.\n\n Two.");
        assert_eq!(doc_of_comments("/** One.\n * Two. */"), "One.\nTwo.");
        assert_eq!(doc_of_comments("// no\n//// no\n/**/"), "");
        assert_eq!(
            doc_of_string("r\"\"\"One.\n\n    Two.\n      Three.\n    \"\"\""),
            "One.\n\nTwo.\n  Three."
        );
        assert_eq!(doc_of_string("'x'"), "x");
        assert_eq!(doc_of_string("\""), "");
    }

    #[test]
    fn roles_are_numbered_as_listed() {
        assert!(Role::ALL.iter().enumerate().all(|(at, role)| *role as usize == at));
        assert!(Role::ALL.iter().all(|role| Role::from_word(role.as_str()) == Some(*role)));
    }
}
