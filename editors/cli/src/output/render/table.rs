//! Tables: columns as wide as they need, narrowed to the terminal where they must be, and one record under another where
//! even that is too wide.

use crate::output::element::{Align, Column, Record, Table};
use crate::output::human::{self, Kind};
use crate::output::layout::{self, Keep, Line};
use crate::output::styled::{Styled, Tone};
use serde_json::Value;
use std::borrow::Cow;

use super::View;
use super::frame::frame;
use super::progress::spinner;

/// Columns between two columns.
const GAP: usize = 2;
/// Characters that a shortened id keeps at least.
const ID_LEAST: usize = 8;
/// No column that gives way becomes narrower than this.
const LEAST: usize = 8;

pub(super) fn rows(table: &Table, view: &View) -> Vec<Line> {
    let mut title = view.own(&table.title, Tone::Title);
    if view.open && view.rich {
        title.push(format!(" {}", spinner(view.now)), Tone::Info);
    }
    if table.rows.is_empty() && !view.open {
        return empty(table, title, view);
    }
    let ordered = table.ordered();
    let most = if view.open { Some(view.window) } else { table.max_rows };
    let hidden = most.map_or(0, |most| ordered.len().saturating_sub(most));
    // Of a growing table the newest rows matter, of a finished one the first.
    let shown = if view.open { &ordered[hidden..] } else { &ordered[..ordered.len() - hidden] };

    let cells = cells(&table.columns, shown, view);
    let mut body = match fit(&table.columns, &cells, view) {
        Some(widths) => grid(&table.columns, cells, &widths, view),
        None => records(&table.columns, cells, view),
    };
    let mut note =
        |text: String| body.extend(layout::wrap_hanging(Line::of(text, Tone::Dim), view.inner(), 0));
    if hidden > 0 && !view.open {
        note(format!("({} and {} more rows)", view.ellipsis(), human::count(hidden as u64)));
    }
    if view.open {
        note(format!(
            "{} (streaming{})",
            human::counted(ordered.len() as u64, "row", "rows"),
            view.ellipsis()
        ));
    }
    if !table.summary.is_empty() {
        body.push(Line::default());
        for (label, value) in &table.summary {
            let mut row = view.own(label, Tone::Key);
            row.push(": ", Tone::Key);
            row.extend(view.one_line(value.clone()));
            body.extend(layout::wrap_hanging(row, view.inner(), 2));
        }
    }
    frame(title, body, table.border, Tone::Plain, view)
}

/// A finished table in the ASCII layout without colours, as [`rows`] and [`super::paint`] would show it, but without
/// rows and spans on the way: such tables go into pipes and may be long. Nothing for other views and for empty tables.
pub fn plain(table: &Table, view: &View) -> Option<String> {
    if view.boxed || view.color || view.open || table.rows.is_empty() {
        return None;
    }
    let ordered = table.ordered();
    let hidden = table.max_rows.map_or(0, |most| ordered.len().saturating_sub(most));
    let shown = &ordered[..ordered.len() - hidden];
    let columns = &table.columns;
    let ids: Vec<Option<Vec<String>>> =
        (0..columns.len()).map(|c| shortened(columns[c].kind, c, shown)).collect();
    let mut cells: Vec<Cow<'_, str>> = Vec::with_capacity(shown.len() * columns.len());
    for (r, row) in shown.iter().enumerate() {
        for (c, column) in columns.iter().enumerate() {
            let other = row.shown.iter().rev().find(|(at, _)| *at == c).map(|(_, shown)| shown.clone());
            cells.push(match (other, column.kind, &row.values[c], &ids[c]) {
                (Some(shown), ..) => view.one_line(shown).text().into(),
                (None, Kind::Id, Value::String(_), Some(ids)) => one_line(&ids[r], view),
                (None, Kind::Text | Kind::State | Kind::Path, Value::String(text), _) => one_line(text, view),
                (None, Kind::Auto, Value::String(text), _) if !human::is_time(text) => one_line(text, view),
                (None, kind, value, _) => view.one_line(human::show(kind, value)).text().into(),
            });
        }
    }
    let headers: Vec<String> = columns.iter().map(|c| view.own(&c.label, Tone::Title).text()).collect();
    let widths: Vec<usize> = (0..columns.len())
        .map(|c| {
            let column = cells.iter().skip(c).step_by(columns.len());
            column.map(|cell| layout::width(cell)).max().unwrap_or(0).max(layout::width(&headers[c]))
        })
        .collect();
    let mut out =
        String::with_capacity((widths.iter().sum::<usize>() + GAP * columns.len()) * (shown.len() + 2));
    let title = view.own(&table.title, Tone::Title).text();
    if !title.is_empty() {
        out.push_str(&title);
        out.push('\n');
    }
    let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
    line(&mut out, headers.iter().map(String::as_str), columns, &widths);
    line(&mut out, rule.iter().map(String::as_str), columns, &widths);
    for row in cells.chunks(columns.len().max(1)) {
        line(&mut out, row.iter().map(AsRef::as_ref), columns, &widths);
    }
    if hidden > 0 {
        out.push_str(&format!("  ({} and {} more rows)\n", view.ellipsis(), human::count(hidden as u64)));
    }
    if !table.summary.is_empty() {
        out.push('\n');
        for (label, value) in &table.summary {
            let label = view.own(label, Tone::Key).text();
            out.push_str(&format!("  {label}: {}\n", view.one_line(value.clone()).text()));
        }
    }
    Some(out)
}

/// A text on one row; one that needs nothing done is not copied.
fn one_line<'t>(text: &'t str, view: &View) -> Cow<'t, str> {
    match text.bytes().all(|b| (0x20..0x7f).contains(&b)) {
        true => text.into(),
        false => view.one_line(text.into()).text().into(),
    }
}

/// Appends an indented row without spaces at its end.
fn line<'t>(out: &mut String, cells: impl Iterator<Item = &'t str>, columns: &[Column], widths: &[usize]) {
    let begin = out.len();
    let spaces = |out: &mut String, n: usize| out.extend(std::iter::repeat_n(' ', n));
    spaces(out, GAP);
    for (c, cell) in cells.enumerate() {
        let room = widths[c].saturating_sub(layout::width(cell));
        let before = match columns[c].align {
            Align::Left => 0,
            Align::Right => room,
            Align::Center => room / 2,
        };
        spaces(out, before + if c > 0 { GAP } else { 0 });
        out.push_str(cell);
        spaces(out, room - before);
    }
    let kept = out.trim_end_matches(' ').len();
    out.truncate(kept.max(begin));
    out.push('\n');
}

fn empty(table: &Table, title: Line, view: &View) -> Vec<Line> {
    let nothing = format!("No {} found.", if table.things.is_empty() { "entries" } else { &table.things });
    if !view.boxed {
        return vec![view.own(&nothing, Tone::Plain)];
    }
    let mut body = Vec::new();
    if view.rich {
        body.push(view.own(&nothing, Tone::Dim));
        for command in &table.when_empty {
            let mut row = Line::of("- ", Tone::Dim);
            row.extend(view.one_line(Styled::new(command.as_str(), Tone::Id)));
            body.push(row);
        }
        body = body.into_iter().flat_map(|row| layout::wrap_hanging(row, view.inner(), 2)).collect();
    } else {
        if let Some(widths) = fit(&table.columns, &[], view) {
            body.extend(grid(&table.columns, Vec::new(), &widths, view));
        }
        body.push(Line::of("(empty)", Tone::Dim));
    }
    frame(title, body, table.border, Tone::Plain, view)
}

/// What is in one place of a table. Only columns that wrap have more than one line.
struct Cell {
    first: Line,
    more: Vec<Line>,
}

impl Cell {
    fn width(&self) -> usize {
        self.more.iter().map(Line::width).max().unwrap_or(0).max(self.first.width())
    }
}

/// The cells by row and column.
fn cells(columns: &[Column], rows: &[&Record], view: &View) -> Vec<Vec<Cell>> {
    let ids: Vec<Option<Vec<String>>> =
        (0..columns.len()).map(|c| shortened(columns[c].kind, c, rows)).collect();
    let cell = |r: usize, row: &Record, c: usize| {
        let column = &columns[c];
        let shown = match row.shown.iter().rev().find(|(at, _)| *at == c) {
            Some((_, shown)) => shown.clone(),
            None => match (column.kind, &row.values[c], &ids[c]) {
                (Kind::Id, Value::String(_), Some(ids)) => Styled::new(ids[r].as_str(), Tone::Id),
                (Kind::Flag, Value::Bool(true), _) if view.boxed => Styled::new("✓", Tone::Good),
                (Kind::Flag, Value::Bool(false), _) if view.boxed => Styled::new("—", Tone::Dim),
                (kind, value, _) => human::show(kind, value),
            },
        };
        let shown = shown.toned(column.tone);
        if column.wraps && view.boxed {
            let mut lines = view.lines(&shown).into_iter();
            Cell { first: lines.next().unwrap_or_default(), more: lines.collect() }
        } else {
            Cell { first: view.one_line(shown), more: Vec::new() }
        }
    };
    let row = |(r, row): (usize, &&Record)| (0..columns.len()).map(|c| cell(r, row, c)).collect();
    rows.iter().enumerate().map(row).collect()
}

fn shortened(kind: Kind, column: usize, rows: &[&Record]) -> Option<Vec<String>> {
    (kind == Kind::Id).then(|| {
        let ids: Vec<&str> = rows.iter().map(|row| row.values[column].as_str().unwrap_or_default()).collect();
        human::short_ids(&ids, ID_LEAST)
    })
}

/// Widths of the columns, or nothing when they cannot all be shown side by side.
fn fit(columns: &[Column], cells: &[Vec<Cell>], view: &View) -> Option<Vec<usize>> {
    let mut widths: Vec<usize> = columns
        .iter()
        .enumerate()
        .map(|(c, column)| {
            let widest = cells.iter().map(|row| row[c].width()).max().unwrap_or(0);
            let header = view.own(&column.label, Tone::Title).width();
            column.width.filter(|_| view.boxed).map_or(widest, |most| widest.min(most)).max(header)
        })
        .collect();
    let Some(limit) = view.inner() else { return Some(widths) };
    let gaps = GAP * columns.len().saturating_sub(1);
    let least: Vec<usize> = columns
        .iter()
        .zip(&widths)
        .map(|(column, width)| match column.kind {
            Kind::Auto | Kind::Text | Kind::Path => {
                (*width).min(LEAST.max(view.own(&column.label, Tone::Title).width()))
            }
            _ => *width,
        })
        .collect();
    while widths.iter().sum::<usize>() + gaps > limit {
        let widest = (0..widths.len()).filter(|c| widths[*c] > least[*c]).max_by_key(|c| widths[*c])?;
        widths[widest] -= 1;
    }
    Some(widths)
}

fn grid(columns: &[Column], cells: Vec<Vec<Cell>>, widths: &[usize], view: &View) -> Vec<Line> {
    let mut header = Line::default();
    let mut rule = Line::default();
    for (c, (column, width)) in columns.iter().zip(widths).enumerate() {
        let gap = if c > 0 { GAP } else { 0 };
        place(&mut header, gap, Some(view.own(&column.label, Tone::Title)), *width, column.align);
        rule.space(gap);
        rule.push(if view.boxed { "─" } else { "-" }.repeat(*width), Tone::Dim);
    }
    let mut out = vec![header, rule];
    for (r, row) in cells.into_iter().enumerate() {
        let mut line = Line { shade: r % 2 == 1, ..Line::default() };
        // What of each column goes on in further lines.
        let mut rest: Vec<std::vec::IntoIter<Line>> = Vec::new();
        for (c, (cell, width)) in row.into_iter().zip(widths).enumerate() {
            let gap = if c > 0 { GAP } else { 0 };
            let (first, more) = fitted(cell, &columns[c], *width, view);
            place(&mut line, gap, Some(first), *width, columns[c].align);
            if !more.is_empty() {
                rest.resize_with(columns.len(), Default::default);
                rest[c] = more.into_iter();
            }
        }
        let shade = line.shade;
        out.push(line);
        while rest.iter().any(|lines| lines.len() > 0) {
            let mut line = Line { shade, ..Line::default() };
            for (c, (lines, width)) in rest.iter_mut().zip(widths).enumerate() {
                place(&mut line, if c > 0 { GAP } else { 0 }, lines.next(), *width, columns[c].align);
            }
            out.push(line);
        }
    }
    if !view.boxed {
        out.iter_mut().for_each(trim_end);
    }
    out
}

/// Cuts or wraps a cell to its column: its first line and the others.
fn fitted(cell: Cell, column: &Column, width: usize, view: &View) -> (Line, Vec<Line>) {
    if !view.boxed {
        return (cell.first, cell.more);
    }
    if column.wraps {
        let mut lines =
            std::iter::once(cell.first).chain(cell.more).flat_map(|line| layout::wrap(line, width));
        return (lines.next().unwrap_or_default(), lines.collect());
    }
    let keep = if column.kind == Kind::Path { Keep::End } else { Keep::Start };
    (layout::cut(cell.first, width, keep, view.ellipsis()), Vec::new())
}

/// Spaces at the end of a row are noise in a pipe.
fn trim_end(line: &mut Line) {
    while let Some(last) = line.spans.last_mut() {
        let kept = last.text.trim_end_matches(' ').len();
        last.text.truncate(kept);
        if kept > 0 {
            return;
        }
        line.spans.pop();
    }
}

/// Appends a gap and then a text in its column.
fn place(line: &mut Line, gap: usize, text: Option<Line>, width: usize, align: Align) {
    let text = text.unwrap_or_default();
    let room = width.saturating_sub(text.width());
    let before = match align {
        Align::Left => 0,
        Align::Right => room,
        Align::Center => room / 2,
    };
    line.space(gap + before);
    line.extend(text);
    line.space(room - before);
}

/// One record under another, for terminals that are too narrow for columns.
fn records(columns: &[Column], cells: Vec<Vec<Cell>>, view: &View) -> Vec<Line> {
    let mut out = Vec::new();
    let mut starts = Vec::new();
    for row in cells {
        starts.push(out.len());
        for (column, cell) in columns.iter().zip(row) {
            let mut line = view.own(&column.label, Tone::Key);
            line.push(": ", Tone::Key);
            line.extend(cell.first);
            for part in cell.more {
                line.space(1);
                line.extend(part);
            }
            out.extend(layout::wrap_hanging(line, view.inner(), 2));
        }
    }
    let rule = Line::of("─".repeat(out.iter().map(Line::width).max().unwrap_or(0)), Tone::Dim);
    for at in starts.into_iter().skip(1).rev() {
        out.insert(at, rule.clone());
    }
    out
}
