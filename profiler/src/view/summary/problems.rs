//! What is wrong, most important first.

use std::collections::HashSet;

use super::bounded::Names;
use super::digest::Digest;
use super::sites::{Site, StepTag};
use crate::view::text::counted;
use crate::view::text::{count, duration};

/// One sentence for each problem of the trace.
pub(super) fn problems(digest: &Digest) -> Vec<String> {
    let mut all = Vec::new();
    if let Some(reason) = &digest.failed {
        all.push(format!("failed: {reason}"));
    }
    values(digest, &mut all);
    all.extend(digest.cuts.iter().cloned());
    gradients(digest, &mut all);
    if let Some(graph) = digest.graph.filter(|graph| graph.carried > 0) {
        all.push(format!(
            "the graph of the loss holds {} of earlier steps: something keeps their results, detach it",
            counted(graph.carried, "tensor", "tensors")
        ));
    }
    all.extend(digest.notes.iter().cloned());
    if digest.more_notes > 0 {
        all.push(format!(
            "{} of this kind",
            counted(digest.more_notes, "more problem", "more problems")
        ));
    }
    let tensors = &digest.tensors;
    for (what, names) in [
        ("all zero", &tensors.all_zero),
        ("all equal", &tensors.all_equal),
    ] {
        if names.count() > 0 {
            all.push(format!("{what}: {}", names.listed()));
        }
    }
    spans(digest, &mut all);
    lost(digest, &mut all);
    all
}

fn values(digest: &Digest, all: &mut Vec<String>) {
    if let Some(first) = &digest.tensors.first_alarm {
        all.push(format!("first value that is not finite: {first}"));
    }
    if digest.tensors.later_alarms.count() > 0 {
        let names = digest.tensors.later_alarms.listed();
        all.push(format!("not finite after that: {names}"));
    }
    let scalars: Names = digest
        .scalars
        .iter()
        .filter(|(_, row)| row.alarms > 0)
        .map(|(label, _)| label)
        .collect();
    if scalars.count() > 0 {
        all.push(format!("scalars that are not finite: {}", scalars.listed()));
    }
}

fn gradients(digest: &Digest, all: &mut Vec<String>) {
    // A loss scaler leaves out the optimizer when a gradient overflows: no fault, but worth a word.
    let optimizes = |site: &Site| site.step == Some(StepTag::Optimizer) && site.calls > 0;
    let optimized = digest.sites.rows.iter().any(optimizes);
    for (root, row) in digest.gradients.iter() {
        let bad = row.non_finite();
        if bad.count() == 0 {
            continue;
        }
        let skipped = match optimized {
            true => "",
            false => "; no optimizer ran, so the step was skipped",
        };
        all.push(format!(
            "gradients of {root} that are not finite: {}{skipped}",
            bad.listed()
        ));
    }
    // Two roots may name the same variable.
    let mut zero: Vec<&str> = Vec::new();
    let mut known = HashSet::new();
    for (_, row) in digest.gradients.iter() {
        zero.extend(row.stay_zero().filter(|key| known.insert(*key)));
    }
    if !zero.is_empty() {
        let zero: Names = zero.into_iter().collect();
        all.push(format!(
            "gradients that were zero in this step and in one before: {}",
            zero.listed()
        ));
    }
}

fn spans(digest: &Digest, all: &mut Vec<String>) {
    type Counted = fn(&Site) -> u64;
    let kinds: [(&str, Counted); 4] = [
        ("left by a panic", |site| site.panicked),
        ("cancelled (its future was dropped)", |site| site.cancelled),
        ("still open at the end", |site| site.open_at_end),
        ("closed early, by the end of a span around it", |site| {
            site.cut
        }),
    ];
    for (what, counted) in kinds {
        let sites = digest.sites.rows.iter().chain([&digest.sites.others]);
        let names: Names = sites
            .filter(|site| counted(site) > 0)
            .map(|site| {
                let name = if site.name.is_empty() {
                    "(others)"
                } else {
                    &site.name
                };
                match counted(site) {
                    1 => name.to_owned(),
                    times => format!("{name} ({} times)", count(times)),
                }
            })
            .collect();
        if names.count() > 0 {
            all.push(format!("{what}: {}", names.listed()));
        }
    }
}

fn lost(digest: &Digest, all: &mut Vec<String>) {
    all.extend(digest.left_out());
    if digest.late > 0 {
        let came = counted(
            digest.late,
            "record came after the end and is",
            "records came after the end and are",
        );
        all.push(format!("{came} not in the trace"));
    }
    if digest.waited_ns > 0 {
        all.push(format!(
            "the program waited {} for the trace to be written",
            duration(digest.waited_ns)
        ));
    }
}
