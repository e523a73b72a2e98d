//! What the judge and our own reader say of a trace.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;

use serde_json::Value;

pub use tempfile::TempDir;

/// The text of a trace in `golden/`.
pub fn golden(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("golden")
        .join(name);
    std::fs::read_to_string(path).expect("a golden trace")
}

/// A new folder that goes away with the value.
pub fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// What a reader says of a trace: severities and codes of its issues, or that it is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It does not parse.
    Refused,
    /// It does.
    Judged {
        /// No issue is an error.
        valid: bool,
        /// The outcome is `complete`.
        complete: bool,
        /// (severity, code).
        issues: BTreeSet<(String, String)>,
    },
}

impl Verdict {
    /// The codes of the issues.
    pub fn codes(&self) -> BTreeSet<String> {
        match self {
            Self::Refused => BTreeSet::new(),
            Self::Judged { issues, .. } => issues.iter().map(|(_, code)| code.clone()).collect(),
        }
    }

    /// Whether it parses without an error.
    pub fn is_valid(&self) -> bool {
        matches!(self, Self::Judged { valid: true, .. })
    }

    /// Whether it does and is complete.
    pub fn is_complete(&self) -> bool {
        matches!(
            self,
            Self::Judged {
                valid: true,
                complete: true,
                ..
            }
        )
    }
}

macro_rules! health_verdict {
    ($library:ident, $document:expr) => {{
        let health = $library::trace::analyze_health($document);
        Verdict::Judged {
            valid: health.structurally_valid,
            complete: health.capture_complete,
            issues: health
                .issues
                .iter()
                .map(|issue| {
                    let severity = format!("{:?}", issue.severity).to_lowercase();
                    (severity, issue.code.clone())
                })
                .collect(),
        }
    }};
}

/// The judge's verdict on a text.
pub fn judge(text: &str) -> Verdict {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(text.as_bytes()).expect("to write it");
    match candle_graph::trace::parse_trace(file.path()) {
        Ok(document) => health_verdict!(candle_graph, &document),
        Err(_) => Verdict::Refused,
    }
}

/// Our verdict on a text.
pub fn ours(text: &str) -> Verdict {
    match candle_profiler::trace::parse_trace_reader(text.as_bytes()) {
        Ok(document) => health_verdict!(candle_profiler, &document),
        Err(_) => Verdict::Refused,
    }
}

/// The judge's verdict on a document that need not come from a text.
pub fn judge_document(document: &Value) -> Verdict {
    let document = serde_json::from_value(document.clone()).expect("a document of the judge's");
    health_verdict!(candle_graph, &document)
}

/// Our verdict on a document that need not come from a text.
pub fn our_document(document: &Value) -> Verdict {
    let document = serde_json::from_value(document.clone()).expect("a document of ours");
    health_verdict!(candle_profiler, &document)
}
