//! The error every command ends with: a stable code, a message for people, and what to do about it.

use serde_json::{Map, Value, json};

/// The stable codes of failures. Scripts may rely on the names and the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// A name or id that nothing has.
    NotFound,
    /// Something of that name exists already.
    AlreadyExists,
    /// A configuration file or a value that breaks a rule.
    ValidationFailed,
    /// The current state does not allow it.
    InvalidState,
    /// The command line itself is wrong.
    Usage,
    /// A provider or server wants credentials.
    Unauthenticated,
    /// A provider or server refuses.
    Forbidden,
    /// A provider or server asks to slow down.
    RateLimited,
    /// A model provider failed.
    Provider,
    /// The database failed.
    Database,
    /// The network failed.
    Network,
    /// The configuration is wrong.
    Configuration,
    /// A configured limit was reached.
    BudgetExceeded,
    /// A plan's own work failed.
    PlanError,
    /// An operation that this program does not have.
    OperationNotFound,
    /// A part of the product that this version does not have.
    NotAvailable,
    /// A file or directory could not be read or written.
    Io,
    /// Anything else.
    Internal,
}

impl ErrorCode {
    /// All codes.
    pub const ALL: [ErrorCode; 18] = [
        ErrorCode::NotFound,
        ErrorCode::AlreadyExists,
        ErrorCode::ValidationFailed,
        ErrorCode::InvalidState,
        ErrorCode::Usage,
        ErrorCode::Unauthenticated,
        ErrorCode::Forbidden,
        ErrorCode::RateLimited,
        ErrorCode::Provider,
        ErrorCode::Database,
        ErrorCode::Network,
        ErrorCode::Configuration,
        ErrorCode::BudgetExceeded,
        ErrorCode::PlanError,
        ErrorCode::OperationNotFound,
        ErrorCode::NotAvailable,
        ErrorCode::Io,
        ErrorCode::Internal,
    ];

    /// The name, such as `NOT_FOUND`.
    pub fn name(self) -> &'static str {
        match self {
            ErrorCode::NotFound => "NOT_FOUND",
            ErrorCode::AlreadyExists => "ALREADY_EXISTS",
            ErrorCode::ValidationFailed => "VALIDATION_FAILED",
            ErrorCode::InvalidState => "INVALID_STATE",
            ErrorCode::Usage => "USAGE",
            ErrorCode::Unauthenticated => "UNAUTHENTICATED",
            ErrorCode::Forbidden => "FORBIDDEN",
            ErrorCode::RateLimited => "RATE_LIMITED",
            ErrorCode::Provider => "PROVIDER",
            ErrorCode::Database => "DATABASE",
            ErrorCode::Network => "NETWORK",
            ErrorCode::Configuration => "CONFIGURATION",
            ErrorCode::BudgetExceeded => "BUDGET_EXCEEDED",
            ErrorCode::PlanError => "PLAN_ERROR",
            ErrorCode::OperationNotFound => "OPERATION_NOT_FOUND",
            ErrorCode::NotAvailable => "NOT_AVAILABLE",
            ErrorCode::Io => "IO",
            ErrorCode::Internal => "INTERNAL",
        }
    }

    /// The number that goes with the name.
    pub fn number(self) -> u16 {
        match self {
            ErrorCode::NotFound | ErrorCode::OperationNotFound => 404,
            ErrorCode::AlreadyExists | ErrorCode::InvalidState => 409,
            ErrorCode::ValidationFailed => 422,
            ErrorCode::Usage => 400,
            ErrorCode::BudgetExceeded => 402,
            ErrorCode::PlanError => 521,
            ErrorCode::NotAvailable => 501,
            ErrorCode::Unauthenticated => 401,
            ErrorCode::Forbidden => 403,
            ErrorCode::RateLimited => 429,
            ErrorCode::Provider => 520,
            ErrorCode::Database => 522,
            ErrorCode::Network => 524,
            ErrorCode::Configuration => 525,
            ErrorCode::Io | ErrorCode::Internal => 500,
        }
    }

    /// The code with this name; an unknown name is [`ErrorCode::Internal`].
    pub fn from_name(name: &str) -> ErrorCode {
        Self::ALL.into_iter().find(|c| c.name() == name).unwrap_or(ErrorCode::Internal)
    }

    /// The exit code of a run that ends with this error.
    pub fn exit_code(self) -> u8 {
        if self == ErrorCode::Usage { 2 } else { 1 }
    }
}

/// A failure as people and programs see it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct AppError {
    /// What kind of failure.
    pub code: ErrorCode,
    /// One sentence: what went wrong.
    pub message: String,
    /// More about it: where, why, what would be right.
    pub detail: Option<String>,
    /// Commands or advice, most useful first.
    pub suggestions: Vec<String>,
}

impl AppError {
    /// An error without details.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), detail: None, suggestions: Vec::new() }
    }

    /// A wrong command line; exit code 2.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Usage, message)
    }

    /// Adds the details.
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Adds a command to try, or advice.
    pub fn suggest(mut self, suggestion: impl Into<String>) -> Self {
        self.suggestions.push(suggestion.into());
        self
    }

    /// The number of the code.
    pub fn number(&self) -> u16 {
        self.code.number()
    }

    /// `{code, number, message, detail?, suggestions?}`.
    pub fn to_json(&self) -> Value {
        let mut object = Map::new();
        object.insert("code".into(), json!(self.code.name()));
        object.insert("number".into(), json!(self.number()));
        object.insert("message".into(), json!(super::layout::ascii(&self.message)));
        if let Some(detail) = &self.detail {
            object.insert("detail".into(), json!(detail));
        }
        if !self.suggestions.is_empty() {
            object.insert("suggestions".into(), json!(self.suggestions));
        }
        Value::Object(object)
    }
}
