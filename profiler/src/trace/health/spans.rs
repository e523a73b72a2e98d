//! The tree of spans.

use super::coverage::EvidenceCoverage;
use super::{Issues, Spans};
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

/// Where the way up from a span ends.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Unknown,
    /// On the path that is being walked.
    Walking,
    /// At a span without a parent, or whose parent is missing.
    Ends,
    /// Never.
    Loops,
}

/// Walks each span's parents until one whose way is known, so that every span is passed once.
fn cycles(spans: &Spans<'_>, issues: &mut Issues) {
    let mut ways = vec![Way::Unknown; spans.all.len()];
    let mut path = Vec::new();
    for start in 0..spans.all.len() {
        let mut next = Some(start);
        let way = loop {
            let Some(place) = next else {
                break Way::Ends;
            };
            match ways.get(place) {
                Some(Way::Unknown) => {}
                Some(Way::Walking | Way::Loops) => break Way::Loops,
                Some(Way::Ends) | None => break Way::Ends,
            }
            set(&mut ways, place, Way::Walking);
            path.push(place);
            let parent = spans
                .all
                .get(place)
                .and_then(|span| span.parent_id.as_deref());
            next = parent.and_then(|id| spans.place(id));
        };
        for place in path.drain(..) {
            set(&mut ways, place, way);
        }
    }
    for (span, way) in spans.all.iter().zip(ways) {
        if way == Way::Loops {
            issues.error(
                "span_cycle",
                format!("the parents of span {} lead back to themselves", span.id),
            );
        }
    }
}

fn set(ways: &mut [Way], place: usize, way: Way) {
    if let Some(slot) = ways.get_mut(place) {
        *slot = way;
    }
}
