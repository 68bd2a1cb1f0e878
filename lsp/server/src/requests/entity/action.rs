//! Quick fixes of an entity file: the usual spelling, the nearest name, a missing key.

use std::collections::HashMap;

use tower_lsp::lsp_types::{
    CodeAction, CodeActionKind, CodeActionOrCommand, CodeActionParams, Range, TextEdit, WorkspaceEdit,
};

use super::{Entity, diagnostic, protocol_range};
use crate::requests::Shared;
use crate::requests::questions::touch;

impl Shared {
    /// `None` in other documents, and for a client that takes only commands.
    pub async fn entity_actions(&self, params: &CodeActionParams) -> Option<Vec<CodeActionOrCommand>> {
        let (snapshot, document) = self.document(&params.text_document.uri)?;
        if !snapshot.client().supports("/textDocument/codeAction/codeActionLiteralSupport") {
            return None;
        }
        let entity = Entity::of(&document)?;
        let world = self.world().await;
        let text = document.text();
        let mended = (entity.kind.check)(&entity.content, "").into_iter().filter_map(|problem| {
            let fix = problem.fix?;
            let edit = TextEdit { range: protocol_range(text, fix.edit.range), new_text: fix.edit.new_text };
            Some((protocol_range(text, problem.range), fix.title, edit))
        });
        let named = diagnostic::unknown_names(text, &entity.content, &world.names).into_iter();
        let named = named.filter_map(|(told, meant)| {
            let meant = meant?;
            let edit = TextEdit { range: told.range, new_text: meant.clone() };
            Some((told.range, format!("Write `{meant}`"), edit))
        });
        let action = |(at, title, edit): (Range, String, TextEdit)| {
            let about: Vec<_> =
                params.context.diagnostics.iter().filter(|d| d.range == at).cloned().collect();
            let changes = HashMap::from([(params.text_document.uri.clone(), vec![edit])]);
            CodeActionOrCommand::CodeAction(CodeAction {
                title,
                kind: Some(CodeActionKind::QUICKFIX),
                diagnostics: (!about.is_empty()).then_some(about),
                edit: Some(WorkspaceEdit { changes: Some(changes), ..WorkspaceEdit::default() }),
                is_preferred: snapshot
                    .client()
                    .supports("/textDocument/codeAction/isPreferredSupport")
                    .then_some(true),
                ..CodeAction::default()
            })
        };
        let here = mended.chain(named).filter(|(at, ..)| touch(params.range, *at));
        Some(here.map(action).collect())
    }
}
