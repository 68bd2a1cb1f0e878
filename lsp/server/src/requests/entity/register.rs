//! Registering the entity file that is open, as its command on the command line does.

use agents_config::Registry;
use agents_domain::{Error, Result};
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
                "{uri} is no file of an action, a language server, an automation profile or a validation"
            ))
        })?;
        let path = parsed.to_path().map_or_else(|| uri.to_owned(), |path| path.display().to_string());
        let params = json!({ "config": path, "text": entity.content });
        let update = json!({ "config": path, "text": entity.content, "update": true });
        Ok(match entity.kind.registry {
            Registry::Action => ("registry/action/create", params),
            Registry::LanguageServer => ("registry/lsp/add", update),
            Registry::AutomationProfile => ("registry/automation_profile/add", update),
            Registry::Validation => ("registry/validation/add", update),
            Registry::Actor => {
                return Err(Error::validation(format!("{uri}: actors cannot be registered from the editor")));
            }
        })
    }
}
