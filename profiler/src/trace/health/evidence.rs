//! Whether evidence stands where it says: in spans that are there, within their time.

use super::{Issues, Spans};
use crate::trace::document::TraceDocument;

pub(super) fn judge(doc: &TraceDocument, spans: &Spans<'_>, issues: &mut Issues) {
    known_spans(doc, spans, issues);
    within_spans(doc, spans, issues);
    for interval in &doc.device_intervals {
        if interval.duration_ns == 0 {
            issues.error(
                "empty_device_interval",
                format!(
                    "a device interval of span {} on {} took no time",
                    interval.span_id, interval.device
                ),
            );
        }
    }
    for sample in &doc.device_memory {
        let figures = [
            sample.used_bytes,
            sample.free_bytes,
            sample.reserved_bytes,
            sample.capacity_bytes,
        ];
        if figures.iter().all(Option::is_none) {
            issues.error(
                "empty_device_memory_sample",
                format!(
                    "the device memory sample of {} at {} ns has no figure",
                    sample.device, sample.timestamp_ns
                ),
            );
        }
    }
}

fn known_spans(doc: &TraceDocument, spans: &Spans<'_>, issues: &mut Issues) {
    let ops = doc.ops.iter().map(|op| ("op", &op.span_id));
    let tensors = doc.tensors.iter().map(|tensor| ("tensor", &tensor.span_id));
    let stats = doc
        .tensor_stats
        .iter()
        .map(|stats| ("tensor_stats", &stats.span_id));
    let memory = doc.memory.iter().map(|event| ("memory", &event.span_id));
    let intervals = doc
        .device_intervals
        .iter()
        .map(|interval| ("device_interval", &interval.span_id));
    let all = ops
        .chain(tensors)
        .chain(stats)
        .chain(memory)
        .chain(intervals);
    for (kind, id) in all {
        if spans.place(id).is_none() {
            issues.error(
                "unknown_span",
                format!("a {kind} event names the span {id}, which is not there"),
            );
        }
    }
}

fn within_spans(doc: &TraceDocument, spans: &Spans<'_>, issues: &mut Issues) {
    for op in &doc.ops {
        let Some(span) = spans.closed(&op.span_id) else {
            continue;
        };
        let end = op.timestamp_ns.saturating_add(op.duration_ns);
        if op.timestamp_ns < span.start_ns || end > span.end_ns() {
            issues.error(
                "operation_outside_span",
                format!(
                    "operation {} runs from {} to {end} ns, beyond its span {}, which runs from {} to {} ns",
                    op.op_name,
                    op.timestamp_ns,
                    span.id,
                    span.start_ns,
                    span.end_ns()
                ),
            );
        }
    }
    for event in &doc.memory {
        let Some(span) = spans.closed(&event.span_id) else {
            continue;
        };
        if event.timestamp_ns < span.start_ns || event.timestamp_ns > span.end_ns() {
            issues.error(
                "memory_outside_span",
                format!(
                    "storage {} changes at {} ns, beyond its span {}, which runs from {} to {} ns",
                    event.storage_id,
                    event.timestamp_ns,
                    span.id,
                    span.start_ns,
                    span.end_ns()
                ),
            );
        }
    }
}
