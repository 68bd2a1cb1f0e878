//! Semantic tokens. A client that takes registrations gets the legend of the server itself; one that does not was told
//! the protocol's own legend before any server ran, and tokens are counted into that.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::State;

/// The types of the protocol (LSP 3.17, `SemanticTokenTypes`).
const TYPES: [&str; 23] = [
    "namespace",
    "type",
    "class",
    "enum",
    "interface",
    "struct",
    "typeParameter",
    "parameter",
    "variable",
    "property",
    "enumMember",
    "event",
    "function",
    "method",
    "macro",
    "keyword",
    "modifier",
    "comment",
    "string",
    "number",
    "regexp",
    "operator",
    "decorator",
];

/// The modifiers of the protocol (LSP 3.17, `SemanticTokenModifiers`).
const MODIFIERS: [&str; 10] = [
    "declaration",
    "definition",
    "readonly",
    "static",
    "deprecated",
    "abstract",
    "async",
    "modification",
    "documentation",
    "defaultLibrary",
];

/// The options told to a client that takes no registrations. Deltas are left out: a token that has no type here would
/// shift them.
pub(super) fn plain_options() -> Value {
    json!({ "legend": { "tokenTypes": TYPES, "tokenModifiers": MODIFIERS }, "full": true, "range": true })
}

/// Whether answers of a server are counted into another legend.
pub(super) fn is_mapped(state: &State, method: &str) -> bool {
    method.starts_with("textDocument/semanticTokens/")
        && state.offered.is_plain("textDocument/semanticTokens")
}

/// An answer as the client is to read it.
pub(super) fn mapped<'a>(state: &State, server: usize, method: &str, result: &'a str) -> Cow<'a, str> {
    if !is_mapped(state, method) {
        return Cow::Borrowed(result);
    }
    let Some(feature) = super::features::of(method) else { return Cow::Borrowed(result) };
    let legend =
        state.servers[server].provider(feature).map(|options| options["legend"].clone()).unwrap_or_default();
    let Ok(mut tokens) = serde_json::from_str::<Value>(result) else { return Cow::Borrowed(result) };
    let Some(data) = tokens["data"].as_array() else { return Cow::Borrowed(result) };
    tokens["data"] = recount(data, &legend).into();
    Cow::Owned(tokens.to_string())
}

/// Five numbers a token: line and start relative to the last one, length, type, modifiers.
fn recount(data: &[Value], legend: &Value) -> Vec<u64> {
    let place = |list: &str, known: &[&str]| -> Vec<Option<u64>> {
        let names = legend[list].as_array().into_iter().flatten();
        names.map(|name| known.iter().position(|one| name == one).map(|at| at as u64)).collect()
    };
    let (types, modifiers) = (place("tokenTypes", &TYPES), place("tokenModifiers", &MODIFIERS));
    let mut counted = Vec::with_capacity(data.len());
    // What tokens that are left out moved on.
    let (mut lines, mut characters) = (0, 0);
    for token in data.chunks_exact(5) {
        let number = |at: usize| token[at].as_u64().unwrap_or_default();
        if number(0) > 0 {
            lines += number(0);
            characters = number(1);
        } else {
            characters += number(1);
        }
        let Some(kind) = types.get(number(3) as usize).copied().flatten() else { continue };
        let set = modifiers.iter().enumerate().filter(|(at, _)| number(4) >> at & 1 == 1);
        let set = set.filter_map(|(_, known)| *known).fold(0, |set, bit| set | 1 << bit);
        counted.extend([lines, characters, number(2), kind, set]);
        (lines, characters) = (0, 0);
    }
    counted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_counted_into_the_plain_legend_and_unknown_ones_left_out() {
        let legend =
            json!({ "tokenTypes": ["odd", "function", "class"], "tokenModifiers": ["strange", "static"] });
        let data = json!([2, 4, 3, 1, 2, 0, 5, 2, 0, 0, 0, 6, 1, 2, 3, 1, 1, 1, 0, 0, 1, 7, 4, 1, 0]);
        let counted = recount(data.as_array().unwrap(), &legend);
        assert_eq!(counted, [2, 4, 3, 12, 8, 0, 11, 1, 2, 8, 2, 7, 4, 12, 0]);
    }
}
