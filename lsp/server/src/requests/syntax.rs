//! `textDocument/definition`, `textDocument/references`, `workspace/symbol`, and what syntax adds to a hover.

use std::sync::Arc;

use agents_domain::ports::code_index::IndexResult;
use tower_lsp::lsp_types::{
    Diagnostic, DidChangeWatchedFilesParams, DocumentSymbol, Location, Position, ReferenceParams,
    SymbolInformation, TextDocumentPositionParams, WorkspaceSymbolParams,
};

use super::{Shared, brief};
use crate::Snapshot;
use crate::documents::{Document, DocumentUri};
use crate::syntax::{Job, Seen, Syntax};

/// The longest documentation that a hover shows, in characters.
const MOST_DOC: usize = 2000;

/// What a hover says of a name.
pub(crate) struct Described {
    /// The language, for the code block.
    pub language: String,
    /// The declaration's head, or the name of a local one with what it is.
    pub head: String,
    /// Its documentation.
    pub doc: String,
    /// Where it comes from, and how sure that is.
    pub note: String,
}

impl Shared {
    /// Work of the syntax provider off the async threads; nothing where there is none, or the index cannot be read.
    async fn by_syntax<T, F>(&self, work: F) -> Option<T>
    where
        T: Send + 'static,
        F: FnOnce(&Syntax, &Snapshot) -> IndexResult<Option<T>> + Send + 'static,
    {
        let syntax = self.syntax()?.clone();
        syntax.look_again();
        let snapshot = self.session.snapshot();
        let done = tokio::task::spawn_blocking(move || work(&syntax, &snapshot)).await;
        match done {
            Ok(Ok(found)) => found,
            Ok(Err(error)) => {
                tracing::warn!(%error, "the index does not answer");
                None
            }
            Err(error) => {
                tracing::error!(%error, "a question to the index did not end");
                None
            }
        }
    }

    pub async fn definition(&self, at: TextDocumentPositionParams) -> Option<Vec<Location>> {
        let (_, document) = self.document(&at.text_document.uri)?;
        let found = self.by_syntax(move |syntax, snapshot| {
            let Some(seen) = syntax.see(snapshot, &document) else { return Ok(None) };
            Ok(Some(syntax.targets(snapshot, &seen, at.position)?))
        });
        let targets = found.await?;
        Some(targets.into_iter().map(|target| target.location).collect())
    }

    pub async fn references(&self, params: ReferenceParams) -> Option<Vec<Location>> {
        let at = params.text_document_position;
        let declarations = params.context.include_declaration;
        let (_, document) = self.document(&at.text_document.uri)?;
        self.by_syntax(move |syntax, snapshot| {
            let Some(seen) = syntax.see(snapshot, &document) else { return Ok(None) };
            syntax.references(snapshot, &seen, at.position, declarations).map(Some)
        })
        .await
    }

    pub async fn workspace_symbol(&self, params: WorkspaceSymbolParams) -> Option<Vec<SymbolInformation>> {
        self.by_syntax(move |syntax, snapshot| syntax.workspace_symbols(snapshot, &params.query).map(Some))
            .await
    }

    /// What a document declares.
    pub async fn declared(&self, document: Arc<Document>) -> Option<Vec<DocumentSymbol>> {
        self.by_syntax(move |syntax, _| Ok(syntax.document_symbols(&document))).await
    }

    /// Where the syntax of a document is broken.
    pub async fn syntax_errors(&self, document: Arc<Document>) -> Vec<Diagnostic> {
        self.by_syntax(move |syntax, _| Ok(Some(syntax.errors(&document)))).await.unwrap_or_default()
    }

    /// What syntax says of the name at a position.
    pub async fn described(&self, document: Arc<Document>, at: Position) -> Option<Described> {
        self.by_syntax(move |syntax, snapshot| {
            let Some(seen) = syntax.see(snapshot, &document) else { return Ok(None) };
            let targets = syntax.targets(snapshot, &seen, at)?;
            Ok(describe(&seen, &targets))
        })
        .await
    }

    /// Files that others changed.
    pub fn files_changed(&self, params: DidChangeWatchedFilesParams) {
        let Some(syntax) = &self.syntax else { return };
        let paths = params.changes.iter().filter_map(|change| DocumentUri::from_url(&change.uri).to_path());
        syntax.ask(Job::Changed(paths.collect()));
    }
}

fn describe(seen: &Seen, targets: &[crate::syntax::Target]) -> Option<Described> {
    let first = targets.first()?;
    let symbol = &first.symbol;
    let head = match symbol.signature.as_str() {
        "" => format!("{} {}", symbol.kind, symbol.name),
        signature => signature.to_owned(),
    };
    let line = first.location.range.start.line + 1;
    let place = if first.path.is_empty() { format!("line {line}") } else { format!("{}:{line}", first.path) };
    let within =
        if symbol.container.is_empty() { String::new() } else { format!("in {}, ", symbol.container) };
    let others = match targets.len() - 1 {
        0 => String::new(),
        1 => "; 1 other has this name".to_owned(),
        others => format!("; {others} others have this name"),
    };
    let mut doc = symbol.doc.clone();
    if doc.chars().count() > MOST_DOC {
        doc = doc.chars().take(MOST_DOC).chain(['…']).collect();
    }
    Some(Described {
        language: seen.outline.language.clone(),
        head: brief(&head, 500),
        doc,
        note: format!("{within}{place}. By syntax alone (builtin/tree-sitter){others}."),
    })
}
