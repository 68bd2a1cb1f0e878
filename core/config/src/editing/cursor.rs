//! Where in a YAML file somebody is writing, read from lines and indentation alone: the text need not be whole.

use std::ops::Range as Bytes;

/// A part of the way from the top of a file to a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// Into the value of a key.
    Key(String),
    /// Into an item of a list.
    Item,
}

/// What is being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// A key, or an item of a list that is not a mapping.
    Key,
    /// The value of the key that the path ends with.
    Value,
}

/// The place where somebody writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cursor {
    /// The way to it.
    pub path: Vec<Step>,
    pub wanted: Wanted,
    /// The keys of the mapping that are there already; of those, the one being written is left out.
    pub present: Vec<String>,
    /// The word being written.
    pub bytes: Bytes<usize>,
    /// The column of the keys of its mapping.
    pub column: usize,
}

/// A mark of structure at the start of a line.
enum Mark<'t> {
    Dash,
    /// A key with what follows it on the line.
    Key(&'t str, &'t str),
}

/// The marks of a line with their columns, and where the rest begins. Comments and empty lines have none.
fn marks(line: &str) -> (Vec<(usize, Mark<'_>)>, usize) {
    let mut found = Vec::new();
    let mut at = line.len() - line.trim_start_matches(' ').len();
    loop {
        let rest = &line[at..];
        if let Some(after) = rest.strip_prefix('-').filter(|after| after.is_empty() || after.starts_with(' '))
        {
            found.push((at, Mark::Dash));
            at += 1 + (after.len() - after.trim_start_matches(' ').len());
            continue;
        }
        if let Some(colon) = key_end(rest) {
            let value = &rest[colon + 1..];
            let key = rest[..colon].trim_matches(['"', '\'']);
            found.push((at, Mark::Key(key, value.trim())));
            at += colon + 1 + (value.len() - value.trim_start_matches(' ').len());
        }
        return (found, at);
    }
}

/// The colon behind a key at the start of a text.
fn key_end(text: &str) -> Option<usize> {
    let colon = text.find(':')?;
    let ends = text[colon + 1..].is_empty() || text[colon + 1..].starts_with([' ', '\r']);
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '"' | '\'');
    (ends && colon > 0 && text[..colon].chars().all(plain)).then_some(colon)
}

/// The keys at the left edge of a file, and those of a mapping that stands around all of it.
pub(crate) fn top_keys(text: &str) -> Vec<String> {
    let first = |line: &'_ str, column: usize| match marks(line).0.first() {
        Some((at, Mark::Key(key, _))) if *at == column => Some((*key).to_owned()),
        _ => None,
    };
    let top: Vec<String> = text.lines().filter_map(|line| first(line, 0)).collect();
    if top.len() > 1 {
        return top;
    }
    let inner = text
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'))
        .find_map(|line| marks(line).0.first().map(|(at, _)| *at).filter(|at| *at > 0));
    let inner: Vec<String> =
        inner.iter().flat_map(|at| text.lines().filter_map(|line| first(line, *at))).collect();
    top.into_iter().chain(inner).collect()
}

impl Cursor {
    /// `None` in comments, in block texts, and where no key or value can begin.
    pub fn at(text: &str, at: usize) -> Option<Self> {
        let before = text.get(..at)?;
        let start = before.rfind('\n').map_or(0, |end| end + 1);
        let end = text[at..].find('\n').map_or(text.len(), |more| at + more);
        let written = &text[start..at];
        if written.trim_start().starts_with('#') || written.contains(" #") {
            return None;
        }
        let (found, rest) = marks(written);
        let word = written[rest.min(written.len())..].trim_start_matches(['"', '\'']);
        let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':');
        if !word.chars().all(is_word) {
            return None;
        }
        let tail = text[at..end].find(|c: char| !is_word(c) || c == ':').unwrap_or(end - at);
        let key = match found.last() {
            Some((column, Mark::Key(key, _))) => Some((*column, (*key).to_owned())),
            _ => None,
        };
        let column = key.as_ref().map_or(rest, |(column, _)| *column);
        let mut path = Vec::new();
        let (mut limit, mut dash) = (column, false);
        // The dashes of the line itself, then what stands above it.
        for (at, mark) in found.iter().rev() {
            if matches!(mark, Mark::Dash) {
                path.push(Step::Item);
                (limit, dash) = (*at, true);
            }
        }
        'lines: for line in text[..start].lines().rev() {
            if line.trim().is_empty() || line.trim_start().starts_with('#') {
                continue;
            }
            for (at, mark) in marks(line).0.into_iter().rev() {
                let step = match mark {
                    Mark::Key(_, value) if at < limit && value.starts_with(['|', '>']) => return None,
                    Mark::Key(key, _) if at < limit || (dash && at == limit) => Step::Key(key.to_owned()),
                    Mark::Dash if at < limit => Step::Item,
                    _ => continue,
                };
                dash = step == Step::Item;
                limit = at;
                path.push(step);
                if limit == 0 && !dash {
                    break 'lines;
                }
            }
        }
        path.reverse();
        let present = siblings(text, start, end, column);
        let wanted = match key {
            Some((_, key)) => {
                path.push(Step::Key(key));
                Wanted::Value
            }
            None => Wanted::Key,
        };
        Some(Self { path, wanted, present, bytes: at - word.len()..at + tail, column })
    }
}

/// The keys in a column above and below a line, as far as its mapping goes.
fn siblings(text: &str, start: usize, end: usize, column: usize) -> Vec<String> {
    let mut found = Vec::new();
    // Whether the mapping goes on beyond this line, `up` or down.
    let mut take = |line: &str, up: bool| {
        let (marks, _) = marks(line);
        let Some((first, _)) = marks.first() else { return true };
        // Below, a line further left is of another mapping; above, one that begins with a dash is the mapping's first.
        if !up && *first < column {
            return false;
        }
        found.extend(marks.iter().find_map(|(at, mark)| match mark {
            Mark::Key(key, _) if *at == column => Some((*key).to_owned()),
            _ => None,
        }));
        *first >= column
    };
    let begins_here = text[start..end].trim_start().starts_with("- ");
    if !begins_here {
        for line in text[..start].lines().rev() {
            if !take(line, true) {
                break;
            }
        }
    }
    for line in text[end..].lines().skip(1) {
        if !take(line, false) {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cursor at `|`.
    fn at(text: &str) -> Option<(String, Wanted, Vec<String>)> {
        let place = text.find('|').unwrap();
        let text = text.replacen('|', "", 1);
        let cursor = Cursor::at(&text, place)?;
        let path: Vec<String> = cursor
            .path
            .iter()
            .map(|step| match step {
                Step::Key(key) => key.clone(),
                Step::Item => "[]".to_owned(),
            })
            .collect();
        Some((path.join("/"), cursor.wanted, cursor.present))
    }

    fn found(text: &str, path: &str, wanted: Wanted, present: &[&str]) {
        let present = present.iter().map(ToString::to_string).collect();
        assert_eq!(at(text), Some((path.to_owned(), wanted, present)), "{text}");
    }

    #[test]
    fn a_place_is_known_by_its_lines_and_their_indentation() {
        found("name: a\n|\nb: c\n", "", Wanted::Key, &["name", "b"]);
        found("name: a\nsta|\n", "", Wanted::Key, &["name"]);
        found("name: a\nstate: |\n", "state", Wanted::Value, &["name"]);
        found("name: a\nstate: ava|ilable\n", "state", Wanted::Value, &["name"]);
        found("arguments:\n  - name: x\n    ty|\n", "arguments/[]", Wanted::Key, &["name"]);
        found("arguments:\n  - name: x\n    type: |\n", "arguments/[]/type", Wanted::Value, &["name"]);
        found("arguments:\n- name: x\n  ty|\n", "arguments/[]", Wanted::Key, &["name"]);
        found("arguments:\n  - na|\n    type: x\n", "arguments/[]", Wanted::Key, &["type"]);
        found("arguments:\n  - name: x\n  - |\n", "arguments/[]", Wanted::Key, &[]);
        found("languages:\n  - py|\n", "languages/[]", Wanted::Key, &[]);
        found("action:\n  name: a\n  st|\n", "action", Wanted::Key, &["name"]);
        found("a:\n  b:\n    c: d\n  |\n", "a", Wanted::Key, &["b"]);
    }

    #[test]
    fn nothing_is_written_in_comments_and_block_texts() {
        assert_eq!(at("# na|\n"), None);
        assert_eq!(at("name: a # b|\n"), None);
        assert_eq!(at("description: >-\n  some te|\n"), None);
        assert_eq!(at("description: some te|\n"), None);
    }

    #[test]
    fn the_keys_of_a_broken_file_are_seen() {
        assert_eq!(top_keys("name: a\nstrategy_actor: [\n  x: y\n"), ["name", "strategy_actor"]);
        assert_eq!(top_keys("action:\n  name: a\n  args: {\n"), ["action", "name", "args"]);
    }
}
