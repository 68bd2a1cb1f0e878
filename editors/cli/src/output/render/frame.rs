//! The box around a panel, table or tree; in the ASCII layout, a title over indented rows.

use crate::output::element::Border;
use crate::output::layout::{self, Keep, Line};
use crate::output::styled::Tone;

use super::View;

/// Corners and edges of a border: top left, top right, bottom left, bottom right, horizontal, vertical.
fn edges(border: Border) -> [&'static str; 6] {
    match border {
        Border::Rounded | Border::None => ["╭", "╮", "╰", "╯", "─", "│"],
        Border::Square => ["┌", "┐", "└", "┘", "─", "│"],
        Border::Heavy => ["┏", "┓", "┗", "┛", "━", "┃"],
    }
}

/// Puts rows, none wider than [`View::inner`], under a title and into a box where the view draws boxes. `tone` colours
/// the edges; plain edges are dim.
pub(super) fn frame(title: Line, body: Vec<Line>, border: Border, tone: Tone, view: &View) -> Vec<Line> {
    if !view.draws_boxes() || border == Border::None {
        let indent = if view.boxed { "" } else { "  " };
        let mut out = if title.spans.is_empty() { Vec::new() } else { vec![title] };
        for row in body {
            let mut indented = Line::default();
            if !row.spans.is_empty() {
                indented.push(indent, Tone::Plain);
            }
            indented.extend(row);
            out.push(indented);
        }
        return out;
    }
    let tone = if tone == Tone::Plain { Tone::Dim } else { tone };
    let [top_left, top_right, bottom_left, bottom_right, across, down] = edges(border);
    let inner = view.inner().unwrap_or(usize::MAX);
    let title = layout::cut(title, inner.saturating_sub(2), Keep::Start, view.ellipsis());
    let title_width = title.width();
    let width = body.iter().map(Line::width).max().unwrap_or(0).max(if title_width > 0 {
        title_width + 2
    } else {
        0
    });
    let mut top = Line::of(top_left, tone);
    if title_width > 0 {
        top.push(format!("{across} "), tone);
        top.extend(title);
        top.push(format!(" {}{top_right}", across.repeat(width - title_width - 1)), tone);
    } else {
        top.push(format!("{}{top_right}", across.repeat(width + 2)), tone);
    }
    let mut out = vec![top];
    for mut row in body {
        row.pad(width);
        let mut line = Line::of(down, tone);
        line.push(" ", Tone::Plain);
        let shade = row.shade;
        line.extend(row);
        line.push(" ", Tone::Plain);
        line.push(down, tone);
        line.shade = shade;
        out.push(line);
    }
    out.push(Line::of(format!("{bottom_left}{}{bottom_right}", across.repeat(width + 2)), tone));
    out
}
