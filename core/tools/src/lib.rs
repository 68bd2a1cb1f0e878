//! Language servers as tools: what actors and other agents can ask about code.
//!
//! A tool is a type: its fields are the arguments, with a JSON Schema; its output is bounded and paged. Positions are
//! such as a model can use: lines and columns count from 1, and a symbol's name does in place of a column. Every answer
//! shows the source lines it is about.
//!
//! - [`catalogue`] lists the tools, [`find`] looks one up, [`Lens`] is what they look through: the workspaces of a plan or
//!   of a session, with the servers and capabilities that are lent.
//! - [`delta`] is what an edit brought and took away, [`enrich`] what is added to a file when an actor reads it.
//!
//! Nothing here writes a file. `lsp/apply-code-action` gives the edits; whoever runs it applies them.

pub mod delta;
pub mod enrich;
mod lens;
mod page;
mod place;
mod tools;

use agents_domain::language_server::Capability;
use agents_domain::plan::Phase;
use agents_domain::ports::BoxFuture;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use lens::{Lens, Workspace};
pub use page::{Hit, Results};
pub use tools::changes::{Changes, ProposedFile};

/// What precedes the name of every tool here.
pub const PREFIX: &str = "lsp/";

/// A tool: the value is its arguments.
pub(crate) trait Tool: DeserializeOwned + JsonSchema + Send + Sized + 'static {
    /// Its name, such as `lsp/hover`.
    const NAME: &'static str;
    /// What it is for, for models and people.
    const SUMMARY: &'static str;
    /// What a server must be registered with, and an actor be lent, to use it; `None` is nothing in particular.
    const CAPABILITY: Option<Capability>;
    /// It may be used while a plan is still deciding what to do.
    const WHILE_DECIDING: bool = true;
    /// Its result is meant to be written to files.
    const WRITES: bool = false;
    /// What it returns.
    type Output: Serialize + JsonSchema;

    /// Asks; `Err` is a sentence for the actor.
    fn run(self, lens: &Lens) -> impl Future<Output = Result<Self::Output, String>> + Send;
}

/// A tool as it is listed and called.
#[derive(Clone, Copy)]
pub struct LspTool {
    /// Its name, such as `lsp/hover`.
    pub name: &'static str,
    /// What it is for.
    pub summary: &'static str,
    /// What a server must offer for it; `None` is nothing in particular.
    pub capability: Option<Capability>,
    /// It may be used in Strategize.
    pub while_deciding: bool,
    /// Its result is [`Changes`] whose edits whoever runs it writes to the files.
    pub writes: bool,
    /// JSON Schema of its arguments.
    pub input: fn() -> schemars::Schema,
    /// JSON Schema of its result.
    pub output: fn() -> schemars::Schema,
    run: for<'a> fn(Value, &'a Lens) -> BoxFuture<'a, Result<Value, String>>,
}

impl LspTool {
    /// Runs it. `Err` is a sentence for the actor that names the argument or the server.
    ///
    /// # Errors
    /// Arguments that do not fit the schema, a place that is not there, no server that could answer, no answer in time.
    pub async fn call(&self, arguments: Value, lens: &Lens) -> Result<Value, String> {
        if let Some(capability) = self.capability
            && !lens.lends(capability)
        {
            let word = serde_json::to_value(capability).unwrap_or_default();
            return Err(format!(
                "{} needs the capability {word}, which this actor is not lent (`lsp_capabilities`)",
                self.name
            ));
        }
        (self.run)(arguments, lens).await
    }

    /// Whether it may be used in a phase: what computes edits only where they could be written.
    pub fn fits(&self, phase: Phase) -> bool {
        phase == Phase::Execute || self.while_deciding
    }
}

/// What a result really looks like: what may be left out is not required.
fn output_schema<T: JsonSchema>() -> schemars::Schema {
    let settings = schemars::generate::SchemaSettings::draft2020_12().for_serialize();
    settings.into_generator().into_root_schema_for::<T>()
}

fn run_json<T: Tool>(arguments: Value, lens: &Lens) -> BoxFuture<'_, Result<Value, String>> {
    Box::pin(async move {
        let arguments = if arguments.is_null() { Value::Object(Default::default()) } else { arguments };
        let tool: T = serde_path_to_error::deserialize(arguments).map_err(|error| {
            let path = error.path().to_string();
            let place = if path == "." { String::new() } else { format!(" at `{path}`") };
            format!("{}{place}: {}", T::NAME, error.inner())
        })?;
        let output = tool.run(lens).await?;
        serde_json::to_value(output).map_err(|error| format!("{}: {error}", T::NAME))
    })
}

macro_rules! tools {
    ($($type:ty),* $(,)?) => {
        /// Every tool there is.
        pub fn catalogue() -> &'static [LspTool] {
            const ALL: &[LspTool] = &[$(LspTool {
                name: <$type as Tool>::NAME,
                summary: <$type as Tool>::SUMMARY,
                capability: <$type as Tool>::CAPABILITY,
                while_deciding: <$type as Tool>::WHILE_DECIDING,
                writes: <$type as Tool>::WRITES,
                input: || schemars::schema_for!($type),
                output: output_schema::<<$type as Tool>::Output>,
                run: run_json::<$type>,
            }),*];
            ALL
        }
    };
}

tools![
    tools::diagnostics::Diagnostics,
    tools::hover::Hover,
    tools::completions::Completions,
    tools::places::Definition,
    tools::places::References,
    tools::places::Implementation,
    tools::places::TypeDefinition,
    tools::signature::Signature,
    tools::symbols::Symbols,
    tools::symbols::WorkspaceSymbols,
    tools::hierarchy::CallHierarchy,
    tools::hierarchy::TypeHierarchy,
    tools::impact::Impact,
    tools::preview::PreviewEdit,
    tools::changes::Rename,
    tools::changes::Format,
    tools::actions::CodeActions,
    tools::actions::ApplyCodeAction,
];

/// Looks a tool up by its name.
pub fn find(name: &str) -> Option<&'static LspTool> {
    catalogue().iter().find(|tool| tool.name == name)
}

/// The tools that an actor with some capabilities (`None` is all) has in a phase.
pub fn available(phase: Phase, capabilities: Option<&[Capability]>) -> Vec<&'static LspTool> {
    let lent = |tool: &&LspTool| {
        tool.capability.is_none_or(|wanted| capabilities.is_none_or(|lent| lens::covers(lent, wanted)))
    };
    catalogue().iter().filter(|tool| tool.fits(phase)).filter(lent).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // LSP-018, 3.3
    #[test]
    fn every_capability_of_the_specification_has_its_tool() {
        use Capability as C;
        for (capability, name) in [
            (C::Diagnostics, "lsp/diagnostics"),
            (C::Hover, "lsp/hover"),
            (C::Completions, "lsp/completions"),
            (C::Definitions, "lsp/definition"),
            (C::References, "lsp/references"),
            (C::Rename, "lsp/rename"),
            (C::CodeActions, "lsp/code-actions"),
            (C::Formatting, "lsp/format"),
            (C::SignatureHelp, "lsp/signature"),
            (C::DocumentSymbols, "lsp/symbols"),
            (C::WorkspaceSymbols, "lsp/workspace-symbols"),
        ] {
            assert_eq!(find(name).and_then(|tool| tool.capability), Some(capability), "{name}");
        }
    }

    // LSP-017, LSP-032
    #[test]
    fn a_phase_and_the_lent_capabilities_decide_which_tools_there_are() {
        let names = |phase, lent: Option<&[Capability]>| -> Vec<&str> {
            available(phase, lent).into_iter().map(|tool| tool.name).collect()
        };
        let deciding = names(Phase::Strategize, None);
        for hidden in ["lsp/rename", "lsp/format", "lsp/code-actions", "lsp/apply-code-action"] {
            assert!(!deciding.contains(&hidden), "{hidden}");
        }
        assert!(deciding.contains(&"lsp/references") && deciding.contains(&"lsp/preview-edit"));
        assert_eq!(names(Phase::Execute, None).len(), catalogue().len());
        let lent = names(Phase::Execute, Some(&[Capability::Hover, Capability::Symbols]));
        assert_eq!(lent, ["lsp/hover", "lsp/symbols", "lsp/workspace-symbols"]);
    }

    #[test]
    fn arguments_are_objects_that_refuse_what_they_do_not_know_and_explain_every_field() {
        for tool in catalogue() {
            let schema = serde_json::to_value((tool.input)()).unwrap();
            assert_eq!(schema["additionalProperties"], false, "{}", tool.name);
            for (field, of) in schema["properties"].as_object().unwrap() {
                assert!(of["description"].is_string(), "{} {field} is not explained", tool.name);
            }
            assert!(serde_json::to_value((tool.output)()).unwrap().is_object());
        }
    }
}
