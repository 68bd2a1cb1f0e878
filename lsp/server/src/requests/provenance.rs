//! Which decision is behind which line of an open document: asked of the engine once per text and state of the plans,
//! then read by every feature.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use agents_domain::ErrorKind;
use agents_domain::ids::{PlanId, ResourceId};
use agents_engine::operations::plan::{Blame, BlamedSegment};
use ropey::Rope;
use tokio::sync::{OnceCell, Semaphore};

use super::Shared;
use super::lines::EngineLines;
use crate::documents::{Document, DocumentUri, Text};
use crate::lock;
use crate::watch::world::FileKey;

/// Questions to the engine about texts at one time; more would only compete for the processor and for connections.
const LANES: usize = 4;

/// Texts above this size in bytes are left alone: comparing them would take seconds.
pub(crate) const LARGEST: usize = 4 * 1024 * 1024;

/// What the plans did to a document, or would do.
#[derive(Debug)]
pub(crate) struct Provenance {
    /// The file it is.
    pub file: FileKey,
    /// In the order of lines.
    pub places: Vec<Place>,
}

/// Lines of the document with the decision behind them. Numbers are the protocol's, both ends included.
#[derive(Debug)]
pub(crate) struct Place {
    pub first: u32,
    pub last: u32,
    pub kind: PlaceKind,
    pub segment: BlamedSegment,
}

/// What happened to the lines, or would.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlaceKind {
    /// A plan wrote them.
    Written,
    /// A plan deleted lines that stood before this one.
    Deleted,
    /// A plan would put others in their place.
    WouldChange,
    /// A plan would put lines before this one.
    WouldInsert,
    /// A plan would delete them.
    WouldDelete,
}

impl Provenance {
    /// What concerns any of these lines.
    pub fn within(&self, first: u32, last: u32) -> impl Iterator<Item = &Place> {
        self.places.iter().filter(move |place| place.first <= last && first <= place.last)
    }

    /// The plans that would change the document.
    pub fn proposing(&self) -> Vec<PlanId> {
        let mut seen = HashSet::new();
        let proposed = self.places.iter().filter(|place| place.segment.proposed);
        proposed.map(|place| place.segment.plan_id).filter(|plan| seen.insert(*plan)).collect()
    }
}

impl Place {
    fn new(segment: BlamedSegment, lines: &EngineLines<'_>) -> Self {
        let count = lines.count();
        let start = segment.start_line.saturating_sub(1);
        let text = segment.proposed_text.as_deref().unwrap_or_default();
        let kind = match (segment.proposed, segment.deletion) {
            (false, false) => PlaceKind::Written,
            (false, true) => PlaceKind::Deleted,
            (true, true) => PlaceKind::WouldInsert,
            (true, false) if text.is_empty() => PlaceKind::WouldDelete,
            (true, false) => PlaceKind::WouldChange,
        };
        if segment.deletion {
            // What was at the end of the text is found at the last line there is.
            let line = lines.protocol_line(start.min(count.saturating_sub(1)));
            return Self { first: line, last: line, kind, segment };
        }
        let first = lines.protocol_line(start);
        // The start of the next line belongs to that one, unless the text ends without a break.
        let next = lines.protocol_line(segment.end_line);
        let last = if segment.end_line < count { next.saturating_sub(1) } else { last_line(lines, next) };
        Self { first, last: last.max(first), kind, segment }
    }
}

fn last_line(lines: &EngineLines<'_>, end: u32) -> u32 {
    // A text that ends in a break has an empty line after it, which nobody wrote.
    if lines.ends_in_break() { end.saturating_sub(1) } else { end }
}

fn places(segments: Vec<BlamedSegment>, text: &Text) -> Vec<Place> {
    let lines = EngineLines::of(text);
    segments.into_iter().map(|segment| Place::new(segment, &lines)).collect()
}

/// The resource of files that are in none.
fn nowhere() -> ResourceId {
    ResourceId::from_ulid(Default::default())
}

/// What was found for each open document, by the very text it was asked about.
#[derive(Debug)]
pub(crate) struct Cache {
    entries: Mutex<HashMap<DocumentUri, Entry>>,
    lanes: Semaphore,
    /// Lets one document at a time be looked at ahead of a request.
    ahead: Semaphore,
}

#[derive(Debug)]
struct Entry {
    text: Rope,
    found: Arc<OnceCell<Option<Arc<Provenance>>>>,
}

impl Default for Cache {
    fn default() -> Self {
        Self { entries: Mutex::default(), lanes: Semaphore::new(LANES), ahead: Semaphore::new(1) }
    }
}

impl Cache {
    /// Forgets what events made doubtful: everything, or what concerns some files.
    pub fn forget(&self, all: bool, files: &HashSet<FileKey>) {
        let mut entries = lock(&self.entries);
        if all {
            entries.clear();
        } else if !files.is_empty() {
            // What is being asked may have been asked too early.
            entries.retain(|_, entry| match entry.found.get() {
                Some(Some(found)) => !files.contains(&found.file),
                Some(None) => true,
                None => false,
            });
        }
    }

    /// Keeps only documents that are open.
    pub fn retain(&self, open: impl Fn(&DocumentUri) -> bool) {
        lock(&self.entries).retain(|uri, _| open(uri));
    }

    /// Whether it is known that no plan is behind this text.
    pub fn knows_nothing(&self, document: &Document) -> bool {
        let entries = lock(&self.entries);
        let entry =
            entries.get(document.uri()).filter(|entry| entry.text.is_instance(document.text().rope()));
        let found = entry.and_then(|entry| entry.found.get());
        found.is_some_and(|found| found.as_ref().is_none_or(|found| found.places.is_empty()))
    }

    fn cell(&self, document: &Document) -> Arc<OnceCell<Option<Arc<Provenance>>>> {
        let mut entries = lock(&self.entries);
        let text = document.text().rope();
        if let Some(entry) = entries.get(document.uri()).filter(|entry| entry.text.is_instance(text)) {
            return entry.found.clone();
        }
        let found = Arc::<OnceCell<_>>::default();
        entries.insert(document.uri().clone(), Entry { text: text.clone(), found: found.clone() });
        found
    }
}

impl Shared {
    /// What the plans did to a document; nothing for one that is no file of a resource.
    pub async fn provenance(&self, document: &Document) -> Option<Arc<Provenance>> {
        let path = document.uri().to_path()?;
        if document.text().len() > LARGEST {
            return None;
        }
        let cell = self.cache.cell(document);
        let ask = || async {
            let _lane = self.cache.lanes.acquire().await;
            let (file, text) = (path.to_string_lossy().into_owned(), document.text().clone());
            let asked = self.blocking(move |engine| {
                let output = engine.call(Blame { file, line: None, text: Some(text.to_string()) })?;
                // A clone that only git notes speak of is no resource; no event is about its files.
                let resource = output.resource_id.unwrap_or_else(nowhere);
                let places = places(output.segments, &text);
                Ok(Some(Arc::new(Provenance { file: (resource, output.path), places })))
            });
            match asked.await {
                Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
                other => other,
            }
        };
        match cell.get_or_try_init(ask).await {
            Ok(found) => found.clone(),
            Err(error) => {
                tracing::warn!(document = %document.uri(), %error, "the decisions behind a document were not found");
                None
            }
        }
    }

    /// Asks before anybody waits for the answer.
    pub async fn look_ahead(&self, document: &Document) {
        if let Ok(_turn) = self.cache.ahead.acquire().await {
            self.provenance(document).await;
        }
    }
}

#[cfg(test)]
#[path = "provenance_tests.rs"]
mod tests;
