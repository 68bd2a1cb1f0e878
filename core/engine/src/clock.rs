//! The engine's clock and the ids made from it.

use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use agents_domain::Timestamp;
use ulid::Ulid;

/// Now, in UTC.
pub(crate) fn now() -> Timestamp {
    let micros = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_micros());
    Timestamp::from_micros(i64::try_from(micros).unwrap_or(i64::MAX))
}

/// A moment later than `previous`: now, or just after it when the clock did not move on.
pub(crate) fn after(previous: Timestamp) -> Timestamp {
    now().max(Timestamp::from_micros(previous.micros() + 1))
}

/// A new ULID, later than every one this process made before.
pub(crate) fn ulid() -> Ulid {
    static LAST: Mutex<Ulid> = Mutex::new(Ulid::nil());
    let mut last = LAST.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let fresh = Ulid::generate();
    *last = if fresh > *last { fresh } else { last.increment().unwrap_or(fresh) };
    *last
}
