//! Completion and hover in entity files.

use agents_config::editing::{self, CompletionKind, Help};
use tower_lsp::lsp_types::{
    CompletionItem, CompletionItemKind, CompletionParams, CompletionTextEdit, Documentation, Hover,
    HoverContents, MarkupContent, MarkupKind, TextDocumentPositionParams, TextEdit,
};

use super::{Entity, range};
use crate::requests::Shared;
use crate::requests::hover::markup;
use crate::requests::page::Page;

impl Shared {
    /// What can stand at a place of an entity file; `None` in other documents.
    pub async fn completion(&self, params: CompletionParams) -> Option<Vec<CompletionItem>> {
        let at = params.text_document_position;
        let (_, document) = self.document(&at.text_document.uri)?;
        let entity = Entity::of(&document)?;
        let world = self.world().await;
        let text = document.text();
        let names = |registry| {
            world
                .names
                .all(registry)
                .iter()
                .map(|entry| (entry.name.clone(), entry.description.clone()))
                .collect()
        };
        let found = editing::complete(&entity.content, text.offset(at.position), names);
        let item = |(nth, one): (usize, editing::Completion)| CompletionItem {
            label: one.label.clone(),
            kind: Some(match one.kind {
                CompletionKind::Key => CompletionItemKind::PROPERTY,
                CompletionKind::Value => CompletionItemKind::ENUM_MEMBER,
                CompletionKind::Name => CompletionItemKind::REFERENCE,
            }),
            detail: one.detail,
            documentation: one.description.map(Documentation::String),
            // What the file needs comes first, then what it may have, in the order of the schema.
            sort_text: Some(format!("{}{nth:04}", u8::from(!one.required))),
            filter_text: Some(one.label),
            text_edit: Some(CompletionTextEdit::Edit(TextEdit {
                range: range(text, &one.bytes),
                new_text: one.insert,
            })),
            ..CompletionItem::default()
        };
        Some(found.into_iter().enumerate().map(item).collect())
    }

    /// What a key of an entity file is for, or what a name stands for; `None` elsewhere.
    pub async fn entity_hover(&self, at: &TextDocumentPositionParams) -> Option<Hover> {
        let (snapshot, document) = self.document(&at.text_document.uri)?;
        let entity = Entity::of(&document)?;
        let (text, offset) = (document.text(), document.text().offset(at.position));
        let kind = markup(snapshot.client());
        let mut page = Page::new(kind == MarkupKind::Markdown);
        let bytes = match editing::mention_at(&entity.content, offset) {
            Some(mention) => {
                let world = self.world().await;
                let word = mention.registry.word();
                match world.names.find(mention.registry, &mention.name) {
                    Some(entry) => {
                        page.heading(4, &format!("{word} {}", entry.name));
                        page.words(entry.description.as_deref().unwrap_or_default());
                        match &entry.file {
                            Some((path, _)) => page.words(&format!("Registered from {}.", path.display())),
                            None => page.words("Comes with the program."),
                        };
                    }
                    None => {
                        let what = if mention.defines { "This file's name" } else { "This name" };
                        page.words(&format!("{what} is not one of a registered {word}: {}.", mention.name));
                    }
                }
                mention.bytes
            }
            None => {
                let help = editing::help(&entity.content, offset)?;
                describe(&mut page, &help);
                help.bytes
            }
        };
        let contents = HoverContents::Markup(MarkupContent { kind, value: page.finish() });
        Some(Hover { contents, range: Some(range(text, &bytes)) })
    }
}

fn describe(page: &mut Page, help: &Help) {
    let needed = if help.required { ", required" } else { "" };
    page.heading(4, &format!("{}: {}{needed}", help.key, help.takes));
    page.words(help.description.as_deref().unwrap_or_default());
    if !help.choices.is_empty() {
        page.words(&format!("One of: {}.", help.choices.join(", ")));
    }
    if let Some(default) = &help.default {
        page.words(&format!("When it is left out: {default}."));
    }
}
