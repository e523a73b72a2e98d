//! How much evidence there is, and what kinds are absent.

use serde::{Deserialize, Serialize};

use super::Issues;
use crate::phase::{ExecutionPhase, ExecutionStep};
use crate::trace::document::TraceDocument;
use crate::trace::events::EdgeEvent;

/// How much of each kind of evidence a trace holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidenceCoverage {
    /// Spans.
    pub spans: usize,
    /// Spans that ended.
    pub closed_spans: usize,
    /// Spans without a parent.
    pub root_spans: usize,
    /// Measured regions.
    pub measured_spans: usize,
    /// `op` events.
    pub operations: usize,
    /// `tensor` events.
    pub tensors: usize,
    /// `memory` events.
    pub memory_events: usize,
    /// `device_memory` events.
    pub device_memory_samples: usize,
    /// `device_interval` events.
    pub device_intervals: usize,
    /// `gradient` events.
    pub gradients: usize,
    /// `edge` events that are calls.
    pub call_edges: usize,
    /// `edge` events that are flows of data.
    pub data_edges: usize,
    /// Spans tagged `forward`.
    pub forward_spans: usize,
    /// Spans tagged `backward`.
    pub backward_spans: usize,
    /// Spans tagged `optimizer`.
    pub optimizer_spans: usize,
}

impl EvidenceCoverage {
    pub(super) fn of(doc: &TraceDocument) -> Self {
        let mut coverage = Self {
            spans: doc.spans.len(),
            operations: doc.ops.len(),
            tensors: doc.tensors.len(),
            memory_events: doc.memory.len(),
            device_memory_samples: doc.device_memory.len(),
            device_intervals: doc.device_intervals.len(),
            gradients: doc.gradients.len(),
            ..Self::default()
        };
        for span in &doc.spans {
            coverage.closed_spans += usize::from(span.closed);
            coverage.root_spans += usize::from(span.parent_id.is_none());
            coverage.measured_spans += usize::from(span.measured);
            match span.step {
                Some(ExecutionStep::Forward) => coverage.forward_spans += 1,
                Some(ExecutionStep::Backward) => coverage.backward_spans += 1,
                Some(ExecutionStep::Optimizer) => coverage.optimizer_spans += 1,
                None => {}
            }
        }
        for edge in &doc.edges {
            match edge {
                EdgeEvent::Call { .. } => coverage.call_edges += 1,
                EdgeEvent::Data { .. } => coverage.data_edges += 1,
            }
        }
        coverage
    }
}

pub(super) fn judge(doc: &TraceDocument, coverage: &EvidenceCoverage, issues: &mut Issues) {
    let anywhere = [
        (coverage.operations, "operations_absent", "operations"),
        (coverage.tensors, "tensors_absent", "tensors"),
        (
            coverage.memory_events,
            "logical_memory_absent",
            "lives of storages",
        ),
        (
            coverage.device_memory_samples,
            "physical_memory_absent",
            "samples of device memory",
        ),
        (
            coverage.device_intervals,
            "device_timing_absent",
            "times measured by a device",
        ),
    ];
    let in_training = [
        (coverage.gradients, "gradients_absent", "gradients"),
        (coverage.forward_spans, "forward_absent", "forward spans"),
        (coverage.backward_spans, "backward_absent", "backward spans"),
        (
            coverage.optimizer_spans,
            "optimizer_absent",
            "optimizer spans",
        ),
    ];
    let training = doc.run.phase == ExecutionPhase::Train;
    let expected = anywhere
        .into_iter()
        .chain(in_training.into_iter().filter(|_| training));
    for (count, code, what) in expected {
        if count == 0 {
            issues.warning(code, format!("there are no {what}"));
        }
    }
}
