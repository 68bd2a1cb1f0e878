//! Tables: columns, rows, and the order in which rows are shown.

use serde_json::{Map, Value};

use super::Border;
use crate::output::human::Kind;
use crate::output::styled::{Styled, Tone};

/// Rows under columns.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    /// Shown in the border.
    pub title: String,
    /// The line around it.
    pub border: Border,
    /// The columns, in order.
    pub columns: Vec<Column>,
    /// The rows, in order of arrival.
    pub rows: Vec<Record>,
    /// Index of the column to sort by, and whether descending.
    pub sort: Option<(usize, bool)>,
    /// At most this many rows are shown to people; programs get all.
    pub max_rows: Option<usize>,
    /// Totals under the rows: label and value.
    pub summary: Vec<(String, Styled)>,
    /// What there is none of when there are no rows: `plans`.
    pub things: String,
    /// Commands to suggest when there are no rows.
    pub when_empty: Vec<String>,
}

/// Where the text of a column sits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Align {
    /// At the left edge.
    #[default]
    Left,
    /// At the right edge.
    Right,
    /// In the middle.
    Center,
}

/// A column of a table; made by [`col`].
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Key of the value in a row.
    pub key: String,
    /// The header.
    pub label: String,
    /// How values are shown.
    pub kind: Kind,
    /// Where they sit.
    pub align: Align,
    /// At most this many columns of the screen, if set.
    pub width: Option<usize>,
    /// Tone of values that have none of their own.
    pub tone: Tone,
    /// Whether long values go on in the next line instead of being cut.
    pub wraps: bool,
}

/// A left-aligned column that shows values by their type.
pub fn col(key: &str, label: &str) -> Column {
    Column {
        key: key.into(),
        label: label.into(),
        kind: Kind::Auto,
        align: Align::Left,
        width: None,
        tone: Tone::Plain,
        wraps: false,
    }
}

impl Column {
    /// How values are shown; numbers, sizes, durations and amounts move to the right edge.
    pub fn kind(mut self, kind: Kind) -> Self {
        self.kind = kind;
        if matches!(
            kind,
            Kind::Count | Kind::Bytes | Kind::Millis | Kind::Clock | Kind::Money | Kind::Percent
        ) {
            self.align = Align::Right;
        }
        self
    }

    /// Names or ids; see [`Kind::Id`].
    pub fn id(self) -> Self {
        self.kind(Kind::Id)
    }

    /// Where the values sit.
    pub fn align(mut self, align: Align) -> Self {
        self.align = align;
        self
    }

    /// At most so many columns of the screen.
    pub fn width(mut self, width: usize) -> Self {
        self.width = Some(width);
        self
    }

    /// Tone of values that have none of their own.
    pub fn tone(mut self, tone: Tone) -> Self {
        self.tone = tone;
        self
    }

    /// Long values go on in the next line instead of being cut: for prose.
    pub fn wrap(mut self) -> Self {
        self.wraps = true;
        self
    }
}

/// A row as a producer writes it: a JSON object, and where the kind of a column is not enough, what to show instead.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Row {
    values: Map<String, Value>,
    shown: Vec<(String, Styled)>,
}

/// A row as a table keeps it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Record {
    /// One value per column; null where the row had none.
    pub values: Vec<Value>,
    /// What people read instead, by column.
    pub shown: Vec<(usize, Styled)>,
}

impl Row {
    /// Shows this instead of the value of a column.
    pub fn show(mut self, key: &str, shown: impl Into<Styled>) -> Self {
        self.shown.push((key.to_owned(), shown.into()));
        self
    }
}

impl From<Value> for Row {
    fn from(value: Value) -> Self {
        match value {
            Value::Object(values) => Self { values, shown: Vec::new() },
            _ => Self::default(),
        }
    }
}

impl From<&Value> for Row {
    fn from(value: &Value) -> Self {
        value.clone().into()
    }
}

impl Table {
    /// The index of the column with this key.
    pub fn column(&self, key: &str) -> Option<usize> {
        self.columns.iter().position(|c| c.key == key)
    }

    /// Appends a row. What no column names is ignored.
    pub fn push(&mut self, mut row: Row) {
        let take = |c: &Column| row.values.get_mut(&c.key).map(Value::take).unwrap_or_default();
        let values = self.columns.iter().map(take).collect();
        let shown = row.shown.into_iter().filter_map(|(key, s)| Some((self.column(&key)?, s))).collect();
        self.rows.push(Record { values, shown });
    }

    /// Appends a row whose values are in the order of the columns; what is missing is null.
    pub fn push_values(&mut self, values: impl IntoIterator<Item = Value>) {
        let mut values: Vec<Value> = values.into_iter().take(self.columns.len()).collect();
        values.resize(self.columns.len(), Value::Null);
        self.rows.push(Record { values, shown: Vec::new() });
    }

    /// Appends a row per object of a list.
    pub fn extend(&mut self, list: &Value) {
        for item in list.as_array().into_iter().flatten() {
            let value = |c: &Column| item.get(&c.key).cloned().unwrap_or_default();
            let values = self.columns.iter().map(value).collect();
            self.rows.push(Record { values, shown: Vec::new() });
        }
    }

    /// Rows in the order to show them: sorted if asked, else as they came.
    pub fn ordered(&self) -> Vec<&Record> {
        let mut rows: Vec<&Record> = self.rows.iter().collect();
        if let Some((column, descending)) = self.sort {
            rows.sort_by(|a, b| {
                let order = compare(a.values.get(column), b.values.get(column));
                if descending { order.reverse() } else { order }
            });
        }
        rows
    }

    pub(super) fn to_json(&self) -> Value {
        let keys = || self.columns.iter().map(|c| c.key.clone());
        let row =
            |row: &Record| -> Value { keys().zip(row.values.iter().cloned()).collect::<Map<_, _>>().into() };
        self.ordered().into_iter().map(row).collect()
    }
}

/// Nothing before numbers before texts; numbers by size, texts by their characters.
fn compare(a: Option<&Value>, b: Option<&Value>) -> std::cmp::Ordering {
    let rank = |v: Option<&Value>| match v {
        None | Some(Value::Null) => 0,
        Some(Value::Bool(_)) => 1,
        Some(Value::Number(_)) => 2,
        _ => 3,
    };
    match (a, b) {
        (Some(Value::Number(a)), Some(Value::Number(b))) => {
            a.as_f64().unwrap_or_default().total_cmp(&b.as_f64().unwrap_or_default())
        }
        (Some(Value::Bool(a)), Some(Value::Bool(b))) => a.cmp(b),
        (Some(Value::String(a)), Some(Value::String(b))) => a.cmp(b),
        _ => rank(a).cmp(&rank(b)),
    }
}
