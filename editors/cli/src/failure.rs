//! The facade's errors as commands report them.

use agents_domain::Error;

use crate::output::{AppError, ErrorCode, Output};

/// An error that ends a command. Its structured facts go into `data`.
#[derive(Debug)]
pub struct Failure {
    /// What went wrong.
    pub error: AppError,
    /// Facts for programs: an object.
    pub data: Option<serde_json::Value>,
}

/// What commands return.
pub type Outcome = Result<(), Failure>;

impl Failure {
    /// Ends the run with this error and gives the exit code.
    pub fn report(&self, out: &Output) -> u8 {
        for (key, value) in self.data.iter().filter_map(|data| data.as_object()).flatten() {
            out.data(key, value.clone());
        }
        out.fail(&self.error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let Error { kind, message, detail, suggestions, data } = error;
        let code = ErrorCode::from_name(kind.code());
        Self {
            error: AppError { code, message, detail: detail.filter(|d| !d.is_empty()), suggestions },
            data,
        }
    }
}

impl From<AppError> for Failure {
    fn from(error: AppError) -> Self {
        Self { error, data: None }
    }
}

#[cfg(test)]
mod tests {
    use agents_domain::ErrorKind;

    use super::*;

    #[test]
    fn every_kind_of_error_keeps_its_code_and_number() {
        use ErrorKind as K;
        let kinds = [
            K::NotFound,
            K::AlreadyExists,
            K::ValidationFailed,
            K::InvalidState,
            K::Usage,
            K::BudgetExceeded,
            K::PlanError,
            K::OperationNotFound,
            K::NotAvailable,
            K::Provider,
            K::Database,
            K::Network,
            K::Configuration,
            K::Io,
            K::Internal,
        ];
        for kind in kinds {
            let failure = Failure::from(Error::new(kind, "m"));
            assert_eq!((failure.error.code.name(), failure.error.number()), (kind.code(), kind.number()));
        }
    }
}
