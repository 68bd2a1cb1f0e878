//! The ten kinds of output elements: what a command produced, before any format has had its say.

use std::time::Duration;

mod diff;
mod table;
mod tree;

use serde_json::{Map, Value, json};

use super::styled::{Styled, Tone};

pub use diff::{Diff, DiffKind, DiffLine, Hunk, parse as parse_diff};
pub use table::{Align, Column, Record, Row, Table, col};
pub use tree::{Node, Tree};

/// One element of a command's output.
#[derive(Debug, Clone, PartialEq)]
pub enum Element {
    /// A titled group of labelled values or lines.
    Panel(Panel),
    /// Rows under columns.
    Table(Table),
    /// A hierarchy.
    Tree(Tree),
    /// Work that goes on.
    Progress(Progress),
    /// One line of outcome.
    Status(Status),
    /// Running text.
    Text(Text),
    /// Source code.
    Code(Code),
    /// A unified diff of one file.
    Diff(Diff),
    /// A line or a gap between groups.
    Separator(Separator),
    /// Commands to go on with.
    Hint(Hint),
}

impl Element {
    /// The kind's name in logs and events.
    pub fn kind(&self) -> &'static str {
        match self {
            Element::Panel(_) => "panel",
            Element::Table(_) => "table",
            Element::Tree(_) => "tree",
            Element::Progress(_) => "progress",
            Element::Status(_) => "status",
            Element::Text(_) => "text",
            Element::Code(_) => "code",
            Element::Diff(_) => "diff",
            Element::Separator(_) => "separator",
            Element::Hint(_) => "action_hint",
        }
    }

    /// What the element adds to the document's `data`; nothing for those that only people need.
    pub fn to_json(&self) -> Option<Value> {
        match self {
            Element::Panel(panel) => panel.to_json(),
            Element::Table(table) => Some(table.to_json()),
            Element::Tree(tree) => Some(tree.to_json(0)),
            Element::Text(text) => Some(json!(text.content)),
            Element::Code(code) => Some(json!(code.content)),
            Element::Diff(diff) => Some(diff.to_json()),
            Element::Hint(hint) => Some(json!(hint.commands)),
            Element::Progress(_) | Element::Status(_) | Element::Separator(_) => None,
        }
    }
}

/// The line around a box.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Border {
    /// `╭─╮`
    #[default]
    Rounded,
    /// `┌─┐`
    Square,
    /// `┏━┓`
    Heavy,
    /// No line; title and content stay.
    None,
}

/// A titled group of labelled values or lines.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Panel {
    /// Shown in the border.
    pub title: String,
    /// What it says about its content; colours the border and the title.
    pub tone: Tone,
    /// The line around it.
    pub border: Border,
    /// Its content, in order.
    pub entries: Vec<Entry>,
}

/// One row of a panel.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    /// A labelled value. With a key, it is part of the JSON data.
    Field {
        /// Key in the JSON object; none for what only people need.
        key: Option<String>,
        /// `Plan ID`.
        label: String,
        /// The typed value for programs.
        value: Value,
        /// What people read.
        shown: Styled,
    },
    /// A line without a label.
    Line(Styled),
    /// A line with an icon.
    Marked(Mark, Styled),
}

impl Panel {
    fn to_json(&self) -> Option<Value> {
        let fields: Map<String, Value> = self
            .entries
            .iter()
            .filter_map(|entry| match entry {
                Entry::Field { key: Some(key), value, .. } => Some((key.clone(), value.clone())),
                _ => None,
            })
            .collect();
        (!fields.is_empty()).then_some(Value::Object(fields))
    }
}

/// How far something is; the icon before a step or a tree node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mark {
    /// Not begun.
    #[default]
    Pending,
    /// Going on.
    Active,
    /// Finished well.
    Done,
    /// Failed.
    Error,
    /// Left out.
    Skipped,
    /// Waits for a person.
    Waiting,
}

/// Work that goes on.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Progress {
    /// What is going on.
    pub label: String,
    /// How much is done, and of how much; without a total there is a spinner instead of a bar.
    pub current: u64,
    /// The whole, if known.
    pub total: Option<u64>,
    /// Named parts.
    pub steps: Vec<Step>,
    /// When it began and ended, since the session began.
    pub began: Duration,
    /// Set when it is over.
    pub ended: Option<Duration>,
    /// How it ended; also set to failed by a failed step.
    pub outcome: Outcome,
    /// Whether it leaves no trace when it is over.
    pub transient: bool,
    /// Whether what it shows goes on when the command is cut short.
    pub outlives: bool,
}

/// How progress ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Outcome {
    /// As it should.
    #[default]
    Done,
    /// With a failure.
    Failed,
    /// Before its end: it goes on when a person has answered.
    Waiting,
    /// Before its end, by Ctrl+C.
    Cancelled,
    /// Not watched any more, by Ctrl+C; it goes on by itself.
    GoesOn,
}

/// A named part of progress.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Step {
    /// Its name; steps are addressed by it.
    pub label: String,
    /// How far it is.
    pub mark: Mark,
    /// A few words on it: `8 calls`.
    pub note: Option<String>,
    /// When it became active, since the session began.
    pub began: Option<Duration>,
    /// When it ended.
    pub ended: Option<Duration>,
}

/// How good or bad a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Level {
    /// It worked.
    Ok,
    /// Worth knowing.
    #[default]
    Info,
    /// Worth a look.
    Warn,
    /// It failed.
    Error,
}

impl Level {
    /// The word in `messages[].level`.
    pub fn name(self) -> &'static str {
        match self {
            Level::Ok => "ok",
            Level::Info => "info",
            Level::Warn => "warn",
            Level::Error => "error",
        }
    }
}

/// One line of outcome.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Status {
    /// How good or bad.
    pub level: Level,
    /// The line.
    pub text: String,
    /// More about it.
    pub detail: Option<String>,
}

/// Running text.
#[derive(Debug, Clone, PartialEq)]
pub struct Text {
    /// All of it so far.
    pub content: String,
    /// Whether lines are broken at the width of the terminal.
    pub wrap: bool,
    /// Columns before each line.
    pub indent: usize,
}

/// Source code.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Code {
    /// Shown in the border; a path, or empty.
    pub title: String,
    /// The source.
    pub content: String,
    /// Language name, such as `python`.
    pub language: Option<String>,
    /// Number of the first line, if lines are numbered.
    pub first_line: Option<usize>,
    /// Numbers of lines to stress, counted as shown.
    pub stressed: Vec<usize>,
}

/// What separates two groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Separator {
    /// A line.
    #[default]
    Line,
    /// A double line.
    Double,
    /// Nothing but the gap.
    Blank,
}

/// Commands to go on with.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Hint {
    /// What they are for, such as `Next Steps`.
    pub title: String,
    /// The commands, most likely first.
    pub commands: Vec<String>,
}
