//! The names that the contract asks for.

use std::collections::{HashMap, HashSet};

use super::Issues;
use crate::capability::CaptureContract;
use crate::trace::document::TraceDocument;

pub(super) fn judge(doc: &TraceDocument, issues: &mut Issues) {
    let contract = &doc.run.capture_contract;
    let required = required(doc, &contract.required_semantic_labels, issues);
    if contract.labels_are_classified() {
        classified(contract, &required, issues);
    }
}

/// Checks that each required label names exactly one span; gives the labels.
fn required<'a>(
    doc: &TraceDocument,
    labels: &'a [String],
    issues: &mut Issues,
) -> HashSet<&'a str> {
    let mut counts: HashMap<&str, usize> = labels.iter().map(|label| (label.as_str(), 0)).collect();
    if !counts.is_empty() {
        for span in &doc.spans {
            if let Some(count) = counts.get_mut(span.name.as_str()) {
                *count += 1;
            }
        }
    }
    let mut seen = HashSet::new();
    for label in labels {
        if label.trim().is_empty() {
            issues.unless_failed(
                "empty_required_semantic_label",
                "a required semantic label is empty",
            );
        }
        if !seen.insert(label.as_str()) {
            issues.unless_failed(
                "duplicate_required_semantic_label",
                format!("the semantic label {label} is required twice"),
            );
        }
        let count = counts.get(label.as_str()).copied().unwrap_or(0);
        if count != 1 {
            issues.unless_failed(
                "required_semantic_label_cardinality",
                format!("{count} spans are called {label}; the contract asks for exactly one"),
            );
        }
    }
    seen
}

/// Checks that the classes divide the required labels between them.
fn classified(contract: &CaptureContract, required: &HashSet<&str>, issues: &mut Issues) {
    let classes = [
        (
            "gpu_expected_semantic_labels",
            &contract.gpu_expected_semantic_labels,
        ),
        (
            "cpu_only_semantic_labels",
            &contract.cpu_only_semantic_labels,
        ),
    ];
    let mut anywhere = HashSet::new();
    for (class, labels) in classes {
        let mut here = HashSet::new();
        for label in labels {
            let label = label.as_str();
            if label.trim().is_empty() {
                issues.unless_failed(
                    "empty_semantic_label_classification",
                    format!("{class} holds an empty label"),
                );
            }
            if !here.insert(label) {
                issues.unless_failed(
                    "duplicate_semantic_label_classification",
                    format!("{class} holds {label} twice"),
                );
            }
            if !required.contains(label) {
                issues.unless_failed(
                    "unrequired_semantic_label_classification",
                    format!("{class} holds {label}, which is not required"),
                );
            }
            if !anywhere.insert(label) {
                issues.unless_failed(
                    "overlapping_semantic_label_classification",
                    format!("{class} holds {label}, which was classified before"),
                );
            }
        }
    }
    if anywhere != *required {
        issues.unless_failed(
            "incomplete_semantic_label_partition",
            "the required semantic labels are not all classified, or others are",
        );
    }
}
