//! Values as people read them: `1,247`, `118 MB`, `0.6s`, `$0.0184`, `yes`, `2026-02-08 12:46`.

use serde_json::Value;

use super::styled::{Styled, Tone, dim, own};

/// How a JSON value is shown to people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kind {
    /// By its type: times are recognised, numbers get separators, booleans are `yes` or `no`, lists are joined.
    #[default]
    Auto,
    /// As it is.
    Text,
    /// A number with thousands separators.
    Count,
    /// A yes or a no (in boxed tables `✓` and `—`).
    Flag,
    /// An RFC 3339 time, shown to the minute in UTC.
    Time,
    /// A name or an id. In tables, ULIDs are cut to what tells them apart.
    Id,
    /// Sentences of the engine, of an actor or of a server; their typography is ours.
    Prose,
    /// Bytes.
    Bytes,
    /// Milliseconds, shown as `0.6s`, `12.4s`, `3m 12s`.
    Millis,
    /// Seconds, shown as a clock: `00:01:12`.
    Clock,
    /// US dollars.
    Money,
    /// A fraction of one, shown as a percentage.
    Percent,
    /// A state word, coloured by what it means.
    State,
    /// A path; where it must be cut, its end stays.
    Path,
}

/// What stands for a value that is not there.
pub const NONE: &str = "-";

/// Shows a JSON value. Values of another type than the kind expects are shown by their own type.
pub fn show(kind: Kind, value: &Value) -> Styled {
    match (kind, value) {
        (_, Value::Null) => dim(NONE),
        (Kind::Count, Value::Number(n)) => grouped(&n.to_string()).into(),
        (Kind::Time, Value::String(text)) => minutes(text).into(),
        (Kind::Id | Kind::Path, Value::String(text)) => Styled::new(text, Tone::Id),
        (Kind::Bytes, Value::Number(n)) => n.as_u64().map_or_else(|| n.to_string(), bytes).into(),
        (Kind::Millis, Value::Number(n)) => n.as_u64().map_or_else(|| n.to_string(), millis).into(),
        (Kind::Clock, Value::Number(n)) => n.as_u64().map_or_else(|| n.to_string(), clock).into(),
        (Kind::Money, Value::Number(n)) => n.as_f64().map_or_else(|| n.to_string(), money).into(),
        (Kind::Percent, Value::Number(n)) => n.as_f64().map_or_else(|| n.to_string(), percent).into(),
        (Kind::State, Value::String(text)) => Styled::new(text, state_tone(text)),
        (Kind::Text, Value::String(text)) => text.into(),
        (Kind::Prose, Value::String(text)) => own(text),
        (_, Value::String(text)) => minutes_if_time(text).into(),
        (_, Value::Bool(flag)) => yes_no(*flag).into(),
        (_, Value::Number(n)) => n.to_string().into(),
        (_, Value::Array(items)) if items.is_empty() => dim("(none)"),
        (kind, Value::Array(items)) => items
            .iter()
            .map(|item| show(kind, item))
            .reduce(|all, one| all.and(", ").and(one))
            .unwrap_or_default(),
        (_, Value::Object(fields)) if fields.is_empty() => dim("(none)"),
        (_, Value::Object(fields)) => fields
            .iter()
            .map(|(key, item)| dim(format!("{key}: ")).and(show(Kind::Auto, item)))
            .reduce(|all, one| all.and(", ").and(one))
            .unwrap_or_default(),
    }
}

/// `yes` or `no`.
pub fn yes_no(flag: bool) -> &'static str {
    if flag { "yes" } else { "no" }
}

/// Thousands separators: `1,247`.
pub fn count(n: u64) -> String {
    grouped(&n.to_string())
}

/// `1 plan`, `2 plans`, `1,247 files`; `many` is the plural.
pub fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { many })
}

/// `12 insertions, 1 deletion`, of an object that has both numbers.
pub fn changes(of: &Value) -> String {
    let number = |key: &str| of[key].as_u64().unwrap_or(0);
    let added = counted(number("insertions"), "insertion", "insertions");
    format!("{added}, {}", counted(number("deletions"), "deletion", "deletions"))
}

/// Puts separators into the integer part of a printed number.
fn grouped(number: &str) -> String {
    let (sign, rest) = number.strip_prefix('-').map_or(("", number), |rest| ("-", rest));
    let (whole, fraction) = rest.find(['.', 'e']).map_or((rest, ""), |at| rest.split_at(at));
    let mut out = String::from(sign);
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out + fraction
}

/// `512 B`, `42 KB`, `1 MB`, `1.5 GB`: steps of 1024, one decimal below ten.
pub fn bytes(n: u64) -> String {
    const UNITS: [&str; 6] = ["KB", "MB", "GB", "TB", "PB", "EB"];
    if n < 1024 {
        return format!("{n} B");
    }
    let mut value = n as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1023.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let tenths = (value * 10.0).round() / 10.0;
    let shown =
        if tenths < 10.0 && tenths.fract() != 0.0 { format!("{tenths:.1}") } else { format!("{value:.0}") };
    format!("{shown} {}", UNITS[unit])
}

/// A duration in milliseconds: `42ms`, `0.6s`, `12.4s`, `3m 12s`, `1h 04m`.
pub fn millis(ms: u64) -> String {
    match ms {
        0..=99 => format!("{ms}ms"),
        100..=59_949 => format!("{:.1}s", ms as f64 / 1000.0),
        59_950..=3_599_499 => {
            let seconds = (ms + 500) / 1000;
            format!("{}m {:02}s", seconds / 60, seconds % 60)
        }
        _ => {
            let minutes = (ms + 30_000) / 60_000;
            format!("{}h {:02}m", minutes / 60, minutes % 60)
        }
    }
}

/// A duration in seconds as a clock: `00:01:12`.
pub fn clock(seconds: u64) -> String {
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// US dollars: four decimals below a dollar, two from there.
pub fn money(dollars: f64) -> String {
    if dollars.abs() < 1.0 {
        format!("${dollars:.4}")
    } else {
        format!("${}", grouped(&format!("{dollars:.2}")))
    }
}

/// A fraction of one as a percentage without decimals.
pub fn percent(fraction: f64) -> String {
    format!("{:.0}%", fraction * 100.0)
}

/// An RFC 3339 time as `2026-02-08 12:46` in UTC; anything else unchanged.
pub fn minutes(text: &str) -> String {
    text.parse::<jiff::Timestamp>()
        .map_or_else(|_| text.to_owned(), |t| t.strftime("%Y-%m-%d %H:%M").to_string())
}

fn minutes_if_time(text: &str) -> String {
    if is_time(text) { minutes(text) } else { text.to_owned() }
}

/// Whether a text looks like an RFC 3339 time.
pub fn is_time(text: &str) -> bool {
    let b = text.as_bytes();
    b.len() >= 20 && b[4] == b'-' && b[7] == b'-' && b[10] == b'T' && b[13] == b':' && b[16] == b':'
}

/// How long ago something was: `just now`, `4m ago`, `3h ago`, `2d ago`. Both are seconds since the epoch; a moment in
/// the future is `just now`.
pub fn ago(then: i64, now: i64) -> String {
    match now.saturating_sub(then) {
        ..5 => "just now".into(),
        s @ 5..60 => format!("{s}s ago"),
        s @ 60..3600 => format!("{}m ago", s / 60),
        s @ 3600..86_400 => format!("{}h ago", s / 3600),
        s => format!("{}d ago", s / 86_400),
    }
}

/// The shortest beginnings, of at least `least` characters, that tell these ids apart from each other. Texts that are no
/// ULIDs stay whole.
pub fn short_ids(ids: &[&str], least: usize) -> Vec<String> {
    // In sorted order, whatever shares the longest beginning with an id stands right beside it.
    let mut order: Vec<usize> = (0..ids.len()).collect();
    order.sort_unstable_by_key(|at| ids[*at]);
    let shared = |a: &str, b: &str| a.bytes().zip(b.bytes()).take_while(|(x, y)| x == y).count();
    let mut short = vec![String::new(); ids.len()];
    let mut before = 0;
    let mut rest = order.as_slice();
    while let Some(first) = rest.first() {
        let id = ids[*first];
        // The same id may come several times.
        let same = rest.iter().take_while(|at| ids[**at] == id).count();
        let after = rest.get(same).map_or(0, |next| shared(id, ids[*next]));
        let shown = match ulid_prefix(id) {
            None => id,
            Some(prefix) => &id[..(prefix + least).max(before.max(after) + 1).min(id.len())],
        };
        for at in &rest[..same] {
            short[*at] = shown.to_owned();
        }
        before = after;
        rest = &rest[same..];
    }
    short
}

/// The first ten characters of a ULID, enough for a line of prose; other texts unchanged.
pub fn short_id(id: &str) -> &str {
    ulid_prefix(id).map_or(id, |prefix| &id[..prefix + 10])
}

/// Bytes before the 26 characters of a ULID, if the text ends with one.
fn ulid_prefix(text: &str) -> Option<usize> {
    let start = text.len().checked_sub(26)?;
    let (prefix, body) = text.split_at_checked(start)?;
    let crockford =
        |b: u8| b.is_ascii_digit() || (b.is_ascii_uppercase() && !matches!(b, b'I' | b'L' | b'O' | b'U'));
    (body.bytes().all(crockford)
        && prefix.bytes().all(|b| b.is_ascii_lowercase() || matches!(b, b'_' | b'-')))
    .then_some(start)
}

/// The tone of a state word: what is finished well is good, what waits or runs is to be looked at, what failed is bad.
pub fn state_tone(word: &str) -> Tone {
    match word {
        "ok" | "ready" | "active" | "available" | "applied" | "complete" | "completed" | "done"
        | "passed" | "pass" | "running" | "enabled" | "clean" | "merged" | "fixed" | "success" => Tone::Good,
        "processing" | "queued" | "paused" | "awaiting" | "pending" | "constrained" | "warning" | "warn"
        | "stale" | "modified" | "starting" | "degraded" => Tone::Warn,
        "errored" | "error" | "failed" | "fail" | "missing" | "broken" | "rejected" | "crashed"
        | "conflict" | "deleted" => Tone::Bad,
        "cancelled" | "archived" | "disabled" | "superseded" | "skipped" | "unchanged" | "none" => Tone::Dim,
        _ => Tone::Plain,
    }
}
