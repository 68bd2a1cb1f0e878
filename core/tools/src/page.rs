//! Bounded answers: pages of results, places with their source lines, texts that end somewhere.

use agents_domain::QualifiedName;
use agents_domain::ports::code_intelligence::Place;
use agents_domain::text::{LineIndex, Position, Range};
use schemars::JsonSchema;
use serde::Serialize;

use crate::lens::Workspace;

/// Results of one page unless asked otherwise.
pub(crate) const PAGE: usize = 50;
/// Results of one page at most.
const MAX_PAGE: usize = 500;
/// Bytes of one page, so that it fits a model's context.
const MAX_BYTES: usize = 40_000;
/// Bytes of a source line that are shown.
const MAX_LINE: usize = 300;
/// Source lines shown around a result at most.
const MAX_CONTEXT: u32 = 10;

/// A page of results.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Results<T> {
    /// The server that answered; several are named with commas between.
    pub server: String,
    /// This page.
    pub results: Vec<T>,
    /// How many there are in all.
    pub total: usize,
    /// The `offset` that continues after this page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<usize>,
    /// What else is to be known about the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A place with its source.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Hit {
    /// `path:line:column`, counted from 1; columns count characters.
    pub at: String,
    /// The source line, or the lines around it with their numbers.
    pub code: String,
    /// The symbol there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What the symbol is, such as `function`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// What the symbol is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// The file is outside of the workspace, a library say: it is not the plan's to change.
    #[serde(skip_serializing_if = "is_false")]
    pub outside: bool,
}

fn is_false(value: &bool) -> bool {
    !value
}

/// Which results to show.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    limit: usize,
    offset: usize,
}

impl Window {
    pub(crate) fn new(limit: Option<u32>, offset: Option<u32>) -> Self {
        let number = |value: u32| usize::try_from(value).unwrap_or(usize::MAX);
        Self { limit: limit.map_or(PAGE, number).clamp(1, MAX_PAGE), offset: offset.map_or(0, number) }
    }

    /// Cuts a page out; `show` is run for what is on it only. A page also ends where it gets too long.
    pub(crate) fn cut<S, T: Serialize>(
        self,
        server: &str,
        all: &[S],
        mut show: impl FnMut(&S) -> T,
    ) -> Results<T> {
        let mut results = Vec::new();
        let mut bytes = 0;
        for item in all.iter().skip(self.offset).take(self.limit) {
            let shown = show(item);
            bytes += serde_json::to_string(&shown).map_or(0, |text| text.len());
            if bytes > MAX_BYTES && !results.is_empty() {
                break;
            }
            results.push(shown);
        }
        let end = self.offset.saturating_add(results.len());
        let next_offset = (end < all.len() && !results.is_empty()).then_some(end);
        let note = (self.offset > 0 && self.offset >= all.len())
            .then(|| format!("there are only {} results", all.len()));
        Results { server: server.to_owned(), results, total: all.len(), next_offset, note }
    }
}

impl Hit {
    /// A place as it is shown, with `context` lines around it.
    pub(crate) fn of(workspace: &Workspace, place: &Place, context: u32) -> Self {
        let column = column(&place.line, place.range.start.column);
        let around = match context.min(MAX_CONTEXT) {
            0 => None,
            context => (!place.outside)
                .then(|| workspace.languages.text(&place.path).ok())
                .flatten()
                .map(|text| lines_around(&text, place.range.start.line, context)),
        };
        Self {
            at: format!("{}:{}:{column}", place.path, place.range.start.line + 1),
            code: around.unwrap_or_else(|| excerpt(&place.line, place.range.start.column)),
            name: None,
            kind: None,
            container: None,
            outside: place.outside,
        }
    }
}

/// A source line as it is shown: of a long one, what is around a byte column.
pub(crate) fn excerpt(line: &str, column: u32) -> String {
    let line = line.trim_end();
    if line.len() <= MAX_LINE {
        return line.to_owned();
    }
    let column = usize::try_from(column).unwrap_or(usize::MAX).min(line.len());
    let from = column.saturating_sub(MAX_LINE / 3);
    let boundary = |at: usize| (at..=line.len()).find(|at| line.is_char_boundary(*at)).unwrap_or(line.len());
    let (start, end) = (boundary(from), boundary((from + MAX_LINE).min(line.len())));
    let (before, after) =
        (if start > 0 { "\u{2026}" } else { "" }, if end < line.len() { "\u{2026}" } else { "" });
    format!("{before}{}{after}", &line[start..end])
}

/// Numbered source lines around a line.
fn lines_around(text: &str, line: u32, context: u32) -> String {
    let first = line.saturating_sub(context);
    let last = line.saturating_add(context);
    let lines = text.lines().zip(0_u32..).filter(|(_, at)| (first..=last).contains(at));
    let shown = lines.map(|(content, at)| {
        let mark = if at == line { '>' } else { ' ' };
        format!("{mark}{:>5} | {}", at + 1, cut(content, 400))
    });
    shown.collect::<Vec<_>>().join("\n")
}

/// The 1-based column in characters of a byte column in a line; past the end of a shortened line it is a guess.
pub(crate) fn column(line: &str, bytes: u32) -> usize {
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    match line.get(..bytes) {
        Some(before) => before.chars().count() + 1,
        None => line.chars().count().max(bytes.min(line.len())) + 1,
    }
}

/// `path:line:column` of a range in a text.
pub(crate) fn at(path: &str, text: &str, index: &LineIndex, position: Position) -> String {
    let line = line_of(text, index, position.line);
    format!("{path}:{}:{}", position.line + 1, column(line, position.column))
}

/// A line of a text, without its end.
pub(crate) fn line_of<'t>(text: &'t str, index: &LineIndex, line: u32) -> &'t str {
    let number = usize::try_from(line).unwrap_or(usize::MAX);
    let start = index.offset(text, Position { line, column: 0 });
    match start {
        Some(start) if number < index.lines() => {
            text.get(start..index.line_end(text, number)).unwrap_or_default()
        }
        _ => "",
    }
}

/// Whether a range has a line (both 0-based) in it.
pub(crate) fn touches(range: Range, first: u32, last: u32) -> bool {
    range.start.line <= last && range.end.line >= first
}

/// A text that is not longer than so many bytes; where it was cut it says so.
pub(crate) fn cut(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let end = (0..=bytes).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    format!("{}\u{2026} ({} more bytes)", &text[..end], text.len() - end)
}

/// Names with commas between.
pub(crate) fn names(servers: &[QualifiedName]) -> String {
    servers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_bounded_in_number_and_size_and_says_how_to_go_on() {
        let all: Vec<usize> = (0..120).collect();
        let first = Window::new(None, None).cut("s", &all, |n| *n);
        assert_eq!((first.results.len(), first.total, first.next_offset), (50, 120, Some(50)));
        let last = Window::new(Some(50), Some(100)).cut("s", &all, |n| *n);
        assert_eq!((last.results.len(), last.next_offset), (20, None));
        let past = Window::new(None, Some(500)).cut("s", &all, |n| *n);
        assert_eq!((past.results.len(), past.next_offset), (0, None));
        assert_eq!(past.note.as_deref(), Some("there are only 120 results"));
        let long = Window::new(None, None).cut("s", &all, |_| "x".repeat(9_000));
        assert_eq!((long.results.len(), long.next_offset), (4, Some(4)));
        let huge = Window::new(None, Some(7)).cut("s", &all, |_| "x".repeat(90_000));
        assert_eq!((huge.results.len(), huge.next_offset), (1, Some(8)));
    }

    #[test]
    fn columns_count_characters_from_one() {
        assert_eq!(column("é😀x", 0), 1);
        assert_eq!(column("é😀x", 6), 3);
        assert_eq!(column("ab", 9), 3);
        let long = format!("{}needle{}", "é".repeat(400), "x".repeat(400));
        let shown = excerpt(&long, 800);
        assert!(shown.contains("needle") && shown.len() < 320 && shown.starts_with('\u{2026}'), "{shown}");
        assert_eq!(excerpt("short  ", 900), "short");
        assert_eq!(cut("é😀x", 3), "é\u{2026} (5 more bytes)");
    }
}
