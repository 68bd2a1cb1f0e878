//! `textDocument/hover`: the decision behind a line, below it what syntax says of a name; else what a key or name of an entity
//! file is.

use tower_lsp::lsp_types::{
    Hover, HoverContents, HoverParams, MarkupContent, MarkupKind, TextDocumentPositionParams,
};

use super::Shared;
use super::lines::whole_lines;
use super::links;
use super::page::{Page, describe, origin};
use super::syntax::Described;
use crate::ClientInfo;

/// Decisions shown for one line; a line with more is a file that was replaced as a whole.
const SHOWN: usize = 5;

impl Shared {
    pub async fn hover(&self, params: HoverParams) -> Option<Hover> {
        let at = params.text_document_position_params;
        match self.decision_hover(&at).await {
            None => self.entity_hover(&at).await,
            found => found,
        }
    }

    async fn decision_hover(&self, at: &TextDocumentPositionParams) -> Option<Hover> {
        let (snapshot, document) = self.document(&at.text_document.uri)?;
        let found = self.provenance(&document).await;
        let described = self.described(document.clone(), at.position).await;
        let line = at.position.line;
        let places: Vec<_> = found.iter().flat_map(|found| found.within(line, line)).collect();
        if places.is_empty() && described.is_none() {
            return None;
        }
        let kind = markup(snapshot.client());
        let world = self.world().await;
        let mut page = Page::new(kind == MarkupKind::Markdown);
        for (nth, place) in places.iter().take(SHOWN).enumerate() {
            if nth > 0 {
                page.rule();
            }
            describe(&mut page, place, Some(document.text()));
            if snapshot.client().is_interactive() {
                links::below(&mut page, place, &world);
            } else {
                origin(&mut page, place);
            }
        }
        if places.len() > SHOWN {
            page.rule().words(&format!("{} more decisions are behind this line.", places.len() - SHOWN));
        }
        if let Some(Described { language, head, doc, note }) = described {
            if !places.is_empty() {
                page.rule();
            }
            page.code(&language, &head);
            if !doc.is_empty() {
                page.documentation(&doc);
            }
            page.words(&note);
        }
        let contents = HoverContents::Markup(MarkupContent { kind, value: page.finish() });
        let range = places.first().map(|first| whole_lines(document.text(), first.first, first.last));
        Some(Hover { contents, range })
    }
}

/// Markdown where the client shows it.
pub(crate) fn markup(client: &ClientInfo) -> MarkupKind {
    let formats = client.capabilities.pointer("/textDocument/hover/contentFormat");
    let markdown = formats.and_then(serde_json::Value::as_array);
    if markdown.is_some_and(|formats| formats.iter().any(|format| format == "markdown")) {
        MarkupKind::Markdown
    } else {
        MarkupKind::PlainText
    }
}
