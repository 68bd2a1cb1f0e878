//! From a text to what the index keeps of it.

use std::path::Path;
use std::sync::Arc;

use agents_domain::ports::code_index::{CodeSymbol, Import, NamedPlace, Occurrence, Outline};
use agents_domain::text::{Position, Range};
use agents_grammars::{Declared, Facts, Language, LanguageId, detect};

use crate::codec::bare;

/// The longest text that is parsed, in bytes: longer ones are data.
pub(crate) const MAX_TEXT: usize = 1024 * 1024;

pub(crate) fn outline(path: &Path, language_id: Option<&str>, text: &[u8]) -> Option<Outline> {
    if text.len() > MAX_TEXT {
        return None;
    }
    let by_name = language_id.and_then(LanguageId::from_name).and_then(Language::from_id);
    let language = by_name.or_else(|| Language::from_id(detect(path, text)?))?;
    let facts = agents_grammars::facts(language, text).ok()?;
    let syntax_errors = agents_grammars::syntax_errors(language, text).unwrap_or_default();
    let names = facts.references.iter().filter_map(|reference| {
        let written = std::str::from_utf8(text.get(reference.start_byte..reference.end_byte)?).ok()?;
        let start = position(reference.start);
        let end = Position { line: start.line, column: start.column + written.len() as u32 };
        let place = Occurrence { range: Range { start, end }, role: reference.role.as_str() };
        Some(NamedPlace { name: Arc::from(bare(written)), place })
    });
    Some(Outline {
        language: language.id().as_str().to_owned(),
        names: names.collect(),
        symbols: symbols(language, &facts),
        imports: imports(facts.imports),
        syntax_errors: syntax_errors.into_iter().map(|e| (range(e.range), e.message)).collect(),
    })
}

pub(crate) fn symbols(language: Language, facts: &Facts) -> Vec<CodeSymbol> {
    let symbol = |Declared { symbol, signature, doc }: &Declared| CodeSymbol {
        name: bare(&symbol.name).to_owned(),
        kind: symbol.kind.as_str().to_owned(),
        container: symbol.container.join(language.path_separator()),
        range: range(symbol.range),
        name_range: range(symbol.selection_range),
        signature: signature.clone(),
        doc: doc.clone(),
    };
    facts.declarations.iter().map(symbol).collect()
}

pub(crate) fn imports(imports: Vec<agents_grammars::Import>) -> Vec<Import> {
    let import = |import: agents_grammars::Import| Import {
        module: import.module,
        name: import.name,
        alias: import.alias,
        line: number(import.line),
    };
    imports.into_iter().map(import).collect()
}

fn range(range: agents_grammars::Range) -> Range {
    Range { start: position(range.start), end: position(range.end) }
}

fn position(position: agents_grammars::Position) -> Position {
    Position { line: number(position.line), column: number(position.column) }
}

fn number(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
