//! `lsp/symbols` and `lsp/workspace-symbols`.

use agents_domain::QualifiedName;
use agents_domain::language_server::Capability;
use agents_domain::ports::code_intelligence::PlacedSymbol;
use agents_domain::text::LineIndex;
use futures::future::join_all;

use crate::page::{Hit, Results, Window, at, excerpt, line_of, names};
use crate::{Lens, Tool};

arguments! {
    /// What a file declares: classes, functions, variables, with the lines they are on.
    Symbols about a file {
        /// Only this kind, such as `function` or `class`.
        #[serde(default)]
        kind: Option<String>,
        /// Results on the page; 50 unless given, at most 500.
        #[serde(default)]
        limit: Option<u32>,
        /// Results to leave out at the beginning: the `next_offset` of the page before.
        #[serde(default)]
        offset: Option<u32>,
    }
}

impl Tool for Symbols {
    const NAME: &'static str = "lsp/symbols";
    const SUMMARY: &'static str = "What a file declares, with the lines";
    const CAPABILITY: Option<Capability> = Some(Capability::DocumentSymbols);
    type Output = Results<Hit>;

    async fn run(self, lens: &Lens) -> Result<Self::Output, String> {
        let file = lens.file(self.resource.as_deref(), &self.path)?;
        let text = file.text()?;
        let (server, mut found) =
            file.first("symbols", |languages, server| languages.symbols(server, &file.path)).await?;
        if let Some(kind) = &self.kind {
            found.retain(|symbol| symbol.kind == *kind);
        }
        let index = LineIndex::new(&text);
        Ok(Window::new(self.limit, self.offset).cut(&server.to_string(), &found, |symbol| Hit {
            at: at(&file.path, &text, &index, symbol.range.start),
            code: excerpt(line_of(&text, &index, symbol.range.start.line), symbol.range.start.column),
            name: Some(symbol.name.clone()),
            kind: Some(symbol.kind.clone()),
            container: symbol.container.clone(),
            outside: false,
        }))
    }
}

arguments! {
    /// Symbols of the whole workspace whose names match a query.
    WorkspaceSymbols {
        /// A name or a part of it; each server matches in its own way, most of them loosely.
        query: String,
        /// Only this kind, such as `function` or `class`.
        #[serde(default)]
        kind: Option<String>,
        /// Results on the page; 50 unless given, at most 500.
        #[serde(default)]
        limit: Option<u32>,
        /// Results to leave out at the beginning: the `next_offset` of the page before.
        #[serde(default)]
        offset: Option<u32>,
    }
}

impl Tool for WorkspaceSymbols {
    const NAME: &'static str = "lsp/workspace-symbols";
    const SUMMARY: &'static str = "Symbols of the whole workspace whose names match a query";
    const CAPABILITY: Option<Capability> = Some(Capability::WorkspaceSymbols);
    type Output = Results<Hit>;

    async fn run(self, lens: &Lens) -> Result<Self::Output, String> {
        let workspace = lens.workspace(self.resource.as_deref())?;
        let servers: Vec<QualifiedName> = workspace
            .languages
            .servers()
            .into_iter()
            .map(|status| status.server)
            .filter(|server| lens.is_bound(server))
            .collect();
        let asked = servers.iter().map(|server| workspace.languages.workspace_symbols(server, &self.query));
        let mut answered = Vec::new();
        let mut problems = Vec::new();
        let mut found: Vec<PlacedSymbol> = Vec::new();
        for (server, answer) in servers.iter().zip(join_all(asked).await) {
            match answer {
                Ok(Some(symbols)) => {
                    answered.push(server.clone());
                    let new = symbols.into_iter().filter(|symbol| !found.contains(symbol));
                    let new: Vec<_> = new.collect();
                    found.extend(new);
                }
                Ok(None) => {}
                Err(problem) => problems.push(problem),
            }
        }
        if answered.is_empty() {
            return Err(match problems.is_empty() {
                true => "no bound server offers symbols of the workspace".to_owned(),
                false => problems.join("; "),
            });
        }
        if let Some(kind) = &self.kind {
            found.retain(|symbol| symbol.kind == *kind);
        }
        // The name itself first, then names that begin so, then the rest, each in the servers' order.
        let query = self.query.to_lowercase();
        found.sort_by_key(|symbol| {
            let name = symbol.name.to_lowercase();
            let exactly = symbol.name == self.query;
            (symbol.place.outside, !exactly, name != query, !name.starts_with(&query))
        });
        let window = Window::new(self.limit, self.offset);
        let mut page = window.cut(&names(&answered), &found, |symbol| Hit {
            name: Some(symbol.name.clone()),
            kind: Some(symbol.kind.clone()),
            container: symbol.container.clone(),
            ..Hit::of(workspace, &symbol.place, 0)
        });
        if !problems.is_empty() {
            page.note = Some(format!("not all answered: {}", problems.join("; ")));
        }
        Ok(page)
    }
}
