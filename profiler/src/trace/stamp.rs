//! When and by which process a trace was written.

use std::time::{SystemTime, UNIX_EPOCH};

/// `run-{process}-{nanoseconds since 1970}`.
pub(crate) fn run_id() -> String {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    let nanos = since_epoch.map_or(0, |elapsed| elapsed.as_nanos());
    format!("run-{}-{nanos}", std::process::id())
}

/// The number of the process that wrote the trace with this `run_id`, if it was one of ours.
pub(crate) fn process_of(run_id: &str) -> Option<u32> {
    let (process, _) = run_id.strip_prefix("run-")?.split_once('-')?;
    process.parse().ok()
}

/// The time now, in UTC with milliseconds, as ISO 8601 has it.
pub(crate) fn utc_now() -> String {
    format!("{:.3}", jiff::Timestamp::now())
}
