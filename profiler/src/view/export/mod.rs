//! Traces in the formats of other tools.
//!
//! | function | for |
//! | --- | --- |
//! | [`chrome`] | Perfetto, `chrome://tracing`: JSON in the array form |
//! | [`speedscope`] | speedscope: one profile for each track |
//! | [`folded`] | flame graphs (`inferno`, `flamegraph.pl`): stacks with their own nanoseconds |
//! | [`tensorboard`] | TensorBoard: one event file with the numbers of each step |
//!
//! Spans of one thread that overlap (futures that take turns) go to tracks of their own: see [`tracks`].

use std::collections::{BTreeMap, HashMap};

use crate::trace::TraceDocument;
use crate::view::summary::Gradients;

mod chrome;
mod folded;
mod json_text;
mod protobuf;
mod speedscope;
mod tensorboard;
pub mod tracks;

pub use chrome::chrome;
pub use folded::folded;
pub use speedscope::speedscope;
pub use tensorboard::tensorboard;

/// How many nanoseconds after the earliest of the traces each was opened, by the clocks of their machines.
pub(crate) fn offsets<'t>(traces: impl IntoIterator<Item = &'t TraceDocument>) -> Vec<u64> {
    let opened = |trace: &TraceDocument| -> Option<i128> {
        let stamp: jiff::Timestamp = trace.run.timestamp.parse().ok()?;
        Some(stamp.as_nanosecond())
    };
    let stamps: Vec<Option<i128>> = traces.into_iter().map(opened).collect();
    let first = stamps.iter().flatten().min().copied();
    stamps
        .into_iter()
        .map(|stamp| {
            let after = stamp.zip(first).map_or(0, |(stamp, first)| stamp - first);
            u64::try_from(after).unwrap_or(0)
        })
        .collect()
}

/// By root: the norm of all gradients of its last backward pass; NaN where one of them is not finite.
fn gradient_norms(trace: &TraceDocument) -> BTreeMap<String, f64> {
    let gradients = Gradients::of(&trace.gradients);
    let norms = gradients
        .iter()
        .map(|(root, row)| (root.to_owned(), row.last_norm().unwrap_or(0.0)));
    norms.collect()
}

/// What a person calls a trace among others.
fn title(trace: &TraceDocument) -> String {
    let run = &trace.run;
    let mut title = format!("{} {}", run.entrypoint, run.capture_step);
    if let Some(rank) = run.tags.get("rank") {
        title += &format!(" rank {rank}");
    }
    title
}

/// The names of threads, where the trace tells them.
pub(crate) fn thread_names(trace: &TraceDocument) -> HashMap<u64, &str> {
    let extras = trace
        .spans
        .iter()
        .filter_map(|span| span.start_extra.as_deref());
    extras
        .filter_map(|extra| Some((extra.thread?, extra.thread_name.as_deref()?)))
        .collect()
}

/// What a person calls a track.
pub(crate) fn track_name(track: &tracks::Track, names: &HashMap<u64, &str>) -> String {
    let mut name = match track.thread {
        None => "main".to_owned(),
        Some(thread) => match names.get(&thread) {
            Some(name) => format!("{name} ({thread})"),
            None => format!("thread {thread}"),
        },
    };
    if track.ordinal > 0 {
        name += &format!(", overlapping {}", track.ordinal);
    }
    name
}
