//! Checks templates (`{{ name }}`) in texts and finds the place of an error inside the file.

use std::collections::BTreeSet;
use std::ops::Range as Bytes;

use minijinja::{Environment, UndefinedBehavior};

use super::{Node, Source};

/// The names a template uses; a syntax error is reported at its place.
pub(crate) fn check_template(node: &Node, path: &str, source: &mut Source<'_>) -> Option<BTreeSet<String>> {
    let text = node.text()?;
    if !text.contains("{{") && !text.contains("{%") && !text.contains("{#") {
        return Some(BTreeSet::new());
    }
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_debug(true);
    match environment.template_from_str(text) {
        Ok(template) => Some(template.undeclared_variables(false).into_iter().collect()),
        Err(error) => {
            let bytes = error
                .range()
                .and_then(|r| in_source(node, r, source.text))
                .unwrap_or_else(|| node.bytes.clone());
            let why = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
            source.error(path, &bytes, format!("the template in `{path}` is not one: {why}"));
            None
        }
    }
}

/// The place in the file of bytes of a text, when the text stands there as it is (apart from indentation).
pub(crate) fn in_source(node: &Node, part: Bytes<usize>, source: &str) -> Option<Bytes<usize>> {
    let text = node.text()?;
    let written = source.get(node.bytes.clone())?;
    // Line by line: in a block text each line stands behind its indentation; in quotes there is one line.
    let mut text_at = 0;
    let mut source_at = node.bytes.start;
    for line in text.split_inclusive('\n') {
        let bare = line.trim_end_matches('\n');
        let found = source_at + source.get(source_at..node.bytes.end)?.find(bare)?;
        if part.start < text_at + line.len() {
            let inside = part.start.checked_sub(text_at)?.min(bare.len());
            let end = part.end.saturating_sub(text_at).clamp(inside, bare.len());
            let range = found + inside..found + end;
            return (written.is_char_boundary(range.start - node.bytes.start)
                && written.is_char_boundary(range.end - node.bytes.start))
            .then_some(range);
        }
        text_at += line.len();
        source_at = found + bare.len();
    }
    // The very end of the text, as for a block that is not closed.
    (part.start >= text_at).then_some(source_at..source_at)
}

/// The first use of a name inside the braces of a template.
pub(crate) fn find_name(node: &Node, name: &str, source: &str) -> Option<Bytes<usize>> {
    let text = node.text()?;
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut from = 0;
    while let Some(open) = text[from..].find("{{").into_iter().chain(text[from..].find("{%")).min() {
        let start = from + open + 2;
        let end = text[start..]
            .find("}}")
            .into_iter()
            .chain(text[start..].find("%}"))
            .min()
            .map_or(text.len(), |e| start + e);
        let inside = &text[start..end];
        for (at, _) in inside.match_indices(name) {
            let before = inside[..at].chars().next_back();
            let after = inside[at + name.len()..].chars().next();
            if !before.is_some_and(|c| is_word(c) || c == '.') && !after.is_some_and(is_word) {
                return in_source(node, start + at..start + at + name.len(), source);
            }
        }
        from = end;
    }
    None
}
