//! Registering the entity file that is open, as its command on the command line does.

use agents_config::{EntityKind, Registry};
use agents_domain::{Error, Result};
use agents_engine::OperationInfo;
use serde_json::{Value, json};

use super::Entity;
use crate::documents::DocumentUri;
use crate::requests::Shared;

/// Registers what an open file says: `{"uri": ...}`.
pub(crate) const REGISTER: &str = "agents.entity.register";

impl Shared {
    /// The operation that registers an open document, with its parameters.
    pub fn registration(&self, given: &Value) -> Result<(&'static str, Value)> {
        let uri = given.get("uri").and_then(Value::as_str);
        let uri =
            uri.ok_or_else(|| Error::validation(format!("{REGISTER} at `uri`: the document is missing")))?;
        let parsed = DocumentUri::parse(uri)
            .map_err(|error| Error::validation(format!("{REGISTER} at `uri`: {error}")))?;
        let snapshot = self.session.latest();
        let document = snapshot.document(&parsed);
        let document =
            document.ok_or_else(|| Error::not_found(format!("{uri} is not open: open it first")))?;
        let entity = Entity::of(document);
        let entity = entity.ok_or_else(|| {
            Error::validation(format!(
                "{uri} is no file of an action, an actor, a language server, an automation profile, a skill or a validation"
            ))
        })?;
        let operation = operation(entity.kind).ok_or_else(|| {
            let word = entity.kind.registry.word();
            Error::validation(format!(
                "{uri}: a file of this kind ({word}) is not registered by an operation"
            ))
        })?;
        let path = parsed.to_path().map_or_else(|| uri.to_owned(), |path| path.display().to_string());
        let mut params = json!({ "config": path, "text": entity.content });
        let known = serde_json::to_value((operation.params)()).unwrap_or_default();
        if known.pointer("/properties/update").is_some() {
            params["update"] = true.into();
        }
        Ok((operation.method, params))
    }
}

/// The operation that registers files of a kind, where there is one.
pub(super) fn operation(kind: &EntityKind) -> Option<&'static OperationInfo> {
    let group = match kind.registry {
        Registry::LanguageServer => "lsp",
        _ => kind.name,
    };
    let methods = ["add", "create"].map(|verb| format!("registry/{group}/{verb}"));
    agents_engine::catalogue()
        .iter()
        .find(|operation| methods.iter().any(|method| method == operation.method))
}
