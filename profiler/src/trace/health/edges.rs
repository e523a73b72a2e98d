//! Calls and flows of data.

use std::collections::HashSet;

use super::{Issues, Spans};
use crate::trace::document::TraceDocument;
use crate::trace::events::EdgeEvent;

pub(super) fn judge(doc: &TraceDocument, spans: &Spans<'_>, issues: &mut Issues) {
    let tensors = known_tensors(doc);
    for edge in &doc.edges {
        match edge {
            EdgeEvent::Call {
                from_span,
                to_span,
                host_duration_ns,
            } => call(from_span, to_span, *host_duration_ns, spans, issues),
            EdgeEvent::Data {
                from_tensor,
                to_tensor,
            } => data(from_tensor, to_tensor, &tensors, issues),
        }
    }
}

/// Every tensor that a tensor or op event names.
fn known_tensors(doc: &TraceDocument) -> HashSet<&str> {
    if !doc
        .edges
        .iter()
        .any(|edge| matches!(edge, EdgeEvent::Data { .. }))
    {
        return HashSet::new();
    }
    let seen = doc.tensors.iter().map(|tensor| tensor.tensor_id.as_str());
    let through_ops = doc
        .ops
        .iter()
        .flat_map(|op| op.inputs.iter().chain(&op.output).map(String::as_str));
    seen.chain(through_ops).collect()
}

fn call(from: &str, to: &str, duration_ns: u64, spans: &Spans<'_>, issues: &mut Issues) {
    let (Some(_), Some(child)) = (spans.get(from), spans.get(to)) else {
        issues.error(
            "unknown_call_edge_span",
            format!("the call from {from} to {to} names a span that is not there"),
        );
        return;
    };
    if child.parent_id.as_deref() != Some(from) {
        issues.error(
            "call_edge_hierarchy_mismatch",
            format!("there is a call from {from} to {to}, but {from} is not the parent of {to}"),
        );
    }
    if child.closed && child.duration_ns != duration_ns {
        issues.error(
            "call_edge_duration_mismatch",
            format!(
                "the call from {from} to {to} takes {duration_ns} ns, the span {to} itself {} ns",
                child.duration_ns
            ),
        );
    }
}

fn data(from: &str, to: &str, tensors: &HashSet<&str>, issues: &mut Issues) {
    if from.is_empty() || to.is_empty() {
        issues.error(
            "empty_data_edge_endpoint",
            format!("the data edge from {from:?} to {to:?} has an empty end"),
        );
    } else if !tensors.contains(from) || !tensors.contains(to) {
        issues.error(
            "unknown_data_edge_tensor",
            format!(
                "the data edge from {from} to {to} names a tensor that no tensor or op event names"
            ),
        );
    }
}
