//! The features: symbols of a document and of the workspace, definition, references, hover, syntax errors.

use std::collections::HashSet;
use std::sync::Arc;

use agents_domain::ports::code_index::{CodeSymbol, Found, IndexResult, Occurrence, Outline};
use agents_domain::text::{Position as Byte, Range as Bytes};
use tower_lsp::lsp_types::{
    Diagnostic, DiagnosticSeverity, DocumentSymbol, Location, NumberOrString, Position, SymbolInformation,
    SymbolKind,
};

use super::positions::{Places, of_text};
use super::{MARK, Seen, Syntax};
use crate::Snapshot;
use crate::documents::{Document, Text};
use crate::requests::brief;
use crate::requests::diagnostic::SOURCE;
use crate::requests::lines::EngineLines;

/// `code` of a syntax error.
const CODE_SYNTAX: &str = "syntax-error";
/// Symbols of the workspace that are answered at once.
const MOST_SYMBOLS: usize = 256;
/// Places that are answered at once.
const MOST_PLACES: usize = 2000;

/// A symbol and where it is.
pub(crate) struct Target {
    pub symbol: CodeSymbol,
    pub path: String,
    pub location: Location,
}

impl Syntax {
    /// What a document declares, as a tree.
    pub fn document_symbols(&self, document: &Document) -> Option<Vec<DocumentSymbol>> {
        let outline = self.outline(document)?;
        let lines = EngineLines::of(document.text());
        let mut open: Vec<(Bytes, DocumentSymbol)> = Vec::new();
        let mut top = Vec::new();
        let close = |open: &mut Vec<(Bytes, DocumentSymbol)>, top: &mut Vec<DocumentSymbol>| {
            if let Some((_, done)) = open.pop() {
                match open.last_mut() {
                    Some((_, parent)) => parent.children.get_or_insert_default().push(done),
                    None => top.push(done),
                }
            }
        };
        for symbol in &outline.symbols {
            // `a, b = 1, 2` are two in one range, none in the other.
            let outside = |(range, _): &(Bytes, _)| range.end <= symbol.range.start || *range == symbol.range;
            while open.last().is_some_and(outside) {
                close(&mut open, &mut top);
            }
            let range = |range: Bytes| {
                tower_lsp::lsp_types::Range::new(lines.position(range.start), lines.position(range.end))
            };
            #[allow(deprecated, reason = "the field must be given")]
            let shown = DocumentSymbol {
                name: symbol.name.clone(),
                detail: Some(match symbol.signature.as_str() {
                    "" => MARK.to_owned(),
                    signature => format!("{} ({MARK})", brief(signature, 120)),
                }),
                kind: kind(&symbol.kind),
                tags: None,
                deprecated: None,
                range: range(symbol.range),
                selection_range: range(symbol.name_range),
                children: None,
            };
            open.push((symbol.range, shown));
        }
        while !open.is_empty() {
            close(&mut open, &mut top);
        }
        Some(top)
    }

    /// The symbols of all folders that a person may mean.
    pub fn workspace_symbols(&self, snapshot: &Snapshot, query: &str) -> IndexResult<Vec<SymbolInformation>> {
        let mut all = Vec::new();
        for folder in snapshot.folders() {
            let Some(index) = self.index(folder) else { continue };
            let open = self.open_in(snapshot, folder);
            let mut places = Places::new(snapshot, folder);
            let mut seen = HashSet::new();
            for found in index.search_symbols(query, MOST_SYMBOLS)? {
                let Found { path, ascii, what, .. } = found;
                if !self.speaks(&found.language) {
                    continue;
                }
                if let Some((document, outline)) = open.get(&path) {
                    // As the editor has it: there, elsewhere in the text, or no more.
                    for symbol in
                        outline.symbols.iter().filter(|s| s.name == what.name && s.kind == what.kind)
                    {
                        if seen.insert((path.clone(), symbol.name_range)) {
                            all.extend(here(document, symbol).map(|at| information(symbol, &path, at)));
                        }
                    }
                    continue;
                }
                if let Some(location) = places.closed(&path, ascii, what.name_range) {
                    all.push(information(&what, &path, location));
                }
            }
            // Names that are not saved yet.
            let words = query.to_lowercase();
            for (path, (document, outline)) in &open {
                let new = outline.symbols.iter().filter(|s| s.name.to_lowercase().contains(&words));
                for symbol in new.take(MOST_SYMBOLS) {
                    if seen.insert((path.clone(), symbol.name_range)) {
                        all.extend(here(document, symbol).map(|at| information(symbol, path, at)));
                    }
                }
            }
        }
        all.truncate(MOST_SYMBOLS);
        Ok(all)
    }

    /// What the name at a position may mean.
    pub fn targets(&self, snapshot: &Snapshot, seen: &Seen, at: Position) -> IndexResult<Vec<Target>> {
        let text = seen.document.text();
        let at = byte(text, at);
        let Some((index, folder, path)) = &seen.indexed else {
            return Ok(own_targets(seen, at));
        };
        let open = self.open_in(snapshot, folder);
        let mut places = Places::new(snapshot, folder);
        let mut targets = Vec::new();
        for found in index.definitions(path, &seen.outline, at)? {
            let Found { path: file, ascii, what, .. } = found;
            if file == *path {
                targets.extend(here(&seen.document, &what).map(|location| Target {
                    symbol: what,
                    path: file,
                    location,
                }));
            } else if let Some((document, outline)) = open.get(&file) {
                let same = |s: &&CodeSymbol| s.name == what.name && s.container == what.container;
                if let Some(symbol) = outline.symbols.iter().find(same) {
                    targets.extend(here(document, symbol).map(|location| Target {
                        symbol: symbol.clone(),
                        path: file,
                        location,
                    }));
                }
            } else if let Some(location) = places.closed(&file, ascii, what.name_range) {
                targets.push(Target { symbol: what, path: file, location });
            }
        }
        if targets.is_empty()
            && let Some(name) = seen.outline.name_at(at)
        {
            // Declared in another open document, and not saved there yet.
            for (file, (document, outline)) in &open {
                for symbol in outline.symbols.iter().filter(|s| *s.name == *name.name) {
                    targets.extend(here(document, symbol).map(|location| Target {
                        symbol: symbol.clone(),
                        path: file.clone(),
                        location,
                    }));
                }
            }
        }
        Ok(targets)
    }

    /// Where the name at a position stands: a local one in its function, any other in the folder.
    pub fn references(
        &self,
        snapshot: &Snapshot,
        seen: &Seen,
        at: Position,
        declarations: bool,
    ) -> IndexResult<Vec<Location>> {
        let at = byte(seen.document.text(), at);
        let Some(name) = seen.outline.name_at(at) else { return Ok(Vec::new()) };
        let wanted = |place: &Occurrence| declarations || place.role != "declaration";
        let local = match &seen.indexed {
            Some((index, _, path)) => {
                index.definitions(path, &seen.outline, at)?.into_iter().next().filter(|found| {
                    matches!(found.what.kind.as_str(), "variable" | "parameter")
                        && found.what.signature.is_empty()
                })
            }
            None => None,
        };
        let scope = local.and_then(|local| {
            let functions = |s: &&CodeSymbol| matches!(s.kind.as_str(), "function" | "method");
            seen.outline.around(local.what.range.start).rfind(functions).map(|s| s.range)
        });
        let of_document = |document: &Document, outline: &Outline, scope: Option<Bytes>| -> Vec<Location> {
            let Some(uri) = document.uri().to_url() else { return Vec::new() };
            let inside =
                |range: Bytes| scope.is_none_or(|scope| scope.start <= range.start && range.end <= scope.end);
            let lines = EngineLines::of(document.text());
            let found = outline
                .names
                .iter()
                .filter(|n| n.name == name.name && wanted(&n.place) && inside(n.place.range));
            found
                .map(|n| {
                    let (start, end) =
                        (lines.position(n.place.range.start), lines.position(n.place.range.end));
                    Location { uri: uri.clone(), range: tower_lsp::lsp_types::Range::new(start, end) }
                })
                .collect()
        };
        let mut all = of_document(&seen.document, &seen.outline, scope);
        let Some((index, folder, path)) = seen.indexed.as_ref().filter(|_| scope.is_none()) else {
            return Ok(all);
        };
        let open = self.open_in(snapshot, folder);
        for (_, (document, outline)) in open.iter().filter(|(file, _)| *file != path) {
            if outline.language == seen.outline.language {
                all.extend(of_document(document, outline, None));
            }
        }
        let mut places = Places::new(snapshot, folder);
        for found in index.occurrences(&name.name, MOST_PLACES)? {
            if found.language != seen.outline.language || open.contains_key(&found.path) {
                continue;
            }
            for place in found.what.iter().filter(|place| wanted(place)) {
                all.extend(places.closed(&found.path, found.ascii, place.range));
            }
        }
        all.truncate(MOST_PLACES);
        Ok(all)
    }

    /// Where the syntax of a document is broken.
    pub fn errors(&self, document: &Document) -> Vec<Diagnostic> {
        let Some(outline) = self.outline(document) else { return Vec::new() };
        let errors = outline.syntax_errors.iter().map(|(range, message)| Diagnostic {
            range: of_text(document.text(), *range),
            severity: Some(DiagnosticSeverity::ERROR),
            code: Some(NumberOrString::String(CODE_SYNTAX.to_owned())),
            source: Some(SOURCE.to_owned()),
            message: format!("{message} ({MARK})"),
            ..Diagnostic::default()
        });
        errors.collect()
    }
}

/// Without an index there is the document itself.
fn own_targets(seen: &Seen, at: Byte) -> Vec<Target> {
    let Some(name) = seen.outline.name_at(at) else { return Vec::new() };
    let same = seen.outline.symbols.iter().filter(|symbol| *symbol.name == *name.name);
    same.filter_map(|symbol| {
        let location = here(&seen.document, symbol)?;
        Some(Target { symbol: symbol.clone(), path: String::new(), location })
    })
    .collect()
}

/// A symbol's name in an open document.
fn here(document: &Arc<Document>, symbol: &CodeSymbol) -> Option<Location> {
    Some(Location { uri: document.uri().to_url()?, range: of_text(document.text(), symbol.name_range) })
}

fn information(symbol: &CodeSymbol, path: &str, location: Location) -> SymbolInformation {
    let place = match symbol.container.as_str() {
        "" => format!("{path} ({MARK})"),
        container => format!("{container} in {path} ({MARK})"),
    };
    #[allow(deprecated, reason = "the field must be given")]
    SymbolInformation {
        name: symbol.name.clone(),
        kind: kind(&symbol.kind),
        tags: None,
        deprecated: None,
        location,
        container_name: Some(place),
    }
}

/// The protocol's kind for a word of the index.
fn kind(word: &str) -> SymbolKind {
    match word {
        "module" => SymbolKind::MODULE,
        "class" => SymbolKind::CLASS,
        "struct" | "union" => SymbolKind::STRUCT,
        "enum" => SymbolKind::ENUM,
        "enum-member" => SymbolKind::ENUM_MEMBER,
        "trait" => SymbolKind::INTERFACE,
        "impl" => SymbolKind::OBJECT,
        "method" => SymbolKind::METHOD,
        "type-alias" => SymbolKind::TYPE_PARAMETER,
        "constant" => SymbolKind::CONSTANT,
        "field" => SymbolKind::FIELD,
        "variable" | "parameter" => SymbolKind::VARIABLE,
        _ => SymbolKind::FUNCTION,
    }
}

/// A position of the protocol as the index counts: lines that end at `\n`, columns in bytes.
fn byte(text: &Text, at: Position) -> Byte {
    EngineLines::of(text).byte(text.offset(at))
}
