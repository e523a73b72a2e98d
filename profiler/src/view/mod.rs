//! What a person sees of a trace.

use std::io::BufRead;

use anyhow::Result;

#[cfg(feature = "cli")]
pub(crate) mod diff;
pub mod export;
#[cfg(feature = "cli")]
pub(crate) mod kinship;
#[cfg(feature = "cli")]
pub(crate) mod merge;
#[cfg(feature = "cli")]
pub(crate) mod page;
mod repair;
pub(crate) mod span_table;
pub(crate) mod summary;
pub(crate) mod text;

pub use repair::{LeftOut, RepairOptions, Repaired, repair};

/// The summary of a trace, as it stands on stderr when a capture ends: problems first, then numbers, times, memory,
/// tensors and gradients, in lines of at most `width` columns (at least 20).
///
/// ```
/// let trace = br#"{"kind":"meta","schema":"candle-graph/trace/9"}"#;
/// let error = candle_profiler::view::summary_text(&trace[..], 80).unwrap_err();
/// assert!(error.to_string().starts_with("line 1: "));
/// ```
///
/// # Errors
/// A line that is no event, or stands where it cannot; the line is named. Whether the events agree with one another is
/// for [`crate::trace::analyze_health`] to tell.
pub fn summary_text(trace: impl BufRead, width: usize) -> Result<String> {
    let look = summary::Look {
        width,
        colour: false,
        unoptimised: false,
        path: None,
    };
    Ok(summary::render(&summary::read(trace)?.digest, &look))
}
