//! `lsp/hover`.

use agents_domain::language_server::Capability;
use schemars::JsonSchema;
use serde::Serialize;

use crate::page::{at, cut};
use crate::{Lens, Tool};

/// Bytes of a hover that are shown.
const MAX_TEXT: usize = 6_000;

arguments! {
    /// Type, signature and documentation of the symbol at a place.
    Hover about a symbol {}
}

/// What a server says about a symbol.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct HoverText {
    /// The server that answered.
    server: String,
    /// The place asked about.
    at: String,
    /// Markdown; empty when there is nothing to say about the place.
    text: String,
}

impl Tool for Hover {
    const NAME: &'static str = "lsp/hover";
    const SUMMARY: &'static str = "Type, signature and documentation of the symbol at a place";
    const CAPABILITY: Option<Capability> = Some(Capability::Hover);
    type Output = HoverText;

    async fn run(self, lens: &Lens) -> Result<HoverText, String> {
        let file = lens.file(self.resource.as_deref(), &self.path)?;
        let position = self.spot().find(&file).await?;
        let text = file.text()?;
        let (server, said) =
            file.first("hover", |languages, server| languages.hover(server, &file.path, position)).await?;
        let index = agents_domain::text::LineIndex::new(&text);
        Ok(HoverText {
            server: server.to_string(),
            at: at(&file.path, &text, &index, position),
            text: cut(&said, MAX_TEXT),
        })
    }
}
