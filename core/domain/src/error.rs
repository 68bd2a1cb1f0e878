//! The one error type of the facade: a stable code, a message for people, and what would help.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Stable kinds of failure; each has a name, a number and a JSON-RPC code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ErrorKind {
    /// An unknown name, id or path.
    NotFound,
    /// The name is taken.
    AlreadyExists,
    /// A file, option or parameter has a value that is not allowed.
    ValidationFailed,
    /// The state of a plan or entity does not allow it.
    InvalidState,
    /// The command line is wrong.
    Usage,
    /// A configured limit was reached.
    BudgetExceeded,
    /// A plan's own work failed.
    PlanError,
    /// The method does not exist.
    OperationNotFound,
    /// This version does not have it.
    NotAvailable,
    /// A model provider failed.
    Provider,
    /// The database is missing, damaged, newer, or locked.
    Database,
    /// Something on the network did not answer.
    Network,
    /// The configuration is wrong or incomplete.
    Configuration,
    /// A file or directory could not be read or written.
    Io,
    /// Anything else; a defect of ours.
    Internal,
}

impl ErrorKind {
    /// The stable name, such as `NOT_FOUND`.
    pub fn code(self) -> &'static str {
        match self {
            Self::NotFound => "NOT_FOUND",
            Self::AlreadyExists => "ALREADY_EXISTS",
            Self::ValidationFailed => "VALIDATION_FAILED",
            Self::InvalidState => "INVALID_STATE",
            Self::Usage => "USAGE",
            Self::BudgetExceeded => "BUDGET_EXCEEDED",
            Self::PlanError => "PLAN_ERROR",
            Self::OperationNotFound => "OPERATION_NOT_FOUND",
            Self::NotAvailable => "NOT_AVAILABLE",
            Self::Provider => "PROVIDER",
            Self::Database => "DATABASE",
            Self::Network => "NETWORK",
            Self::Configuration => "CONFIGURATION",
            Self::Io => "IO",
            Self::Internal => "INTERNAL",
        }
    }

    /// The number shown with the code.
    pub fn number(self) -> u16 {
        match self {
            Self::NotFound | Self::OperationNotFound => 404,
            Self::AlreadyExists | Self::InvalidState => 409,
            Self::ValidationFailed => 422,
            Self::Usage => 400,
            Self::BudgetExceeded => 402,
            Self::PlanError => 521,
            Self::NotAvailable => 501,
            Self::Provider => 520,
            Self::Database => 522,
            Self::Network => 524,
            Self::Configuration => 525,
            Self::Io | Self::Internal => 500,
        }
    }

    /// The JSON-RPC error code.
    pub fn json_rpc(self) -> i32 {
        match self {
            Self::NotFound => -32001,
            Self::InvalidState => -32004,
            Self::AlreadyExists => -32005,
            Self::BudgetExceeded => -32006,
            Self::PlanError => -32008,
            Self::ValidationFailed | Self::Usage => -32602,
            Self::OperationNotFound | Self::NotAvailable => -32601,
            _ => -32603,
        }
    }
}

/// A failure as people, scripts and protocols see it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// Which kind.
    pub kind: ErrorKind,
    /// One sentence: what is wrong, where.
    pub message: String,
    /// More, such as the place in a file.
    pub detail: Option<String>,
    /// What to do, most useful first; commands are whole.
    pub suggestions: Vec<String>,
    /// Structured facts that belong into `data` of the answer.
    pub data: Option<serde_json::Value>,
}

/// `Permission denied (os error 13)` says no more to people than `Permission denied`.
pub fn without_os_numbers(mut text: String) -> String {
    const START: &str = " (os error ";
    while let Some(at) = text.find(START) {
        let rest = &text[at + START.len()..];
        let Some(end) = rest.find(')').filter(|end| rest[..*end].bytes().all(|b| b.is_ascii_digit())) else {
            break;
        };
        text.replace_range(at..at + START.len() + end + 1, "");
    }
    text
}

/// What operations return.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// A failure with a message only.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let message = without_os_numbers(message.into());
        Self { kind, message, detail: None, suggestions: Vec::new(), data: None }
    }

    /// [`ErrorKind::NotFound`].
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, message)
    }

    /// [`ErrorKind::InvalidState`].
    pub fn invalid_state(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidState, message)
    }

    /// [`ErrorKind::ValidationFailed`].
    pub fn validation(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::ValidationFailed, message)
    }

    /// [`ErrorKind::Internal`].
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message)
    }

    /// Adds detail.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(without_os_numbers(detail.into()));
        self
    }

    /// Adds a suggestion, once.
    #[must_use]
    pub fn suggest(mut self, suggestion: impl Into<String>) -> Self {
        let suggestion = suggestion.into();
        if !self.suggestions.contains(&suggestion) {
            self.suggestions.push(suggestion);
        }
        self
    }

    /// Adds structured facts.
    #[must_use]
    pub fn data(mut self, data: serde_json::Value) -> Self {
        self.data = Some(data);
        self
    }
}

impl From<crate::ids::InvalidId> for Error {
    fn from(error: crate::ids::InvalidId) -> Self {
        Self::validation(error.to_string())
    }
}

impl From<crate::name::InvalidName> for Error {
    fn from(error: crate::name::InvalidName) -> Self {
        Self::validation(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_the_operating_system_are_left_out() {
        let error = Error::internal("/x: Permission denied (os error 13); /y: gone (os error 2)")
            .detail("a (os error b)");
        assert_eq!(error.message, "/x: Permission denied; /y: gone");
        assert_eq!(error.detail.as_deref(), Some("a (os error b)"));
    }
}
