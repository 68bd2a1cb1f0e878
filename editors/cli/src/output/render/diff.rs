//! Diffs: a patch that tools can read in the ASCII layout, the same in a box, and with line numbers in the rich one.

use crate::output::element::{Diff, DiffKind, DiffLine};
use crate::output::layout::{self, Keep, Line};
use crate::output::styled::{Styled, Tone};

use super::View;
use super::frame::frame;

pub(super) fn rows(diff: &Diff, view: &View) -> Vec<Line> {
    if !view.boxed {
        return patch(diff, view);
    }
    let (added, removed) = diff.stats();
    let numbers = if view.rich { digits(diff) } else { 0 };
    let mut body: Vec<Line> = Vec::new();
    if !view.rich {
        body.extend(file_lines(diff).map(|(text, tone)| view.one_line(Styled::new(text, tone))));
    }
    for note in diff.notes.iter().filter(|n| !view.rich || !is_noise(n)) {
        body.push(view.one_line(Styled::new(note.as_str(), Tone::Dim)));
    }
    for hunk in &diff.hunks {
        body.push(view.one_line(Styled::new(hunk.header.as_str(), Tone::Id)));
        for note in &hunk.notes {
            body.extend(layout::wrap_hanging(view.one_line(note.clone()), view.inner(), 2));
        }
        for line in &hunk.lines {
            body.extend(numbered(line, numbers, view));
        }
    }
    let body = body.into_iter().flat_map(|row| layout::wrap_hanging(row, view.inner(), 0)).collect();
    let mut title = Line::default();
    if view.rich {
        let stat = format!(" +{added} -{removed}");
        let name = view.one_line(Styled::new(name(diff), Tone::Title));
        let room = view.inner().map_or(usize::MAX, |w| w.saturating_sub(2 + stat.len()));
        title.extend(layout::cut(name, room, Keep::End, view.ellipsis()));
        title.push(format!(" +{added}"), Tone::Good);
        title.push(format!(" -{removed}"), Tone::Bad);
    }
    frame(title, body, Default::default(), Tone::Plain, view)
}

/// The path without git's `a/` and `b/`; of a deleted file the old one.
fn name(diff: &Diff) -> &str {
    let real = |name: &'_ Option<String>| name.as_deref().is_some_and(|n| n != "/dev/null");
    let chosen = if real(&diff.file_b) { &diff.file_b } else { &diff.file_a };
    match chosen.as_deref() {
        Some(name) => name.strip_prefix("b/").or(name.strip_prefix("a/")).unwrap_or(name),
        None => diff.notes.iter().find_map(|n| n.strip_prefix("diff --git ")).unwrap_or("diff"),
    }
}

/// Notes of git that only tools need.
fn is_noise(note: &str) -> bool {
    note.starts_with("diff --git ") || note.starts_with("index ")
}

fn file_lines(diff: &Diff) -> impl Iterator<Item = (String, Tone)> + '_ {
    let named = |sign: &str, name: &Option<String>| name.as_ref().map(|n| format!("{sign} {n}"));
    let names = [named("---", &diff.file_a), named("+++", &diff.file_b)];
    names.into_iter().flatten().map(|line| (line, Tone::Strong))
}

fn tone(kind: DiffKind) -> (&'static str, Tone) {
    match kind {
        DiffKind::Add => ("+", Tone::Good),
        DiffKind::Remove => ("-", Tone::Bad),
        DiffKind::Context => (" ", Tone::Plain),
        DiffKind::Note => ("", Tone::Dim),
    }
}

/// The patch as it is: no indent, tabs kept, so that `patch` and `git apply` can read it.
fn patch(diff: &Diff, view: &View) -> Vec<Line> {
    let raw = |text: &str, tone: Tone| {
        let cut = text.strip_suffix('\r').unwrap_or(text);
        let mut row = Line::default();
        for (i, part) in cut.split('\t').enumerate() {
            row.push(if i > 0 { "\t" } else { "" }, tone);
            row.extend(view.one_line(Styled::new(part, tone)));
        }
        // A carriage return before the line break is part of the patch and harmless there.
        row.push(&text[cut.len()..], tone);
        row
    };
    let mut out: Vec<Line> = diff.notes.iter().map(|note| raw(note, Tone::Dim)).collect();
    out.extend(file_lines(diff).map(|(text, tone)| raw(&text, tone)));
    for hunk in &diff.hunks {
        let mut header = raw(&hunk.header, Tone::Id);
        // Behind the ranges, where tools expect the name of a function, anything may stand.
        for (at, note) in hunk.notes.iter().enumerate() {
            header.push(if at == 0 { " " } else { "; " }, Tone::Plain);
            header.extend(view.one_line(note.clone()));
        }
        out.push(header);
        for line in &hunk.lines {
            let (sign, tone) = tone(line.kind);
            out.push(raw(&format!("{sign}{}", line.content), tone));
        }
    }
    out
}

/// Digits of the largest line number.
fn digits(diff: &Diff) -> usize {
    let lines = diff.hunks.iter().flat_map(|h| &h.lines);
    lines.filter_map(|l| l.old.max(l.new)).max().unwrap_or(0).to_string().len()
}

fn numbered(line: &DiffLine, digits: usize, view: &View) -> Vec<Line> {
    let (sign, tone) = tone(line.kind);
    let number = |n: Option<usize>| n.map_or(" ".repeat(digits), |n| format!("{n:>digits$}"));
    let gutter =
        if digits > 0 { format!("{} {} ", number(line.old), number(line.new)) } else { String::new() };
    let mut row = Line::of(gutter, Tone::Dim);
    let indent = row.width() + 2;
    row.push(if sign.is_empty() { String::new() } else { format!("{sign} ") }, tone);
    let ends_with_return = line.content.ends_with('\r');
    let content = line.content.strip_suffix('\r').unwrap_or(&line.content);
    row.extend(view.one_line(Styled::new(content, tone)));
    if ends_with_return {
        row.push("␍", Tone::Dim);
    }
    layout::wrap_hanging(row, view.inner(), indent)
}
