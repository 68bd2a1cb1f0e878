//! Points in time as microseconds since 1970-01-01 UTC, with the three spellings the product uses.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A moment in UTC with microsecond precision.
///
/// Stored and serialised as `YYYY-MM-DDTHH:MM:SS.ffffffZ`; [`Timestamp::seconds_rfc3339`] is what JSON output shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Timestamp(i64);

/// A text that is not a point in time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a time: expected YYYY-MM-DDTHH:MM:SS with an optional fraction and zone")]
pub struct InvalidTimestamp(String);

impl Timestamp {
    /// From microseconds since the Unix epoch.
    pub fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since the Unix epoch.
    pub fn micros(self) -> i64 {
        self.0
    }

    /// `2026-02-08T12:44:00Z`.
    pub fn seconds_rfc3339(self) -> String {
        format!("{}Z", Seconds(self.civil()))
    }

    /// `2026-02-08 12:44`, for people.
    pub fn minutes(self) -> String {
        self.zoned().strftime("%Y-%m-%d %H:%M").to_string()
    }

    /// Milliseconds from `earlier` to this moment; 0 when `earlier` is later.
    pub fn millis_since(self, earlier: Timestamp) -> u64 {
        u64::try_from((self.0 - earlier.0) / 1000).unwrap_or(0)
    }

    fn civil(self) -> jiff::civil::DateTime {
        jiff::tz::Offset::UTC.to_datetime(self.zoned())
    }

    fn zoned(self) -> jiff::Timestamp {
        jiff::Timestamp::from_microsecond(self.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let civil = self.civil();
        write!(f, "{}.{:06}Z", Seconds(civil), civil.subsec_nanosecond() / 1000)
    }
}

/// `2026-02-08T12:44:00`; lists format thousands of these, for which patterns are too slow.
struct Seconds(jiff::civil::DateTime);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let t = self.0;
        let (date, time) = ((t.year(), t.month(), t.day()), (t.hour(), t.minute(), t.second()));
        write!(f, "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", date.0, date.1, date.2, time.0, time.1, time.2)
    }
}

impl FromStr for Timestamp {
    type Err = InvalidTimestamp;

    fn from_str(text: &str) -> Result<Self, InvalidTimestamp> {
        let parsed = text.parse::<jiff::Timestamp>().ok().or_else(|| {
            text.parse::<jiff::civil::DateTime>()
                .ok()?
                .to_zoned(jiff::tz::TimeZone::UTC)
                .ok()
                .map(|z| z.timestamp())
        });
        parsed.map(|t| Self(t.as_microsecond())).ok_or_else(|| InvalidTimestamp(text.to_owned()))
    }
}

impl TryFrom<String> for Timestamp {
    type Error = InvalidTimestamp;

    fn try_from(text: String) -> Result<Self, InvalidTimestamp> {
        text.parse()
    }
}

impl From<Timestamp> for String {
    fn from(time: Timestamp) -> String {
        time.to_string()
    }
}

impl JsonSchema for Timestamp {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Timestamp".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "format": "date-time" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // STORE-008
    #[test]
    fn zones_are_read_and_a_missing_one_is_utc() {
        let utc: Timestamp = "2026-02-08T12:44:00Z".parse().unwrap();
        for same in [
            "2026-02-08T12:44:00+00:00",
            "2026-02-08T18:14:00+05:30",
            "2026-02-08T12:44:00.000000",
            "2026-02-08T12:44:00",
        ] {
            assert_eq!(same.parse::<Timestamp>().unwrap(), utc, "{same}");
        }
        assert_eq!(utc.to_string(), "2026-02-08T12:44:00.000000Z");
        assert_eq!(utc.seconds_rfc3339(), "2026-02-08T12:44:00Z");
        let late = Timestamp::from_micros(utc.micros() + 61_000_042);
        assert_eq!(late.to_string(), "2026-02-08T12:45:01.000042Z");
        let before_epoch = Timestamp::from_micros(-1);
        assert_eq!(before_epoch.to_string(), "1969-12-31T23:59:59.999999Z");
        assert_eq!(before_epoch.to_string().parse::<Timestamp>().unwrap(), before_epoch);
        assert!("yesterday".parse::<Timestamp>().is_err());
    }
}
