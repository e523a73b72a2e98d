//! Event files of TensorBoard: the numbers of each step.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::gradient_norms;
use super::protobuf::Message;
use crate::trace::ancestry::{Above, from_parents};
use crate::trace::span_index::SpanIndex;
use crate::trace::{SpanRecord, TensorStatsEvent, TraceDocument};
use crate::view::summary::scalar_of;

/// Writes one event file with the numbers of each trace at its `capture_step`: numbers recorded (`loss`), statistics of
/// tensors (`logits/rms`, `…/mean`, `…/abs_max`, `…/non_finite`, `…/min`, `…/max`, `…/std`), norms of gradients
/// (`gradients/{root}/{variable}`, of all of a root `gradient_norm/{root}`, NaN where one is not finite), seconds
/// (`time/step`, `time/forward`, …). Where a label comes more than once in a step, the last one counts; so does the last
/// of several backward passes.
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
            let tag = format!("gradients/{}/{}", gradient.root, gradient.key);
            values.insert(tag, norm);
        }
    }
    for (root, norm) in gradient_norms(trace) {
        values.insert(format!("gradient_norm/{root}"), norm);
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

/// The measured region, and each part of the step, without the profiler's own time.
fn times(trace: &TraceDocument, values: &mut BTreeMap<String, f64>) {
    let mut step = None;
    let mut parts: BTreeMap<&str, Vec<&SpanRecord>> = BTreeMap::new();
    let outermost = outermost_tagged(trace);
    for (span, outermost) in trace.spans.iter().zip(outermost) {
        match (span.measured, span.step) {
            _ if !span.closed => {}
            (true, _) => {
                let sum: &mut u64 = step.get_or_insert_default();
                *sum = sum.saturating_add(span.duration_ns.saturating_sub(overhead(span)));
            }
            (false, Some(part)) if outermost => {
                parts.entry(part.as_str()).or_default().push(span);
            }
            _ => {}
        }
    }
    let mut insert = |name: &str, ns: u64| values.insert(format!("time/{name}"), ns as f64 / 1e9);
    if let Some(step) = step {
        insert("step", step);
    }
    for (name, spans) in parts {
        insert(name, taken(spans));
    }
}

fn overhead(span: &SpanRecord) -> u64 {
    let extra = span.end_extra.as_deref();
    extra.and_then(|extra| extra.overhead_ns).unwrap_or(0)
}

/// Of each span, whether it is tagged with a part of the step and lies in no span that is. Where the parents lead into a
/// ring, none is.
fn outermost_tagged(trace: &TraceDocument) -> Vec<bool> {
    #[derive(Clone, Copy, PartialEq)]
    enum Part {
        Untagged,
        Outermost,
        Inside,
    }

    let index = SpanIndex::of(&trace.spans);
    let parent_of = |place: usize| {
        let parent = trace.spans.get(place)?.parent_id.as_deref()?;
        index.get(parent)
    };
    let tagged = |place: usize| {
        let span = trace.spans.get(place);
        span.is_some_and(|span| span.step.is_some() && !span.measured)
    };
    let part = |place, above| match above {
        Above::Ring | Above::Parent(Part::Outermost | Part::Inside) => Part::Inside,
        Above::Nothing | Above::Parent(Part::Untagged) if tagged(place) => Part::Outermost,
        Above::Nothing | Above::Parent(Part::Untagged) => Part::Untagged,
    };
    let parts = from_parents(trace.spans.len(), parent_of, part);
    parts
        .into_iter()
        .map(|part| part == Part::Outermost)
        .collect()
}

/// The time in which any of some spans ran: what runs at once is counted once.
fn taken(mut spans: Vec<&SpanRecord>) -> u64 {
    spans.sort_by_key(|span| span.start_ns);
    let mut sum: u64 = 0;
    let mut until = 0;
    for span in spans {
        let end = span.end_ns();
        let own = end.saturating_sub(span.start_ns.max(until));
        // Of what overlaps, nobody knows where the profiler's own time lies.
        sum = sum.saturating_add(own.saturating_sub(overhead(span)));
        until = until.max(end);
    }
    sum
}
