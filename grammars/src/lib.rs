//! What a file is, seen from its text alone: which language it is in, where its syntax is broken, which symbols it
//! declares. Needs no language server and no project, so it answers in milliseconds and for files that do not compile.
//!
//! Two levels. [`detect`] and [`LanguageId`] know by name every common language (the data is in `languages.txt`).
//! [`Language`] is the few that this crate can parse: [`syntax_errors`], [`symbols`], [`outline`] (both from one parse) and
//! [`symbol_at`] work on those.
//! What counts as a symbol is data too: `queries/<language>/symbols.scm`. [`facts`] is all that an index of code wants of a
//! text, in one go.
//!
//! Texts are bytes: they need not be UTF-8. Positions are bytes as well, see [`Position`].

mod detect;
mod facts;
mod language;
mod symbols;
mod syntax;

pub use detect::detect;
pub use facts::{Declared, Facts, Import, Reference, Role, facts};
pub use language::{Language, LanguageId};
pub use symbols::{Outline, Symbol, SymbolKind, outline, symbol_at, symbols};
pub use syntax::{
    MAX_BYTES, MAX_SYNTAX_ERRORS, ParseError, Position, Range, SyntaxError, parse, syntax_errors,
};
