//! What the benchmarks in `benches` share: runners timed in turn, and the tables that show them.
//!
//! Criterion and Divan time one thing after the other. On a machine that other programs share, its speed changes by
//! more than what is looked for between the one and the other, and a ratio of the two is of little worth. A [`Race`]
//! lets all its runners take turns of a fraction of a millisecond, so that each meets the same machine, and compares
//! the least time of each, which load can only raise.

mod pair;
mod process;
mod race;
pub mod subject;
mod target;

pub use pair::{Pair, Turns};
pub use process::{Usage, report};
pub use race::{Outcome, Race, repeat};
pub use target::Targets;

use candle_profiler::{Config, SummaryTo};
use std::path::Path;

/// Whether `cargo bench` runs this program; `cargo test --benches` only starts it.
pub fn asked_for() -> bool {
    std::env::args().any(|argument| argument == "--bench")
}

/// Captures every measured call of this program, into `folder` and without a summary.
///
/// # Errors
/// Where annotated code has run already.
pub fn capture_every_call(folder: &Path) -> anyhow::Result<()> {
    let config = Config::new().folder(folder).steps("every:1")?;
    candle_profiler::configure(config.summary(SummaryTo::Off))?;
    Ok(())
}

/// A session of candle-graph's that writes `file`.
///
/// # Errors
/// Where the file cannot be made.
pub fn reference_session(file: &Path) -> anyhow::Result<candle_graph::TraceSession> {
    let run = candle_graph::ProfileRun::training("bench", 1, "cpu");
    candle_graph::TraceSession::open(file, run)
}
