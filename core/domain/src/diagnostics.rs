//! What a language server says about a file, in the engine's own coordinates.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::Range;

/// How bad a diagnostic is; the order is from worst to mildest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The code is broken.
    Error,
    /// Probably wrong.
    Warning,
    /// Worth knowing.
    Information,
    /// A suggestion.
    Hint,
}

/// One diagnostic of one server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Diagnostic {
    /// Where, in UTF-8 byte columns.
    pub range: Range,
    /// How bad; a server that does not say means an error.
    pub severity: Severity,
    /// The server's rule, such as `F401` or `reportUnusedImport`.
    pub code: Option<String>,
    /// Who says so, such as `Ruff`.
    pub source: Option<String>,
    /// The text for people.
    pub message: String,
    /// The diagnostic as the server sent it, to be passed back when its fixes are asked for (its `data` included).
    pub raw: serde_json::Value,
}

impl Diagnostic {
    /// The rule to group by: the code, else the source, else `unknown`.
    pub fn rule(&self) -> &str {
        self.code.as_deref().or(self.source.as_deref()).unwrap_or("unknown")
    }

    /// What makes two diagnostics the same although the lines around them moved.
    pub fn fingerprint(&self) -> (Option<&str>, Option<&str>, &str, Severity) {
        (self.source.as_deref(), self.code.as_deref(), self.message.as_str(), self.severity)
    }
}
