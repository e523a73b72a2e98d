//! The tree of spans.

use super::coverage::EvidenceCoverage;
use super::{Issues, Spans};
use crate::trace::ancestry::{Above, from_parents};
use crate::trace::document::TraceDocument;
use crate::trace::schema::SpanRecord;

pub(super) fn judge(
    doc: &TraceDocument,
    spans: &Spans<'_>,
    coverage: &EvidenceCoverage,
    issues: &mut Issues,
) {
    if spans.ambiguous {
        issues.error("duplicate_span_id", "two spans have the same id");
    }
    if coverage.root_spans != 1 {
        issues.error(
            "root_count",
            format!(
                "{} spans have no parent; exactly one is the root",
                coverage.root_spans
            ),
        );
    }
    if coverage.measured_spans != 1 && !issues.failed {
        issues.error(
            "measurement_count",
            format!(
                "{} spans are measured regions; a complete capture has exactly one",
                coverage.measured_spans
            ),
        );
    }
    for span in &doc.spans {
        if !span.closed {
            issues.unless_failed(
                "open_span",
                format!("span {} ({}) never ended", span.id, span.name),
            );
        }
        if let Some(parent) = span.parent_id.as_deref() {
            parent_of(span, parent, spans, issues);
        }
    }
    cycles(spans, issues);
}

fn parent_of(span: &SpanRecord, parent_id: &str, spans: &Spans<'_>, issues: &mut Issues) {
    let Some(parent) = spans.get(parent_id) else {
        issues.error(
            "unknown_parent",
            format!(
                "span {} names the parent {parent_id}, which is not there",
                span.id
            ),
        );
        return;
    };
    if !span.closed || !parent.closed {
        return;
    }
    if span.start_ns < parent.start_ns || span.end_ns() > parent.end_ns() {
        issues.error(
            "child_outside_parent",
            format!(
                "span {} runs from {} to {} ns, beyond its parent {parent_id}, which runs from {} to {} ns",
                span.id,
                span.start_ns,
                span.end_ns(),
                parent.start_ns,
                parent.end_ns()
            ),
        );
    }
}

fn cycles(spans: &Spans<'_>, issues: &mut Issues) {
    let parent = |place: usize| {
        let parent = spans.all.get(place)?.parent_id.as_deref()?;
        spans.place(parent)
    };
    let loops = from_parents(spans.all.len(), parent, |_, above| match above {
        Above::Nothing => false,
        Above::Ring => true,
        Above::Parent(loops) => loops,
    });
    for (span, loops) in spans.all.iter().zip(loops) {
        if loops {
            issues.error(
                "span_cycle",
                format!("the parents of span {} lead back to themselves", span.id),
            );
        }
    }
}
