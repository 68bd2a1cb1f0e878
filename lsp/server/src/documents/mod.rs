//! Open documents as the client sees them: identity, text, positions. Knows nothing of requests or transports.

mod position;
mod sync;
mod text;
mod uri;

use std::sync::Arc;

pub use position::PositionEncoding;
pub(crate) use sync::{Addressed, DidChange, DidClose, DidOpen, DidSave};
pub use text::Text;
pub use uri::{DocumentUri, UriError};

/// One open document at one version. Cheap to clone: the text is shared.
#[derive(Debug, Clone)]
pub struct Document {
    uri: DocumentUri,
    language_id: Arc<str>,
    version: i32,
    saves: u64,
    text: Text,
}

impl Document {
    pub(crate) fn new(uri: DocumentUri, language_id: &str, version: i32, text: Text) -> Self {
        Self { uri, language_id: language_id.into(), version, saves: 0, text }
    }

    /// The document's identity, spelled as the client spelled it on opening.
    pub fn uri(&self) -> &DocumentUri {
        &self.uri
    }

    /// The client's language identifier (`python`, `yaml`, ...).
    pub fn language_id(&self) -> &str {
        &self.language_id
    }

    /// The client's version number of this text.
    pub fn version(&self) -> i32 {
        self.version
    }

    /// How often the client reported the document as saved since it was opened.
    pub fn saves(&self) -> u64 {
        self.saves
    }

    /// The text.
    pub fn text(&self) -> &Text {
        &self.text
    }

    /// Applies the changes of one `textDocument/didChange` in their order. A version of `None` keeps the number.
    pub(crate) fn change(&mut self, change: &DidChange<'_>) {
        for part in &change.content_changes {
            match part.range {
                Some(range) => self.text.replace(range.into(), &part.text),
                None => self.text.replace_all(&part.text),
            }
        }
        if let Some(version) = change.text_document.version {
            self.version = version.get();
        }
    }

    pub(crate) fn saved(&mut self) {
        self.saves += 1;
    }
}
