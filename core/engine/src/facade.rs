//! One way in: every operation is a type with a method name, parameters, an output and their schemas.

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use agents_domain::{Error, ErrorKind, Result};

use crate::Engine;
use crate::correlation;
use crate::operations as ops;

/// What precedes every method name on protocols that need a namespace of their own.
pub const METHOD_PREFIX: &str = "_cleveragents/";

/// An operation: the value is its parameters.
pub trait Operation: DeserializeOwned + JsonSchema {
    /// The method name without [`METHOD_PREFIX`], such as `plan/explain`.
    const METHOD: &'static str;
    /// What it does, for people.
    const SUMMARY: &'static str;
    /// What it returns: exactly the `data` of the command's JSON output.
    type Output: Serialize + JsonSchema;

    /// Carries it out.
    fn run(self, engine: &Engine) -> Result<Self::Output>;
}

/// An operation as protocols and documents list it.
#[derive(Clone, Copy)]
pub struct OperationInfo {
    /// Its method name without [`METHOD_PREFIX`].
    pub method: &'static str,
    /// What it does.
    pub summary: &'static str,
    /// JSON Schema of the parameters.
    pub params: fn() -> schemars::Schema,
    /// JSON Schema of the output.
    pub output: fn() -> schemars::Schema,
    run: fn(&Engine, Value) -> Result<Value>,
}

impl OperationInfo {
    /// Its name as an editor command: `agents.<group>.<verb>`.
    pub fn command(&self) -> String {
        let path = self.method.strip_prefix("registry/").unwrap_or(self.method);
        format!("agents.{}", path.replace('/', "."))
    }
}

/// The schema of what is written: a key that is left out where it says nothing is not required.
fn output_schema<T: JsonSchema>() -> schemars::Schema {
    schemars::generate::SchemaSettings::default().for_serialize().into_generator().into_root_schema_for::<T>()
}

macro_rules! operations {
    ($($type:ty),* $(,)?) => {
        /// Every operation there is.
        pub fn catalogue() -> &'static [OperationInfo] {
            const ALL: &[OperationInfo] = &[$(OperationInfo {
                method: <$type as Operation>::METHOD,
                summary: <$type as Operation>::SUMMARY,
                params: || schemars::schema_for!($type),
                output: output_schema::<<$type as Operation>::Output>,
                run: run_json::<$type>,
            }),*];
            ALL
        }
    };
}

operations![
    ops::resource::Add,
    ops::resource::List,
    ops::resource::Show,
    ops::resource::Remove,
    ops::resource::Tree,
    ops::resource::Inspect,
    ops::resource::TypeList,
    ops::resource::TypeShow,
    ops::project::Create,
    ops::project::List,
    ops::project::Show,
    ops::project::Delete,
    ops::project::LinkResource,
    ops::project::UnlinkResource,
    ops::language_server::Add,
    ops::language_server::List,
    ops::language_server::Show,
    ops::language_server::Remove,
    ops::lsp::Detect,
    ops::lsp::Install,
    ops::lsp::Check,
    ops::lsp::Index,
    ops::skill::Add,
    ops::skill::List,
    ops::skill::Show,
    ops::skill::Tools,
    ops::skill::Refresh,
    ops::skill::Remove,
    ops::validation::Add,
    ops::validation::Attach,
    ops::validation::Detach,
    ops::tool::Add,
    ops::tool::List,
    ops::tool::Show,
    ops::tool::Remove,
    ops::action::Create,
    ops::action::List,
    ops::action::Show,
    ops::action::Archive,
    ops::actor::Add,
    ops::actor::List,
    ops::actor::Show,
    ops::actor::Remove,
    ops::invariant::Add,
    ops::invariant::List,
    ops::invariant::Show,
    ops::invariant::Remove,
    ops::automation_profile::Add,
    ops::automation_profile::List,
    ops::automation_profile::Show,
    ops::automation_profile::Remove,
    ops::plan::Use,
    ops::plan::Execute,
    ops::plan::Apply,
    ops::plan::Cancel,
    ops::plan::Discard,
    ops::plan::Revert,
    ops::plan::Prompt,
    ops::plan::Correct,
    ops::plan::CorrectionDiff,
    ops::plan::Rollback,
    ops::plan::List,
    ops::plan::Status,
    ops::plan::Tree,
    ops::plan::Explain,
    ops::plan::Diff,
    ops::plan::Artifacts,
    ops::plan::Errors,
    ops::plan::Guard,
    ops::plan::SetProfile,
    ops::plan::Blame,
    ops::plan::Pending,
    ops::config::Set,
    ops::config::Get,
    ops::config::List,
    ops::system::Run,
    ops::events::After,
    ops::content::Show,
];

fn run_json<O: Operation>(engine: &Engine, params: Value) -> Result<Value> {
    let params = if params.is_null() { Value::Object(serde_json::Map::new()) } else { params };
    let operation: O = serde_path_to_error::deserialize(params).map_err(|error| {
        let path = error.path().to_string();
        let place = if path == "." { String::new() } else { format!(" at `{path}`") };
        Error::new(ErrorKind::ValidationFailed, format!("{}{place}: {}", O::METHOD, error.inner()))
    })?;
    let output = operation.run(engine)?;
    serde_json::to_value(output).map_err(|e| Error::internal(format!("{}: {e}", O::METHOD)))
}

impl Engine {
    /// Carries an operation out.
    pub fn call<O: Operation>(&self, operation: O) -> Result<O::Output> {
        correlation::request(|| operation.run(self))
    }

    /// Carries an operation out by its method name (with or without [`METHOD_PREFIX`]).
    pub fn call_json(&self, method: &str, params: Value) -> Result<Value> {
        let bare = method.strip_prefix(METHOD_PREFIX).unwrap_or(method);
        match catalogue().iter().find(|o| o.method == bare) {
            Some(operation) => correlation::request(|| (operation.run)(self, params)),
            None => {
                Err(Error::new(ErrorKind::OperationNotFound, format!("there is no operation `{method}`")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn method_and_command_names_are_unique() {
        let methods: HashSet<_> = catalogue().iter().map(|o| o.method).collect();
        let commands: HashSet<_> = catalogue().iter().map(OperationInfo::command).collect();
        assert_eq!(methods.len(), catalogue().len());
        assert_eq!(commands.len(), catalogue().len());
    }

    #[test]
    fn parameters_are_strict() {
        for operation in catalogue() {
            let schema = (operation.params)();
            let additional = schema.get("additionalProperties").cloned();
            assert_eq!(additional, Some(Value::Bool(false)), "{} takes unknown parameters", operation.method);
        }
    }
}
