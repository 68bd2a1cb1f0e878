//! Measuring, cleaning, wrapping and cutting text for a terminal. Everything a person sees passes through here, so that
//! no text of a user, a model or a file can move the cursor, change colours or reorder a line.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::styled::{Span, Styled, Tone};

/// Columns between tab stops when a tab is shown as spaces.
const TAB: usize = 4;

/// One row on the screen: cleaned spans, no line break inside.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Line {
    /// The runs of the row.
    pub spans: Vec<Span>,
    /// Whether the row gets the shade that tells neighbouring table rows apart.
    pub shade: bool,
}

impl Line {
    /// A row with one run of text that is already clean.
    pub fn of(text: impl AsRef<str>, tone: Tone) -> Self {
        let mut line = Self::default();
        line.push(text, tone);
        line
    }

    /// Appends text that is already clean.
    pub fn push(&mut self, text: impl AsRef<str>, tone: Tone) {
        let text = text.as_ref();
        if text.is_empty() {
            return;
        }
        match self.spans.last_mut() {
            Some(last) if last.tone == tone => last.text.push_str(text),
            _ => self.spans.push(Span { text: text.to_owned(), tone, own: false }),
        }
    }

    /// Appends spaces.
    pub fn space(&mut self, columns: usize) {
        match self.spans.last_mut() {
            Some(last) if last.tone == Tone::Plain => {
                last.text.extend(std::iter::repeat_n(' ', columns));
            }
            _ => self.push(" ".repeat(columns), Tone::Plain),
        }
    }

    /// Appends the spans of another row.
    pub fn extend(&mut self, other: Line) {
        for span in other.spans {
            self.push(span.text, span.tone);
        }
    }

    /// Pads with spaces up to `width` columns.
    pub fn pad(&mut self, width: usize) {
        self.space(width.saturating_sub(self.width()));
    }

    /// Columns the row takes.
    pub fn width(&self) -> usize {
        self.spans.iter().map(|s| width(&s.text)).sum()
    }

    /// The row without its tones.
    pub fn text(&self) -> String {
        self.spans.iter().map(|s| s.text.as_str()).collect()
    }
}

/// Columns that a clean string takes. Counted per grapheme cluster, so that cutting a text never changes the sum.
pub fn width(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.graphemes(true).map(UnicodeWidthStr::width).sum() }
}

/// Makes text harmless for a terminal. Control characters (C0, DEL, C1) and characters that reorder or hide text
/// (bidirectional controls, line separators) are shown as an escape such as `\x1b`; `\n` stays, `\r\n` becomes `\n`.
/// Tabs become spaces up to the next stop.
pub fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut column = 0;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' => {
                out.push('\n');
                column = 0;
                continue;
            }
            '\r' if chars.peek() == Some(&'\n') => continue,
            '\t' => {
                let spaces = TAB - column % TAB;
                out.extend(std::iter::repeat_n(' ', spaces));
                column += spaces;
                continue;
            }
            c if is_control(c) => {
                let shown = if u32::from(c) <= 0xff {
                    format!("\\x{:02x}", u32::from(c))
                } else {
                    format!("\\u{{{:x}}}", u32::from(c))
                };
                column += shown.len();
                out.push_str(&shown);
                continue;
            }
            c => out.push(c),
        }
        column += unicode_width::UnicodeWidthChar::width(c).unwrap_or(0);
    }
    out
}

/// Whether a character acts on a terminal or on the order of a line instead of being shown.
pub fn is_control(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Our own typography in ASCII: `—` is `--`, `→` is `->`, `…` is `...`, `✓` is `yes`. What is
/// none of it stays.
pub fn ascii(text: &str) -> String {
    if text.is_ascii() {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '—' => out.push_str("--"),
            '–' | '•' => out.push('-'),
            '→' => out.push_str("->"),
            '…' => out.push_str("..."),
            '✓' => out.push_str("yes"),
            '✗' => out.push_str("no"),
            '◆' => out.push('*'),
            '“' | '”' | '«' | '»' => out.push('"'),
            '⏎' => out.push('|'),
            '‘' | '’' => out.push('\''),
            '×' => out.push('x'),
            '·' => out.push('.'),
            '≤' => out.push_str("<="),
            '≥' => out.push_str(">="),
            c => out.push(c),
        }
    }
    out
}

/// Cleans a styled text and splits it at its line breaks; at least one row comes back.
pub fn lines(text: &Styled, to_ascii: bool) -> Vec<Line> {
    let mut rows = vec![Line::default()];
    for span in &text.spans {
        let mut shown = clean(&span.text);
        if span.own && to_ascii {
            shown = ascii(&shown);
        }
        for (i, part) in shown.split('\n').enumerate() {
            if i > 0 {
                rows.push(Line::default());
            }
            if let Some(row) = rows.last_mut() {
                row.push(part, span.tone);
            }
        }
    }
    if rows.len() > 1 && rows.last().is_some_and(|r| r.spans.is_empty()) {
        rows.pop();
    }
    rows
}

/// Cleans a styled text into exactly one row: its lines are joined by a space.
pub fn one_line(text: Styled, to_ascii: bool) -> Line {
    let ready = |span: &Span| span.text.bytes().all(|b| (0x20..0x7f).contains(&b));
    if text.spans.iter().all(ready) {
        let mut spans = text.spans;
        spans.retain(|span| !span.text.is_empty());
        return Line { spans, shade: false };
    }
    let mut joined = Line::default();
    for (i, row) in lines(&text, to_ascii).into_iter().enumerate() {
        if i > 0 {
            joined.push(" ", Tone::Plain);
        }
        joined.extend(row);
    }
    joined
}

/// Breaks a row into rows of at most `limit` columns (at least 1), at spaces where possible, inside a word where not.
pub fn wrap(row: Line, limit: usize) -> Vec<Line> {
    break_row(row, limit, limit)
}

/// As [`wrap`], with all rows but the first indented by `indent` columns. Without a limit the row stays whole.
pub fn wrap_hanging(row: Line, limit: Option<usize>, indent: usize) -> Vec<Line> {
    let Some(limit) = limit else { return vec![row] };
    // An indent that leaves no room for text would only make it worse.
    let indent = if indent + 8 > limit { 0 } else { indent };
    let mut rows = break_row(row, limit, limit - indent);
    for row in rows.iter_mut().skip(1) {
        let mut indented = Line::of(" ".repeat(indent), Tone::Plain);
        indented.extend(std::mem::take(row));
        *row = indented;
    }
    rows
}

fn break_row(row: Line, first: usize, rest: usize) -> Vec<Line> {
    let mut limit = first.max(1);
    let least = limit.min(rest.max(1));
    if row.width() <= limit {
        return vec![row];
    }
    let mut done = Vec::new();
    let mut current = Line::default();
    let mut used = 0;
    for (word, space) in words(&row) {
        let (word_width, space_width) =
            (word.width(), if used == 0 && !done.is_empty() { 0 } else { space.width() });
        if used > 0 && used + space_width + word_width > limit {
            done.push(std::mem::take(&mut current));
            limit = rest.max(1);
            used = 0;
        } else if space_width < limit {
            current.extend(if space_width > 0 { space } else { Line::default() });
            used += space_width;
        }
        if used + word_width <= limit {
            used += word_width;
            current.extend(word);
            continue;
        }
        for span in word.spans {
            for piece in span.text.graphemes(true).flat_map(|cluster| pieces(cluster, least)) {
                let w = width(piece);
                if used + w > limit && used > 0 {
                    done.push(std::mem::take(&mut current));
                    limit = rest.max(1);
                    used = 0;
                }
                current.push(piece, span.tone);
                used += w;
            }
        }
    }
    done.push(current);
    done
}

/// A cluster that fits the limit, or its characters; for one that still does not fit, a dot keeps the place.
fn pieces(cluster: &str, limit: usize) -> Vec<&str> {
    if cluster.width() <= limit {
        return vec![cluster];
    }
    cluster.split("").filter(|c| !c.is_empty()).map(|c| if c.width() <= limit { c } else { "." }).collect()
}

/// The words of a row, each with the spaces before it.
fn words(row: &Line) -> Vec<(Line, Line)> {
    let mut out: Vec<(Line, Line)> = Vec::new();
    let (mut word, mut space) = (Line::default(), Line::default());
    for span in &row.spans {
        for cluster in span.text.graphemes(true) {
            if cluster == " " {
                if !word.spans.is_empty() {
                    out.push((std::mem::take(&mut word), std::mem::take(&mut space)));
                }
                space.push(cluster, span.tone);
            } else {
                word.push(cluster, span.tone);
            }
        }
    }
    if !word.spans.is_empty() {
        out.push((word, space));
    }
    out
}

/// Which end of a text survives when it is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// The beginning: `src/auth/…`.
    Start,
    /// The end: `…/session.py`, for paths.
    End,
}

/// Cuts a row to `limit` columns and marks the cut with `mark` (`…`, or `..` in ASCII).
pub fn cut(row: Line, limit: usize, keep: Keep, mark: &str) -> Line {
    if row.width() <= limit {
        return row;
    }
    let room = limit.saturating_sub(width(mark));
    let clusters: Vec<(&str, Tone)> =
        row.spans.iter().flat_map(|s| s.text.graphemes(true).map(move |g| (g, s.tone))).collect();
    let mut out = Line { shade: row.shade, ..Line::default() };
    let mark = if width(mark) <= limit { mark } else { "" };
    match keep {
        Keep::Start => {
            let n = fitting(clusters.iter(), room);
            clusters[..n].iter().for_each(|(g, tone)| out.push(*g, *tone));
            out.push(mark, clusters.get(n).map_or(Tone::Dim, |(_, tone)| *tone));
        }
        Keep::End => {
            let n = fitting(clusters.iter().rev(), room);
            let from = clusters.len() - n;
            out.push(mark, clusters.get(from).map_or(Tone::Dim, |(_, tone)| *tone));
            clusters[from..].iter().for_each(|(g, tone)| out.push(*g, *tone));
        }
    }
    out
}

/// How many clusters fit the room, from the first on.
fn fitting<'a>(clusters: impl Iterator<Item = &'a (&'a str, Tone)>, room: usize) -> usize {
    let within = |used: &mut usize, (cluster, _): &(&str, Tone)| {
        *used += cluster.width();
        (*used <= room).then_some(())
    };
    clusters.scan(0, within).count()
}
