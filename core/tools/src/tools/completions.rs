//! `lsp/completions`.

use agents_domain::language_server::Capability;
use agents_domain::ports::code_intelligence::Completion;

use crate::page::{Results, Window, cut};
use crate::{Lens, Tool};

arguments! {
    /// What could be written at a place: the names and members a server knows there, the best first.
    Completions about a symbol {
        /// Only labels that begin with this, case aside.
        #[serde(default)]
        prefix: Option<String>,
        /// Results on the page; 50 unless given, at most 500.
        #[serde(default)]
        limit: Option<u32>,
        /// Results to leave out at the beginning: the `next_offset` of the page before.
        #[serde(default)]
        offset: Option<u32>,
    }
}

impl Tool for Completions {
    const NAME: &'static str = "lsp/completions";
    const SUMMARY: &'static str = "What could be written at a place: names and members known there";
    const CAPABILITY: Option<Capability> = Some(Capability::Completions);
    type Output = Results<Completion>;

    async fn run(self, lens: &Lens) -> Result<Self::Output, String> {
        let file = lens.file(self.resource.as_deref(), &self.path)?;
        let position = self.spot().find(&file).await?;
        let (server, mut found) = file
            .first("completions", |languages, server| languages.completions(server, &file.path, position))
            .await?;
        if let Some(prefix) = &self.prefix {
            let prefix = prefix.to_lowercase();
            found.items.retain(|item| item.label.to_lowercase().starts_with(&prefix));
        }
        let window = Window::new(self.limit, self.offset);
        let mut page = window.cut(&server.to_string(), &found.items, |item| Completion {
            label: cut(&item.label, 200),
            detail: item.detail.as_deref().map(|text| cut(text, 300)),
            insert: item.insert.as_deref().map(|text| cut(text, 300)),
            kind: item.kind.clone(),
        });
        if found.incomplete {
            page.note
                .get_or_insert("the server has more than these; a place further on narrows them down".into());
        }
        Ok(page)
    }
}
