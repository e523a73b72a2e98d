//! Captures inside the test's own process: every measured call is captured, into a folder of the process.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

use candle_profiler::{Config, SummaryTo, configure, measure};
use tempfile::TempDir;

use crate::program::files;
use crate::trace::Trace;

/// Tests of one program run side by side, and what each wrote is told by what is new in the folder.
static ONE_AT_A_TIME: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// The folder of the traces; made, and profiling switched on, at the first call.
pub fn folder() -> &'static Path {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    FOLDER
        .get_or_init(|| {
            let folder = tempfile::tempdir().expect("a folder");
            let config = Config::new()
                .folder(folder.path())
                .summary(SummaryTo::Off)
                .steps("1..1000000000")
                .expect("steps");
            configure(config).expect("no annotated code has run");
            folder
        })
        .path()
}

/// Runs `work`; gives its value and the traces that it wrote, in the order of their names.
pub fn captures<T>(work: impl FnOnce() -> T) -> (T, Vec<Trace>) {
    let folder = folder();
    let mut known = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    *known = files(folder).into_iter().collect();
    let value = work();
    let new = files(folder)
        .into_iter()
        .filter(|name| !known.contains(name));
    let traces = new
        .map(|name| {
            assert!(name.ends_with(".jsonl"), "left behind: {name}");
            Trace::read(&folder.join(name))
        })
        .collect();
    (value, traces)
}

/// Runs `work`, which makes one measured call; gives the trace.
pub fn capture<T>(work: impl FnOnce() -> T) -> (T, Trace) {
    let (value, mut traces) = captures(work);
    assert_eq!(traces.len(), 1, "one measured call gives one trace");
    (value, traces.remove(0))
}

/// Runs `work` inside a measured call named `region`; gives the trace.
pub fn region<T>(work: impl FnOnce() -> T) -> (T, Trace) {
    capture(|| {
        let _measured = measure("region");
        work()
    })
}
