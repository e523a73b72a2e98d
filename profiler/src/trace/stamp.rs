//! When and by which process a trace was written.

use std::time::{SystemTime, UNIX_EPOCH};

/// `run-{process}-{nanoseconds since 1970}`.
pub(crate) fn run_id() -> String {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    let nanos = since_epoch.map_or(0, |elapsed| elapsed.as_nanos());
    format!("run-{}-{nanos}", std::process::id())
}

/// The time now, in UTC with milliseconds, as ISO 8601 has it.
pub(crate) fn utc_now() -> String {
    format!("{:.3}", jiff::Timestamp::now())
}
