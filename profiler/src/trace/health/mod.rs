//! The verdict on a trace: whether it holds together, and what it lacks.
//!
//! Each file judges one family of rules. The codes are part of the format; a trace is valid when no
//! issue of severity [`HealthSeverity::Error`] is found.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::document::TraceDocument;
use super::schema::{LEGACY_SCHEMA, RunOutcome, SpanRecord};
use super::span_index::SpanIndex;

mod coverage;
mod edges;
mod evidence;
pub(crate) mod gradients;
mod labels;
mod legacy;
pub(crate) mod memory;
mod run;
mod spans;

pub use coverage::EvidenceCoverage;

/// How bad an issue is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HealthSeverity {
    /// The trace contradicts itself or its contract.
    Error,
    /// Something is not there; what is there holds.
    Warning,
}

impl fmt::Display for HealthSeverity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
        })
    }
}

/// One thing that is wrong or missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealthIssue {
    /// How bad it is.
    pub severity: HealthSeverity,
    /// The rule, for example `open_span`.
    pub code: String,
    /// What it is, in words.
    pub message: String,
}

/// The verdict on a trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceHealth {
    /// No issue is an error.
    pub structurally_valid: bool,
    /// The outcome is `complete`.
    pub capture_complete: bool,
    /// What was found.
    pub issues: Vec<HealthIssue>,
    /// How much of each kind of evidence there is.
    pub coverage: EvidenceCoverage,
}

impl TraceHealth {
    /// The warnings.
    pub fn gaps(&self) -> impl Iterator<Item = &HealthIssue> {
        self.of(HealthSeverity::Warning)
    }

    /// The issues of one severity.
    pub fn of(&self, severity: HealthSeverity) -> impl Iterator<Item = &HealthIssue> {
        self.issues
            .iter()
            .filter(move |issue| issue.severity == severity)
    }
}

/// Judges a trace by every rule of the format. Takes time in proportion to its size.
pub fn analyze_health(doc: &TraceDocument) -> TraceHealth {
    let mut issues = Issues {
        failed: doc.terminal.outcome == RunOutcome::Failed,
        found: Vec::new(),
    };
    let spans = Spans::of(doc);
    let coverage = EvidenceCoverage::of(doc);

    if doc.schema == LEGACY_SCHEMA {
        legacy::judge(doc, &spans, &coverage, &mut issues);
    } else {
        run::judge(doc, &mut issues);
        spans::judge(doc, &spans, &coverage, &mut issues);
        evidence::judge(doc, &spans, &mut issues);
        edges::judge(doc, &spans, &mut issues);
        memory::judge(doc, &mut issues);
        gradients::judge(doc, &mut issues);
        coverage::judge(doc, &coverage, &mut issues);
        labels::judge(doc, &mut issues);
    }

    TraceHealth {
        structurally_valid: issues
            .found
            .iter()
            .all(|issue| issue.severity != HealthSeverity::Error),
        capture_complete: !issues.failed,
        issues: issues.found,
        coverage,
    }
}

/// What was found so far.
struct Issues {
    failed: bool,
    found: Vec<HealthIssue>,
}

impl Issues {
    fn error(&mut self, code: &str, message: impl Into<String>) {
        self.add(HealthSeverity::Error, code, message.into());
    }

    fn warning(&mut self, code: &str, message: impl Into<String>) {
        self.add(HealthSeverity::Warning, code, message.into());
    }

    /// An error in a complete capture. A failed one stopped somewhere, so there it is no more than
    /// a gap.
    fn unless_failed(&mut self, code: &str, message: impl Into<String>) {
        if self.failed {
            self.warning(code, message);
        } else {
            self.error(code, message);
        }
    }

    fn add(&mut self, severity: HealthSeverity, code: &str, message: String) {
        self.found.push(HealthIssue {
            severity,
            code: code.to_owned(),
            message,
        });
    }
}

/// The spans by id.
struct Spans<'a> {
    all: &'a [SpanRecord],
    places: SpanIndex,
    /// Whether an id stands for two spans.
    ambiguous: bool,
}

impl<'a> Spans<'a> {
    fn of(doc: &'a TraceDocument) -> Self {
        let places = SpanIndex::of(&doc.spans);
        // Of two spans with one id, one is not found at its own place.
        let found = |(place, span): (usize, &SpanRecord)| places.get(&span.id) == Some(place);
        Self {
            all: &doc.spans,
            ambiguous: !doc.spans.iter().enumerate().all(found),
            places,
        }
    }

    fn place(&self, id: &str) -> Option<usize> {
        self.places.get(id)
    }

    fn get(&self, id: &str) -> Option<&'a SpanRecord> {
        self.place(id).and_then(|place| self.all.get(place))
    }

    fn closed(&self, id: &str) -> Option<&'a SpanRecord> {
        self.get(id).filter(|span| span.closed)
    }
}
