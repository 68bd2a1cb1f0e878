//! Between the index's positions and the protocol's.

use std::collections::HashMap;
use std::sync::Arc;

use agents_domain::text::Range as Bytes;
use tower_lsp::lsp_types::{Location, Position, Range};

use crate::documents::{DocumentUri, PositionEncoding, Text};
use crate::requests::lines::EngineLines;
use crate::{Folder, Snapshot};

/// Turns places in files into locations; reads a file only when its columns are other ones in the client's units.
pub(crate) struct Places<'s> {
    snapshot: &'s Snapshot,
    folder: &'s Folder,
    texts: HashMap<String, Option<Arc<Text>>>,
}

impl<'s> Places<'s> {
    pub fn new(snapshot: &'s Snapshot, folder: &'s Folder) -> Self {
        Self { snapshot, folder, texts: HashMap::new() }
    }

    /// A range in a file that is not open. Nothing when the file is gone.
    pub fn closed(&mut self, path: &str, ascii: bool, range: Bytes) -> Option<Location> {
        let whole = self.folder.path.as_deref()?.join(path);
        let uri = DocumentUri::from_path(&whole)?.to_url()?;
        if ascii || self.snapshot.encoding() == PositionEncoding::Utf8 {
            return Some(Location { uri, range: plain(range) });
        }
        let snapshot = self.snapshot;
        let text = self.texts.entry(path.to_owned()).or_insert_with(|| {
            let bytes = std::fs::read(&whole).ok()?;
            Some(Arc::new(snapshot.text(&String::from_utf8_lossy(&bytes))))
        });
        Some(Location { uri, range: of_text(text.as_deref()?, range) })
    }
}

/// Where byte columns are the protocol's.
fn plain(range: Bytes) -> Range {
    let position = |at: agents_domain::text::Position| Position::new(at.line, at.column);
    Range::new(position(range.start), position(range.end))
}

/// A range in a text.
pub(crate) fn of_text(text: &Text, range: Bytes) -> Range {
    let lines = EngineLines::of(text);
    Range::new(lines.position(range.start), lines.position(range.end))
}
