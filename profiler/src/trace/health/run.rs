//! Origin and outcome.

use super::Issues;
use crate::trace::document::TraceDocument;
use crate::trace::schema::RunOutcome;

pub(super) fn judge(doc: &TraceDocument, issues: &mut Issues) {
    if let Err(error) = doc.run.validate() {
        issues.error("run_provenance_invalid", error.to_string());
    }
    outcome(doc, issues);
    let latest = doc.latest_host_ns();
    let end = doc.terminal.timestamp_ns;
    if end < latest {
        issues.error(
            "terminal_precedes_evidence",
            format!("the capture ended at {end} ns, but there is host evidence at {latest} ns"),
        );
    }
}

fn outcome(doc: &TraceDocument, issues: &mut Issues) {
    let reason = doc.terminal.reason.as_deref();
    match doc.terminal.outcome {
        RunOutcome::Complete => {
            if let Some(reason) = reason {
                issues.error(
                    "complete_with_failure_reason",
                    format!("the capture is complete, yet gives a reason for failing: {reason}"),
                );
            }
        }
        RunOutcome::Failed => {
            if reason.is_none_or(|reason| reason.trim().is_empty()) {
                issues.error(
                    "failed_without_reason",
                    "the capture failed, but does not say why",
                );
            }
            issues.warning("capture_failed", reason.unwrap_or("the capture failed"));
        }
    }
}
