//! From a name to its file and back, renaming it everywhere, and the outline of a file.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use agents_config::editing::{Mention, Shape, Symbol, mention_at, mentions, outline};
use agents_config::{MAX_FILE_BYTES, Registry};
use tower_lsp::jsonrpc;
use tower_lsp::lsp_types::{
    DocumentSymbol, Location, PrepareRenameResponse, Range, SymbolKind, TextDocumentPositionParams, TextEdit,
    Url, WorkspaceEdit,
};

use super::{Entity, Names, is_named_so, range};
use crate::Snapshot;
use crate::documents::{Document, DocumentUri, Text};
use crate::requests::Shared;

/// Entity files of the workspace that are looked at for a name.
const FILES: usize = 5_000;

/// A file with its text, open in the editor or not.
struct Page {
    uri: Url,
    text: Text,
}

impl Page {
    fn mentions(&self, wanted: &Mention) -> Vec<(Mention, Range)> {
        let content = self.text.to_string();
        let same = |m: &Mention| m.registry == wanted.registry && m.name == wanted.name;
        mentions(&content)
            .into_iter()
            .filter(same)
            .map(|m| (m.clone(), range(&self.text, &m.bytes)))
            .collect()
    }
}

impl Shared {
    /// Where a name of an entity file is defined; `None` elsewhere.
    pub async fn entity_definition(&self, at: &TextDocumentPositionParams) -> Option<Vec<Location>> {
        let (wanted, found) = self.same_names(at).await?;
        drop(wanted);
        Some(
            found
                .into_iter()
                .filter(|(_, m, _)| m.defines)
                .map(|(uri, _, range)| Location { uri, range })
                .collect(),
        )
    }

    /// Everywhere a name of an entity file stands; `None` elsewhere.
    pub async fn entity_references(
        &self,
        at: &TextDocumentPositionParams,
        definition: bool,
    ) -> Option<Vec<Location>> {
        let (_, found) = self.same_names(at).await?;
        let found = found.into_iter().filter(|(_, m, _)| definition || !m.defines);
        Some(found.map(|(uri, _, range)| Location { uri, range }).collect())
    }

    /// The name that can be renamed at a place.
    pub fn prepare_rename(&self, at: &TextDocumentPositionParams) -> Option<PrepareRenameResponse> {
        let (document, mention) = self.mention(at)?;
        let range = range(document.text(), &mention.bytes);
        Some(PrepareRenameResponse::RangeWithPlaceholder { range, placeholder: mention.name })
    }

    /// Renames what a name stands for in all entity files of the workspace.
    pub async fn entity_rename(
        &self,
        at: &TextDocumentPositionParams,
        new_name: &str,
    ) -> jsonrpc::Result<Option<WorkspaceEdit>> {
        let Some((mention, found)) = self.same_names(at).await else { return Ok(None) };
        let refused = |message: String| jsonrpc::Error::invalid_params(message);
        if mention.registry != Registry::AutomationProfile || new_name.contains('/') {
            let parsed = new_name.parse::<agents_domain::QualifiedName>();
            parsed.map_err(|error| refused(format!("`{new_name}`: {error}")))?;
        }
        let world = self.world().await;
        let known = world.names.find(mention.registry, &mention.name);
        if known.is_some_and(|entry| entry.file.is_none()) {
            let word = mention.registry.word();
            return Err(refused(format!(
                "{word} `{}` comes with the program and keeps its name",
                mention.name
            )));
        }
        let mut changes: HashMap<Url, Vec<TextEdit>> = HashMap::new();
        for (uri, _, range) in found {
            changes.entry(uri).or_default().push(TextEdit { range, new_text: new_name.to_owned() });
        }
        Ok(Some(WorkspaceEdit { changes: Some(changes), ..WorkspaceEdit::default() }))
    }

    /// The keys of an entity file; `None` for other documents.
    pub fn entity_symbols(&self, uri: &Url) -> Option<Vec<DocumentSymbol>> {
        let (_, document) = self.document(uri)?;
        let entity = Entity::of(&document)?;
        Some(symbols(document.text(), outline(&entity.content)?))
    }

    fn mention(&self, at: &TextDocumentPositionParams) -> Option<(std::sync::Arc<Document>, Mention)> {
        let (_, document) = self.document(&at.text_document.uri)?;
        let entity = Entity::of(&document)?;
        let mention = mention_at(&entity.content, document.text().offset(at.position))?;
        Some((document, mention))
    }

    /// The name at a place, and where it stands: in open documents as they are, in other files as they are on disk.
    async fn same_names(
        &self,
        at: &TextDocumentPositionParams,
    ) -> Option<(Mention, Vec<(Url, Mention, Range)>)> {
        let snapshot = self.session.snapshot();
        let (_, mention) = self.mention(at)?;
        let world = self.world().await;
        let wanted = mention.clone();
        let looked = tokio::task::spawn_blocking(move || {
            let pages = pages(&snapshot, &world.names);
            let places = |page: Page| {
                let found = page.mentions(&wanted).into_iter();
                found.map(|(m, range)| (page.uri.clone(), m, range)).collect::<Vec<_>>()
            };
            pages.into_iter().flat_map(places).collect()
        });
        Some((mention, looked.await.ok()?))
    }
}

/// All entity files: open ones, registered ones, and those of the workspace's folders.
fn pages(snapshot: &Snapshot, names: &Names) -> Vec<Page> {
    let mut found: BTreeMap<PathBuf, Page> = BTreeMap::new();
    let mut nameless = Vec::new();
    for document in snapshot.documents() {
        let Some(uri) = Entity::of(document).and_then(|_| document.uri().to_url()) else { continue };
        let page = Page { uri, text: document.text().clone() };
        match document.uri().to_path() {
            Some(path) => drop(found.insert(path, page)),
            None => nameless.push(page),
        }
    }
    let registries = [
        Registry::Action,
        Registry::AutomationProfile,
        Registry::LanguageServer,
        Registry::Skill,
        Registry::Validation,
    ];
    let registered =
        registries.into_iter().flat_map(|registry| names.all(registry)).filter_map(|e| e.file.as_ref());
    let registered = registered.map(|(path, _)| path.clone());
    let folders = snapshot.folders().iter().filter_map(|folder| folder.path.as_deref()).flat_map(files);
    for path in registered.chain(folders).filter(|path| path.is_absolute()) {
        if found.contains_key(&path) {
            continue;
        }
        if let Some(page) = on_disk(&path, snapshot) {
            found.insert(path, page);
        }
    }
    found.into_values().chain(nameless).collect()
}

/// Files below a folder that may be entity files, what git ignores left out.
fn files(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = ignore::WalkBuilder::new(folder).build().filter_map(Result::ok);
    let files = entries.filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    files.map(ignore::DirEntry::into_path).filter(|path| is_named_so(path)).take(FILES)
}

fn on_disk(path: &Path, snapshot: &Snapshot) -> Option<Page> {
    if std::fs::metadata(path).ok()?.len() > MAX_FILE_BYTES as u64 {
        return None;
    }
    let content = std::fs::read_to_string(path).ok()?;
    agents_config::kind_of(&content)?;
    Some(Page { uri: DocumentUri::from_path(path)?.to_url()?, text: snapshot.text(&content) })
}

fn symbols(text: &Text, found: Vec<Symbol>) -> Vec<DocumentSymbol> {
    let symbol = |one: Symbol| {
        #[allow(deprecated, reason = "the field must be given")]
        DocumentSymbol {
            name: one.name,
            detail: one.detail,
            kind: match one.shape {
                Shape::Mapping => SymbolKind::OBJECT,
                Shape::List => SymbolKind::ARRAY,
                Shape::Text => SymbolKind::STRING,
                Shape::Number => SymbolKind::NUMBER,
                Shape::Truth => SymbolKind::BOOLEAN,
                Shape::Nothing => SymbolKind::NULL,
            },
            tags: None,
            deprecated: None,
            range: range(text, &one.bytes),
            selection_range: range(text, &one.key),
            children: (!one.children.is_empty()).then(|| symbols(text, one.children)),
        }
    };
    found.into_iter().map(symbol).collect()
}
