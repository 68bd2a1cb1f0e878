//! The parameters of text synchronisation, read by ourselves: borrowed where possible and tolerant of numbers that
//! lsp-types refuses (a client's mistake in one number must not lose an edit, the text would diverge for good).

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Visitor};
use tower_lsp::lsp_types::{Position, Range};

#[derive(Debug, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DidOpen<'a> {
    #[serde(borrow)]
    pub text_document: Item<'a>,
}

#[derive(Debug, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Item<'a> {
    #[serde(borrow)]
    pub uri: Cow<'a, str>,
    #[serde(borrow, default)]
    pub language_id: Cow<'a, str>,
    #[serde(default)]
    pub version: Version,
    #[serde(borrow)]
    pub text: Cow<'a, str>,
}

#[derive(Debug, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DidChange<'a> {
    #[serde(borrow)]
    pub text_document: Identifier<'a>,
    #[serde(borrow)]
    pub content_changes: Vec<Change<'a>>,
}

#[derive(Debug, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DidClose<'a> {
    #[serde(borrow)]
    pub text_document: Identifier<'a>,
}

/// `textDocument/didSave`; the text some clients add is not read, the edits before it brought it already.
pub(crate) type DidSave<'a> = DidClose<'a>;

/// Messages that name the document they are about.
pub(crate) trait Addressed {
    fn uri(&self) -> &str;
}

impl Addressed for DidOpen<'_> {
    fn uri(&self) -> &str {
        &self.text_document.uri
    }
}

impl Addressed for DidChange<'_> {
    fn uri(&self) -> &str {
        &self.text_document.uri
    }
}

impl Addressed for DidClose<'_> {
    fn uri(&self) -> &str {
        &self.text_document.uri
    }
}

#[derive(Debug, serde::Deserialize)]
pub(crate) struct Identifier<'a> {
    #[serde(borrow)]
    pub uri: Cow<'a, str>,
    #[serde(default)]
    pub version: Option<Version>,
}

#[derive(Debug, serde::Deserialize)]
pub(crate) struct Change<'a> {
    #[serde(default)]
    pub range: Option<RawRange>,
    #[serde(borrow)]
    pub text: Cow<'a, str>,
}

#[derive(Debug, Clone, Copy, serde::Deserialize)]
pub(crate) struct RawRange {
    start: RawPosition,
    end: RawPosition,
}

#[derive(Debug, Clone, Copy, serde::Deserialize)]
struct RawPosition {
    line: Coordinate,
    character: Coordinate,
}

impl From<RawRange> for Range {
    fn from(range: RawRange) -> Self {
        let position = |p: RawPosition| Position::new(p.line.0, p.character.0);
        Range::new(position(range.start), position(range.end))
    }
}

/// A line or a character. Anything outside of `u32` is the nearest end of it.
#[derive(Debug, Clone, Copy)]
struct Coordinate(u32);

/// A document version. Anything outside of `i32` is the nearest end of it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Version(i32);

impl Version {
    pub(crate) fn get(self) -> i32 {
        self.0
    }
}

/// Any JSON number, clamped to `[low, high]`; fractions are cut off.
struct Clamped {
    low: i64,
    high: i64,
}

impl Visitor<'_> for Clamped {
    type Value = i64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number")
    }

    fn visit_u64<E>(self, n: u64) -> Result<i64, E> {
        Ok(i64::try_from(n).unwrap_or(i64::MAX).clamp(self.low, self.high))
    }

    fn visit_i64<E>(self, n: i64) -> Result<i64, E> {
        Ok(n.clamp(self.low, self.high))
    }

    fn visit_f64<E>(self, n: f64) -> Result<i64, E> {
        // Casts from floats saturate.
        Ok((n as i64).clamp(self.low, self.high))
    }
}

impl<'de> Deserialize<'de> for Coordinate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let n = deserializer.deserialize_any(Clamped { low: 0, high: i64::from(u32::MAX) })?;
        Ok(Self(u32::try_from(n).unwrap_or(u32::MAX)))
    }
}

impl<'de> Deserialize<'de> for Version {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let n =
            deserializer.deserialize_any(Clamped { low: i64::from(i32::MIN), high: i64::from(i32::MAX) })?;
        Ok(Self(i32::try_from(n).unwrap_or(i32::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_outside_of_the_protocols_range_are_clamped_instead_of_losing_the_edit() {
        let change: Change<'_> = serde_json::from_str(
            r#"{"range":{"start":{"line":-3,"character":1.0},"end":{"line":99999999999,"character":1e30}},"text":""}"#,
        )
        .unwrap();
        let range = Range::from(change.range.unwrap());
        assert_eq!(range, Range::new(Position::new(0, 1), Position::new(u32::MAX, u32::MAX)));
    }

    #[test]
    fn a_null_version_and_a_null_range_are_absent() {
        let change: DidChange<'_> = serde_json::from_str(
            r#"{"textDocument":{"uri":"file:///a","version":null},"contentChanges":[{"range":null,"text":"x"}]}"#,
        )
        .unwrap();
        assert!(change.text_document.version.is_none());
        assert!(change.content_changes[0].range.is_none());
    }
}
