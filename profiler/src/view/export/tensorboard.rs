//! Event files of TensorBoard: the numbers of each step.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::protobuf::Message;
use crate::phase::ExecutionStep;
use crate::trace::{TensorStatsEvent, TraceDocument};
use crate::view::summary::{Gradients, scalar_of};

/// Writes one event file with the numbers of each trace at its `capture_step`: numbers recorded (`loss`), statistics of
/// tensors (`logits/rms`, `…/mean`, `…/abs_max`, `…/non_finite`, `…/min`, `…/max`, `…/std`), norms of gradients
/// (`gradients/{root}/norm`, `gradients/{root}/{variable}`), seconds (`time/step`, `time/forward`, …). Where a label comes
/// more than once in a step, the last one counts; so does the last of several backward passes.
///
/// # Errors
/// What `to` says.
pub fn tensorboard(traces: &[TraceDocument], to: &mut dyn Write) -> io::Result<()> {
    let mut steps: Vec<&TraceDocument> = traces.iter().collect();
    steps.sort_by_key(|trace| trace.run.capture_step);
    let first = steps.first().map_or(0.0, |trace| wall_time(trace));
    Message::default()
        .double(1, first)
        .bytes(3, b"brain.Event:2")
        .write_record(to)?;
    for trace in steps {
        let mut summary = Message::default();
        for (tag, value) in values(trace) {
            let value = Message::default()
                .bytes(1, tag.as_bytes())
                .float(2, value as f32);
            summary = summary.message(1, &value);
        }
        Message::default()
            .double(1, wall_time(trace))
            .integer(2, trace.run.capture_step)
            .message(5, &summary)
            .write_record(to)?;
    }
    Ok(())
}

/// Seconds since 1970.
fn wall_time(trace: &TraceDocument) -> f64 {
    let stamp: Option<jiff::Timestamp> = trace.run.timestamp.parse().ok();
    stamp.map_or(0.0, |stamp| stamp.as_millisecond() as f64 / 1e3)
}

fn values(trace: &TraceDocument) -> BTreeMap<String, f64> {
    let mut values = BTreeMap::new();
    for stats in &trace.tensor_stats {
        match scalar_of(stats) {
            Some(value) => {
                values.insert(stats.label.clone(), value);
            }
            None => statistics(stats, &mut values),
        }
    }
    for gradient in &trace.gradients {
        if let Some(norm) = gradient.norm {
            values.insert(
                format!("gradients/{}/{}", gradient.root, gradient.key),
                norm,
            );
        }
    }
    for (root, row) in Gradients::of(&trace.gradients).iter() {
        let norm = row.last_norm().filter(|norm| norm.is_finite());
        values.extend(norm.map(|norm| (format!("gradients/{root}/norm"), norm)));
    }
    times(trace, &mut values);
    values
}

fn statistics(stats: &TensorStatsEvent, values: &mut BTreeMap<String, f64>) {
    let extra = stats.extra.as_deref();
    let known = [
        ("rms", Some(stats.rms)),
        ("mean", Some(stats.mean)),
        ("abs_max", Some(stats.abs_max)),
        ("non_finite", Some(stats.non_finite as f64)),
        ("min", extra.and_then(|extra| extra.min)),
        ("max", extra.and_then(|extra| extra.max)),
        ("std", extra.and_then(|extra| extra.std)),
    ];
    for (name, value) in known {
        values.extend(value.map(|value| (format!("{}/{name}", stats.label), value)));
    }
}

/// The measured span, and the outermost spans of each part of the step, without the profiler's own time.
fn times(trace: &TraceDocument, values: &mut BTreeMap<String, f64>) {
    let parts: BTreeMap<&str, Option<ExecutionStep>> = trace
        .spans
        .iter()
        .map(|span| (span.id.as_str(), span.step))
        .collect();
    for span in trace.spans.iter().filter(|span| span.closed) {
        let inside = span
            .parent_id
            .as_deref()
            .and_then(|id| parts.get(id))
            .copied()
            .flatten();
        let name = match (span.measured, span.step) {
            (true, _) => "step",
            (false, Some(step)) if inside.is_none() => step.as_str(),
            _ => continue,
        };
        let overhead = span
            .end_extra
            .as_deref()
            .and_then(|extra| extra.overhead_ns);
        let seconds = span.duration_ns.saturating_sub(overhead.unwrap_or(0)) as f64 / 1e9;
        *values.entry(format!("time/{name}")).or_insert(0.0) += seconds;
    }
}
