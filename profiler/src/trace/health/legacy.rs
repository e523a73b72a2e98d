//! The rules of `candle-graph/trace/6`, which are fewer and partly other ones: a capture has no outcome, children of one
//! span do not overlap, a tensor stands for its storage.

use std::collections::{HashMap, HashSet};

use super::coverage::EvidenceCoverage;
use super::spans::judge as judge_spans;
use super::{Issues, Spans};
use crate::phase::ExecutionPhase;
use crate::trace::document::TraceDocument;
use crate::trace::events::EdgeEvent;
use crate::trace::memory::MemoryAction;

pub(super) fn judge(
    doc: &TraceDocument,
    spans: &Spans<'_>,
    coverage: &EvidenceCoverage,
    issues: &mut Issues,
) {
    judge_spans(doc, spans, coverage, issues);
    children(doc, spans, issues);
    let ops = doc.ops.iter().map(|op| ("op", &op.span_id));
    let tensors = doc.tensors.iter().map(|tensor| ("tensor", &tensor.span_id));
    let memory = doc.memory.iter().map(|event| ("memory", &event.span_id));
    for (kind, id) in ops.chain(tensors).chain(memory) {
        if spans.place(id).is_none() {
            issues.error(
                "unknown_span",
                format!("a {kind} event names the span {id}, which is not there"),
            );
        }
    }
    for edge in &doc.edges {
        if let EdgeEvent::Call {
            from_span, to_span, ..
        } = edge
            && (spans.place(from_span).is_none() || spans.place(to_span).is_none())
        {
            issues.error(
                "unknown_edge_span",
                format!("the edge from {from_span} to {to_span} names a span that is not there"),
            );
        }
    }
    storages(doc, issues);
    absent(doc, coverage, issues);
}

/// Together the children of a span take no longer than it does; one that is open has no time yet.
fn children(doc: &TraceDocument, spans: &Spans<'_>, issues: &mut Issues) {
    let mut totals: HashMap<&str, u64> = HashMap::new();
    for span in &doc.spans {
        if let Some(parent) = span.parent_id.as_deref() {
            let total = totals.entry(parent).or_default();
            *total = total.saturating_add(span.duration_ns);
        }
    }
    for span in &doc.spans {
        let total = totals.get(span.id.as_str()).copied().unwrap_or(0);
        if total > span.duration_ns {
            issues.error(
                "children_exceed_parent",
                format!(
                    "the children of span {} take {total} ns, itself {} ns",
                    span.id, span.duration_ns
                ),
            );
        }
        // What ends is compared with an open parent too, which seems to have taken no time.
        let parent = span.parent_id.as_deref().and_then(|id| spans.get(id));
        if let Some(parent) = parent
            && !(span.closed && parent.closed)
            && (span.start_ns < parent.start_ns || span.end_ns() > parent.end_ns())
        {
            issues.error(
                "child_outside_parent",
                format!("span {} runs beyond its parent {}", span.id, parent.id),
            );
        }
    }
}

fn storages(doc: &TraceDocument, issues: &mut Issues) {
    let mut in_time: Vec<_> = doc.memory.iter().collect();
    in_time.sort_by_key(|event| event.timestamp_ns);
    let mut live = HashSet::new();
    for event in in_time {
        let key = (event.device.as_str(), event.tensor_id.as_str());
        match event.action {
            MemoryAction::Alloc if !live.insert(key) => issues.error(
                "duplicate_allocation",
                format!("tensor {} is allocated, but lives already", event.tensor_id),
            ),
            MemoryAction::Free if !live.remove(&key) => issues.error(
                "unpaired_free",
                format!("tensor {} is freed, but was not live", event.tensor_id),
            ),
            MemoryAction::Alloc | MemoryAction::Free => {}
        }
    }
    if !live.is_empty() {
        issues.warning(
            "retained_allocations",
            match live.len() {
                1 => "1 tensor was never freed".to_owned(),
                number => format!("{number} tensors were never freed"),
            },
        );
    }
}

fn absent(doc: &TraceDocument, coverage: &EvidenceCoverage, issues: &mut Issues) {
    let training = doc.run.phase == ExecutionPhase::Train;
    let expected = [
        (coverage.operations, "operations_absent", "operations", true),
        (coverage.tensors, "tensors_absent", "tensors", true),
        (
            coverage.memory_events,
            "memory_absent",
            "lives of tensors",
            true,
        ),
        (
            coverage.device_memory_samples,
            "device_memory_absent",
            "samples of device memory",
            true,
        ),
        (
            coverage.gradients,
            "gradients_absent",
            "gradients",
            training,
        ),
        (
            coverage.forward_spans,
            "forward_absent",
            "forward spans",
            training,
        ),
        (
            coverage.backward_spans,
            "backward_absent",
            "backward spans",
            training,
        ),
        (
            coverage.optimizer_spans,
            "optimizer_absent",
            "optimizer spans",
            training,
        ),
    ];
    for (count, code, what, wanted) in expected {
        if wanted && count == 0 {
            issues.warning(code, format!("there are no {what}"));
        }
    }
}
