//! `builtin/tree-sitter`: what syntax alone says of source files, in process, for languages that no language server serves.
//!
//! An open document counts as the client has it, everything else as the index of its folder has it. Answers are by name,
//! without types, and say so where the protocol has a place for it. Indexing is done by a thread of its own.

mod answers;
mod indexing;
mod positions;

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use agents_domain::catalogue;
use agents_domain::language_server::LanguageServerDefinition;
use agents_domain::ports::code_index::{CodeIndex, CodeIndexes, Outline};
use agents_engine::Engine;
use serde_json::{Value, json};

use crate::documents::{Document, DocumentUri, Text};
use crate::lock;
use crate::{Folder, Snapshot};

pub(crate) use answers::Target;
pub(crate) use indexing::{Job, start};

/// What is added to every answer that has room for words.
pub(crate) const MARK: &str = "by syntax";

/// What syntax says, for one session.
pub(crate) struct Syntax {
    indexes: Arc<dyn CodeIndexes>,
    /// The languages with a grammar.
    languages: Vec<&'static str>,
    /// Of open documents, for the text they are of.
    outlines: Mutex<HashMap<DocumentUri, Outlined>>,
    /// Languages that language servers serve.
    served: Mutex<HashSet<String>>,
    jobs: OnceLock<Sender<Job>>,
    /// When each folder was last looked through to the end, and when it may be again.
    looked: Mutex<HashMap<String, Instant>>,
}

/// A text with its outline, if its language has a grammar.
type Outlined = (Text, Option<Arc<Outline>>);

impl std::fmt::Debug for Syntax {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Syntax").field("languages", &self.languages).finish_non_exhaustive()
    }
}

/// A document with what syntax says of it.
pub(crate) struct Seen {
    pub document: Arc<Document>,
    pub outline: Arc<Outline>,
    /// Its folder's index and its path in there, for a file in a folder of the workspace.
    pub indexed: Option<(Arc<dyn CodeIndex>, Folder, String)>,
}

impl Syntax {
    /// Nothing when the engine has no indexes.
    pub fn of(engine: &Engine) -> Option<Self> {
        let indexes = engine.code_indexes()?.clone();
        let languages = indexes.languages();
        Some(Self {
            indexes,
            languages,
            outlines: Mutex::default(),
            served: Mutex::default(),
            jobs: OnceLock::new(),
            looked: Mutex::default(),
        })
    }

    /// What the server offers because of this.
    pub fn capabilities(&self) -> Value {
        json!({
            "definitionProvider": true,
            "referencesProvider": true,
            "documentSymbolProvider": true,
            "workspaceSymbolProvider": true,
            "experimental": { "cleveragents": { "syntactic": {
                "provider": "builtin/tree-sitter",
                "languages": self.languages,
                "features": ["definition", "references", "documentSymbol", "workspaceSymbol", "hover", "diagnostic"],
            } } },
        })
    }

    /// Leaves these languages to language servers.
    pub fn leave(&self, languages: HashSet<String>) {
        *lock(&self.served) = languages;
    }

    /// Whether documents of a language are answered for from here.
    pub fn speaks(&self, language: &str) -> bool {
        self.languages.contains(&language) && !lock(&self.served).contains(language)
    }

    /// What syntax says of an open document, if its language is ours. Parses when its text is another than before.
    pub fn outline(&self, document: &Document) -> Option<Arc<Outline>> {
        if let Some((text, known)) = lock(&self.outlines).get(document.uri())
            && text == document.text()
        {
            return known.clone().filter(|outline| self.speaks(&outline.language));
        }
        let path = document.uri().to_path().unwrap_or_else(|| document.uri().as_str().into());
        let id = Some(document.language_id()).filter(|id| !id.is_empty());
        let text = document.text().to_string();
        let outline = self.indexes.outline(&path, id, text.as_bytes()).map(Arc::new);
        let kept = (document.text().clone(), outline.clone());
        lock(&self.outlines).insert(document.uri().clone(), kept);
        outline.filter(|outline| self.speaks(&outline.language))
    }

    /// Forgets documents that are closed.
    pub fn retain(&self, open: impl Fn(&DocumentUri) -> bool) {
        lock(&self.outlines).retain(|uri, _| open(uri));
    }

    /// The index of a folder.
    fn index(&self, folder: &Folder) -> Option<Arc<dyn CodeIndex>> {
        let root = folder.path.as_deref()?;
        let found = self.indexes.of(root);
        found.inspect_err(|error| tracing::debug!(%error, "a folder has no index")).ok()
    }

    /// A document with its outline and where it is in an index.
    pub fn see(&self, snapshot: &Snapshot, document: &Arc<Document>) -> Option<Seen> {
        let outline = self.outline(document)?;
        let indexed = document.uri().to_path().and_then(|path| {
            let folder = snapshot.folder_of(&path)?;
            let relative = relative(folder, &path)?;
            Some((self.index(folder)?, folder.clone(), relative))
        });
        Some(Seen { document: document.clone(), outline, indexed })
    }

    /// All open documents of a folder that are answered for, by their path in it.
    fn open_in(
        &self,
        snapshot: &Snapshot,
        folder: &Folder,
    ) -> HashMap<String, (Arc<Document>, Arc<Outline>)> {
        let open = snapshot.documents().filter_map(|document| {
            let path = relative(folder, &document.uri().to_path()?)?;
            Some((path, (document.clone(), self.outline(document)?)))
        });
        open.collect()
    }

    /// Gives the thread that indexes something to do.
    pub fn ask(&self, job: Job) {
        if let Some(jobs) = self.jobs.get() {
            let _ = jobs.send(job);
        }
    }
}

/// A path as an index has it.
fn relative(folder: &Folder, path: &Path) -> Option<String> {
    path.strip_prefix(folder.path.as_deref()?).ok()?.to_str().map(str::to_owned)
}

/// The languages that registered servers serve with symbols and definitions, not only with findings.
pub(crate) fn served(definitions: &[LanguageServerDefinition]) -> HashSet<String> {
    let navigates = |definition: &&LanguageServerDefinition| {
        catalogue::by_command(&definition.command).is_none_or(|known| known.navigates)
    };
    definitions
        .iter()
        .filter(navigates)
        .flat_map(|definition| definition.languages.iter().map(|language| language.to_lowercase()))
        .collect()
}
