//! Trees with guide lines. Written without recursion: a tree of decisions may be deeper than a stack.

use crate::output::element::Tree;
use crate::output::layout::{self, Keep, Line};
use crate::output::styled::Tone;

use super::View;
use super::frame::frame;

/// Columns that labels keep, however deep the tree.
const LABEL_LEAST: usize = 16;

pub(super) fn rows(tree: &Tree, view: &View) -> Vec<Line> {
    let children = tree.child_lists();
    let heights = heights(tree);
    let (tee, corner, bar, gap) = if view.boxed {
        ("├── ", "└── ", "│   ", "    ")
    } else {
        ("+-- ", "+-- ", "|   ", "    ")
    };
    let mut body = Vec::new();
    // Node, depth, guides of its ancestors, whether it is the last of its siblings.
    let mut stack = vec![(0usize, 0usize, String::new(), true)];
    while let Some((index, depth, guides, last)) = stack.pop() {
        let Some(node) = tree.nodes.get(index) else { continue };
        let (own, below) = match (depth, last) {
            (0, _) => (String::new(), String::new()),
            (_, true) => (format!("{guides}{corner}"), format!("{guides}{gap}")),
            (_, false) => (format!("{guides}{tee}"), format!("{guides}{bar}")),
        };
        let own = clip(&own, view);
        let has_children = !children[index].is_empty();
        let mut label = Line::default();
        if let Some(mark) = node.mark {
            label.extend(view.mark(mark, true));
            label.push(" ", Tone::Plain);
        }
        label.extend(view.one_line(node.label.clone()));
        let room = view.inner().map(|w| w.saturating_sub(layout::width(&own)).max(1));
        let rest = clip(&format!("{below}{}", if has_children { bar } else { "" }), view);
        let rest_width = layout::width(&rest).saturating_sub(layout::width(&own));
        for (i, part) in layout::wrap_hanging(label, room, rest_width).into_iter().enumerate() {
            let mut row = Line::of(if i == 0 { own.as_str() } else { rest.as_str() }, Tone::Dim);
            if i == 0 {
                row.extend(part);
            } else {
                // The hanging indent's place is taken by the guides.
                row.pad(layout::width(&own));
                row.extend(without_indent(part, rest_width));
            }
            body.push(row);
        }
        if tree.max_depth.is_some_and(|most| depth >= most) && has_children {
            let levels = heights[index];
            let mut row = Line::of(clip(&format!("{below}{corner}"), view), Tone::Dim);
            let plural = if levels == 1 { "" } else { "s" };
            row.push(format!("{} ({levels} more level{plural})", view.ellipsis()), Tone::Dim);
            let room = view.inner().unwrap_or(usize::MAX);
            body.push(layout::cut(row, room, Keep::Start, view.ellipsis()));
            continue;
        }
        for (i, child) in children[index].iter().enumerate().rev() {
            stack.push((*child, depth + 1, below.clone(), i + 1 == children[index].len()));
        }
    }
    frame(view.own(&tree.title, Tone::Title), body, tree.border, Tone::Plain, view)
}

/// Levels below each node.
fn heights(tree: &Tree) -> Vec<usize> {
    let mut heights = vec![0; tree.nodes.len()];
    for i in (1..tree.nodes.len()).rev() {
        if let Some(parent) = tree.nodes[i].parent {
            heights[parent] = heights[parent].max(heights[i] + 1);
        }
    }
    heights
}

/// Deep guides lose their beginning, so that labels stay readable.
fn clip(guides: &str, view: &View) -> String {
    let Some(limit) = view.inner() else { return guides.to_owned() };
    let room = limit.saturating_sub(LABEL_LEAST).max(4);
    let count = guides.chars().count();
    guides.chars().skip(count.saturating_sub(room)).collect()
}

fn without_indent(line: Line, indent: usize) -> Line {
    let mut left = indent;
    let mut out = Line::default();
    for span in line.spans {
        let spaces = span.text.chars().take_while(|c| *c == ' ').count().min(left);
        left -= spaces;
        let text = span.text[spaces..].to_owned();
        if !text.is_empty() {
            left = 0;
        }
        out.push(text, span.tone);
    }
    out
}
