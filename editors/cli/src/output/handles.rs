//! The writing ends of elements. All methods chain; an element is finished when its handle is dropped (or closed), so most
//! commands write an element in one statement.

use std::sync::Arc;

use serde_json::Value;

use super::core::{ElementClosed, Handle};
use super::element::{
    Border, Code, Element, Entry, Level, Mark, Node, Outcome, Panel, Progress, Row, Status, Step, Table,
    Text, Tree,
};
use super::human::{self, Kind};
use super::styled::{Styled, Tone};

macro_rules! handle {
    ($(#[$doc:meta])* $name:ident, $element:ident) => {
        $(#[$doc])*
        #[derive(Clone)]
        pub struct $name(pub(super) Arc<Handle>);

        impl $name {
            fn edit(&self, edit: impl FnOnce(&mut $element)) -> &Self {
                self.0.edit(|element, _| {
                    if let Element::$element(inner) = element {
                        edit(inner);
                    }
                });
                self
            }

            /// Finishes the element now instead of when its last handle is dropped.
            pub fn close(&self) {
                self.0.close();
            }

            /// Whether the element still takes writes; for producers that should stop when the run was cancelled.
            ///
            /// # Errors
            /// When the element is finished. Writes are then dropped.
            pub fn ensure_open(&self) -> Result<&Self, ElementClosed> {
                self.0.check().map(|()| self)
            }
        }
    };
}

handle!(
    /// Writes a panel.
    PanelHandle, Panel
);
handle!(
    /// Writes a table.
    TableHandle, Table
);
handle!(
    /// Writes a tree.
    TreeHandle, Tree
);
handle!(
    /// Moves progress on.
    ProgressHandle, Progress
);
handle!(
    /// Writes a status line.
    StatusHandle, Status
);
handle!(
    /// Writes running text.
    TextHandle, Text
);
handle!(
    /// Writes source code.
    CodeHandle, Code
);

impl PanelHandle {
    /// A value for programs under `key`, and what people read. An existing key is replaced in place.
    pub fn field(&self, key: &str, label: &str, value: impl Into<Value>, shown: impl Into<Styled>) -> &Self {
        self.set(Some(key), label, value.into(), shown.into())
    }

    /// A value that both read in its own way: [`Kind::Auto`] decides how people do.
    pub fn value(&self, key: &str, label: &str, value: impl Into<Value>) -> &Self {
        let value = value.into();
        let shown = human::show(Kind::Auto, &value);
        self.set(Some(key), label, value, shown)
    }

    /// A labelled value for people only.
    pub fn row(&self, label: &str, shown: impl Into<Styled>) -> &Self {
        self.set(None, label, Value::Null, shown.into())
    }

    /// Takes a field out of a JSON object and shows it by its kind; nothing when it is absent or null. `key` may be a
    /// dotted path; it is also the key for programs.
    pub fn pick(&self, from: &Value, key: &str, label: &str, kind: Kind) -> &Self {
        match key.split('.').try_fold(from, |value, part| value.get(part)) {
            None | Some(Value::Null) => self,
            Some(value) => self.set(Some(key), label, value.clone(), human::show(kind, value)),
        }
    }

    /// A line without a label: prose, a list item (`- one`, `1. two`).
    pub fn line(&self, line: impl Into<Styled>) -> &Self {
        self.edit(|panel| panel.entries.push(Entry::Line(line.into())))
    }

    /// A line with an icon: one of several steps.
    pub fn marked(&self, mark: Mark, line: impl Into<Styled>) -> &Self {
        self.edit(|panel| panel.entries.push(Entry::Marked(mark, line.into())))
    }

    /// Takes a value out again.
    pub fn remove(&self, key: &str) -> &Self {
        self.edit(|panel| {
            panel.entries.retain(|entry| !matches!(entry, Entry::Field { key: Some(k), .. } if k == key));
        })
    }

    /// What the panel says about its content; colours its border.
    pub fn tone(&self, tone: Tone) -> &Self {
        self.edit(|panel| panel.tone = tone)
    }

    /// The line around it.
    pub fn border(&self, border: Border) -> &Self {
        self.edit(|panel| panel.border = border)
    }

    fn set(&self, key: Option<&str>, label: &str, value: Value, shown: Styled) -> &Self {
        let entry = Entry::Field { key: key.map(str::to_owned), label: label.to_owned(), value, shown };
        self.edit(|panel| {
            let same = panel
                .entries
                .iter_mut()
                .find(|e| key.is_some() && matches!(e, Entry::Field { key: k, .. } if k.as_deref() == key));
            match same {
                Some(place) => *place = entry,
                None => panel.entries.push(entry),
            }
        })
    }
}

impl TableHandle {
    /// Appends a row: a JSON object, or [`Row`] where some columns show something else.
    pub fn row(&self, row: impl Into<Row>) -> &Self {
        self.edit(|table| table.push(row.into()))
    }

    /// Appends one row per object of a JSON list.
    pub fn rows(&self, list: &Value) -> &Self {
        self.edit(|table| table.extend(list))
    }

    /// Appends rows whose values are in the order of the columns: for tables that may be long.
    pub fn fill<R: IntoIterator<Item = Value>>(&self, rows: impl IntoIterator<Item = R>) -> &Self {
        self.edit(|table| rows.into_iter().for_each(|row| table.push_values(row)))
    }

    /// Shows something else in a column of a row (counted as they came, from 0).
    pub fn instead(&self, row: usize, key: &str, shown: impl Into<Styled>) -> &Self {
        let shown = shown.into();
        self.edit(|table| {
            if let (Some(column), Some(record)) = (table.column(key), table.rows.get_mut(row)) {
                record.shown.push((column, shown));
            }
        })
    }

    /// Sorts by a column.
    pub fn sort_by(&self, key: &str, descending: bool) -> &Self {
        self.edit(|table| table.sort = table.column(key).map(|column| (column, descending)))
    }

    /// Shows people at most so many rows; programs get all.
    pub fn max_rows(&self, most: usize) -> &Self {
        self.edit(|table| table.max_rows = Some(most))
    }

    /// A total under the rows, for people; an existing label is replaced.
    pub fn summary(&self, label: &str, value: impl Into<Styled>) -> &Self {
        let value = value.into();
        self.edit(|table| match table.summary.iter_mut().find(|(l, _)| l == label) {
            Some((_, old)) => *old = value,
            None => table.summary.push((label.to_owned(), value)),
        })
    }

    /// What there is none of when no row comes (`No plans found.`), and commands that would change that.
    pub fn when_empty(&self, things: &str, commands: &[&str]) -> &Self {
        self.edit(|table| {
            table.things = things.to_owned();
            table.when_empty = commands.iter().map(|c| (*c).to_owned()).collect();
        })
    }

    /// The line around it.
    pub fn border(&self, border: Border) -> &Self {
        self.edit(|table| table.border = border)
    }
}

/// A node of a tree, to hang children on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeId(usize);

impl TreeHandle {
    /// The node that the tree was made with.
    pub const ROOT: NodeId = NodeId(0);

    /// Hangs a node under another one.
    pub fn add(&self, parent: NodeId, node: Node) -> NodeId {
        let mut id = Self::ROOT;
        self.edit(|tree| {
            // An id of another tree may not exist here; its nodes go to the root.
            let parent = if parent.0 < tree.nodes.len() { parent.0 } else { 0 };
            id = NodeId(tree.nodes.len());
            tree.nodes.push(Node { parent: Some(parent), ..node });
        });
        id
    }

    /// Hangs a list of JSON objects and, through their `children`, everything below them. `node` makes one node of one
    /// object; unless it sets other data, programs get the object's fields.
    pub fn grow(&self, parent: NodeId, list: &Value, node: impl Fn(&Value) -> Node) -> &Self {
        let mut open: Vec<(NodeId, &Value)> =
            list.as_array().into_iter().flatten().rev().map(|item| (parent, item)).collect();
        while let Some((parent, item)) = open.pop() {
            let mut made = node(item);
            if made.data.is_empty()
                && let Some(fields) = item.as_object()
            {
                made.data = fields
                    .iter()
                    .filter(|(k, _)| *k != "children")
                    .map(|(k, v)| (k.clone(), v.clone()))
                    .collect();
            }
            let id = self.add(parent, made);
            open.extend(item["children"].as_array().into_iter().flatten().rev().map(|child| (id, child)));
        }
        self
    }

    /// Changes the icon of a node.
    pub fn mark(&self, node: NodeId, mark: Mark) -> &Self {
        self.edit(|tree| {
            if let Some(node) = tree.nodes.get_mut(node.0) {
                node.mark = Some(mark);
            }
        })
    }

    /// Shows people at most so many levels under the root; programs get all.
    pub fn max_depth(&self, most: usize) -> &Self {
        self.edit(|tree| tree.max_depth = Some(most))
    }

    /// The line around it.
    pub fn border(&self, border: Border) -> &Self {
        self.edit(|tree| tree.border = border)
    }
}

impl ProgressHandle {
    /// Names the parts of the work, in order.
    pub fn steps(&self, labels: &[&str]) -> &Self {
        self.edit(|progress| {
            progress.steps =
                labels.iter().map(|l| Step { label: (*l).to_owned(), ..Step::default() }).collect();
        })
    }

    /// Says how far a part is; an unknown part is added.
    pub fn step(&self, label: &str, mark: Mark) -> &Self {
        self.touch(label, |step, now| {
            step.mark = mark;
            match mark {
                Mark::Active => {
                    step.began = step.began.or(Some(now));
                    step.ended = None;
                }
                Mark::Done | Mark::Error | Mark::Skipped => step.ended = Some(now),
                Mark::Pending | Mark::Waiting => {}
            }
        })
    }

    /// A few words on a part: `8 calls`.
    pub fn note(&self, label: &str, note: impl Into<String>) -> &Self {
        let note = note.into();
        self.touch(label, |step, _| step.note = Some(note))
    }

    /// How much there is to do; 0 when nobody knows.
    pub fn total(&self, total: u64) -> &Self {
        self.edit(|progress| progress.total = Some(total))
    }

    /// How much is done.
    pub fn set(&self, current: u64) -> &Self {
        self.edit(|progress| progress.current = current)
    }

    /// Some more is done.
    pub fn advance(&self, by: u64) -> &Self {
        self.edit(|progress| progress.current = progress.current.saturating_add(by))
    }

    /// What is going on now.
    pub fn label(&self, label: impl Into<String>) -> &Self {
        self.edit(|progress| progress.label = label.into())
    }

    /// It ends with a failure.
    pub fn failed(&self) -> &Self {
        self.edit(|progress| progress.outcome = Outcome::Failed)
    }

    /// It stops here until a person has answered.
    pub fn waits(&self) -> &Self {
        self.edit(|progress| progress.outcome = Outcome::Waiting)
    }

    /// What it shows goes on when the command is cut short.
    pub fn outlives(&self) -> &Self {
        self.edit(|progress| progress.outlives = true)
    }

    /// It leaves no trace when it is over.
    pub fn transient(&self) -> &Self {
        self.edit(|progress| progress.transient = true)
    }

    fn touch(&self, label: &str, edit: impl FnOnce(&mut Step, std::time::Duration)) -> &Self {
        self.0.edit(|element, now| {
            let Element::Progress(progress) = element else { return };
            let at = progress.steps.iter().position(|s| s.label == label).unwrap_or_else(|| {
                progress.steps.push(Step { label: label.to_owned(), ..Step::default() });
                progress.steps.len() - 1
            });
            edit(&mut progress.steps[at], now);
        });
        self
    }
}

impl StatusHandle {
    /// More about it, shown under the line.
    pub fn detail(&self, detail: impl Into<String>) -> &Self {
        self.edit(|status| status.detail = Some(detail.into()))
    }

    /// Changes the line, for a status that is kept while something happens.
    pub fn text(&self, text: impl Into<String>) -> &Self {
        self.edit(|status| status.text = text.into())
    }

    /// Changes how good or bad it is.
    pub fn level(&self, level: Level) -> &Self {
        self.edit(|status| status.level = level)
    }
}

impl TextHandle {
    /// Appends text, which is shown as soon as it is this element's turn.
    pub fn append(&self, more: &str) -> &Self {
        self.edit(|text| text.content.push_str(more))
    }

    /// Replaces all of it.
    pub fn set(&self, content: impl Into<String>) -> &Self {
        self.edit(|text| text.content = content.into())
    }

    /// Leaves lines as long as they are.
    pub fn no_wrap(&self) -> &Self {
        self.edit(|text| text.wrap = false)
    }

    /// Columns before each line.
    pub fn indent(&self, columns: usize) -> &Self {
        self.edit(|text| text.indent = columns)
    }
}

impl CodeHandle {
    /// Shown in the border: a path.
    pub fn title(&self, title: impl Into<String>) -> &Self {
        self.edit(|code| code.title = title.into())
    }

    /// The language, such as `python`; decides the colours.
    pub fn language(&self, language: impl Into<String>) -> &Self {
        self.edit(|code| code.language = Some(language.into()))
    }

    /// Numbers the lines, starting here.
    pub fn numbered_from(&self, first: usize) -> &Self {
        self.edit(|code| code.first_line = Some(first))
    }

    /// Stresses lines by their numbers.
    pub fn stress(&self, lines: &[usize]) -> &Self {
        self.edit(|code| code.stressed = lines.to_vec())
    }
}
