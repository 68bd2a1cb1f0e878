//! How values stand in columns: ids, times and names as their text, enums as their word, the rest as JSON.

use std::error::Error;
use std::str::FromStr;

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use serde::Serialize;
use serde::de::value::StrDeserializer;
use serde::de::{DeserializeOwned, IntoDeserializer};

/// A value that is read from its text.
pub(super) struct Parsed<T>(pub(super) T);

impl<T> FromSql for Parsed<T>
where
    T: FromStr,
    T::Err: Error + Send + Sync + 'static,
{
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        value.as_str()?.parse().map(Self).map_err(FromSqlError::other)
    }
}

/// A value of an enum whose variants are words in JSON.
pub(super) struct Word<T>(pub(super) T);

impl<T: DeserializeOwned> FromSql for Word<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let text: StrDeserializer<'_, serde_json::Error> = value.as_str()?.into_deserializer();
        T::deserialize(text).map(Self).map_err(FromSqlError::other)
    }
}

impl<T: Serialize> ToSql for Word<T> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match serde_json::to_value(&self.0) {
            Ok(serde_json::Value::String(word)) => Ok(word.into()),
            Ok(other) => Err(rusqlite::Error::ToSqlConversionFailure(format!("{other} is no word").into())),
            Err(e) => Err(rusqlite::Error::ToSqlConversionFailure(e.into())),
        }
    }
}

/// A value as JSON.
pub(super) struct Json<T>(pub(super) T);

impl<T: DeserializeOwned> FromSql for Json<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        serde_json::from_str(value.as_str()?).map(Self).map_err(FromSqlError::other)
    }
}

impl<T: Serialize> ToSql for Json<T> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        serde_json::to_string(&self.0)
            .map(Into::into)
            .map_err(|e| rusqlite::Error::ToSqlConversionFailure(e.into()))
    }
}

/// An optional value's text.
pub(super) fn text(value: Option<&impl ToString>) -> Option<String> {
    value.map(ToString::to_string)
}

/// The greatest text that starts with `prefix`, for a range over an indexed id.
pub(super) fn after_prefix(prefix: &str) -> String {
    // Ids are digits and upper-case letters, all below this.
    format!("{prefix}~")
}

/// A count for `LIMIT`.
pub(super) fn limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
