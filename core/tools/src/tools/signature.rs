//! `lsp/signature`.

use agents_domain::language_server::Capability;
use agents_domain::ports::code_intelligence::Signature as Found;

use crate::page::{Results, Window, cut};
use crate::{Lens, Tool};

arguments! {
    /// How the function is called that a place is in the arguments of. The column must be between its parentheses.
    Signature about a symbol {}
}

impl Tool for Signature {
    const NAME: &'static str = "lsp/signature";
    const SUMMARY: &'static str = "How the function is called whose arguments a place is in";
    const CAPABILITY: Option<Capability> = Some(Capability::SignatureHelp);
    type Output = Results<Found>;

    async fn run(self, lens: &Lens) -> Result<Self::Output, String> {
        let file = lens.file(self.resource.as_deref(), &self.path)?;
        let mut position = self.spot().find(&file).await?;
        if let (None, Some(symbol)) = (self.column, &self.symbol) {
            // A name is meant as the call of it: behind its parenthesis, where there is one.
            let text = file.text()?;
            let index = agents_domain::text::LineIndex::new(&text);
            let line = crate::page::line_of(&text, &index, position.line);
            let name = symbol.rsplit(['.', ':']).next().unwrap_or(symbol);
            let after = usize::try_from(position.column).unwrap_or(usize::MAX).saturating_add(name.len());
            if line.get(after..).is_some_and(|rest| rest.starts_with('(')) {
                position.column = u32::try_from(after + 1).unwrap_or(u32::MAX);
            }
        }
        let (server, found) = file
            .first("signature help", |languages, server| languages.signatures(server, &file.path, position))
            .await?;
        let mut page = Window::new(None, None).cut(&server.to_string(), &found, |one| Found {
            documentation: one.documentation.as_deref().map(|text| cut(text, 2_000)),
            ..one.clone()
        });
        if page.total == 0 {
            page.note = Some("no call is around this place; put the column between its parentheses".into());
        }
        Ok(page)
    }
}
