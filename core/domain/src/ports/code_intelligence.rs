//! What language servers can be asked about code, and what they answer, in byte columns and paths of the workspace.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::Range;

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Relative to the workspace, with `/`; absolute when the file lies outside of it.
    pub path: String,
    /// The file lies outside of the workspace: a library, or what comes with the language.
    pub outside: bool,
    /// Where.
    pub range: Range,
    /// The source line it begins on, without its end; empty when the file cannot be read as text.
    pub line: String,
}

/// What places are wanted for a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceQuestion {
    /// Where it is defined.
    Definition,
    /// Where the type of it is defined.
    TypeDefinition,
    /// What implements it.
    Implementation,
    /// Where it is referred to.
    References {
        /// With the places where it is declared.
        include_declaration: bool,
    },
}

/// What could be written at a place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Completion {
    /// As it is shown.
    pub label: String,
    /// In the protocol's words, such as `method`.
    pub kind: Option<String>,
    /// Such as its signature or where it comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// What would be inserted, where it is not the label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub insert: Option<String>,
}

/// Completions in the server's order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Completions {
    /// The best first.
    pub items: Vec<Completion>,
    /// The server has more and would narrow them down by what is typed on.
    pub incomplete: bool,
}

/// One way to call what a place is in the arguments of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Signature {
    /// Such as `join(parts: list[str]) -> str`.
    pub label: String,
    /// What it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub documentation: Option<String>,
    /// The parameters in order.
    pub parameters: Vec<String>,
    /// The one that is being written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_parameter: Option<String>,
    /// The signature that fits what is written so far.
    pub active: bool,
}

/// A symbol and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedSymbol {
    /// Its own name.
    pub name: String,
    /// In the protocol's words, such as `function`.
    pub kind: String,
    /// What it is in, or what a server says beside it.
    pub container: Option<String>,
    /// Where.
    pub place: Place,
    /// In a hierarchy of calls: where the calls are, in the file of the caller.
    pub calls: Vec<Range>,
}

/// Which way to go from a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Hierarchy {
    /// What calls it.
    Callers,
    /// What it calls.
    Callees,
    /// What it is derived from.
    Supertypes,
    /// What is derived from it.
    Subtypes,
}

/// A file as it would be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// Relative to the workspace root.
    pub path: String,
    /// The whole text.
    pub text: String,
}
