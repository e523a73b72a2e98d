//! Whether traces look like those of the ranks of one step.

use std::collections::BTreeSet;

use crate::trace::{TraceDocument, TraceRunMeta};

/// The ranks of a step open their traces at nearly the same time, even where one waits for a slow start of another.
const FAR_APART_MS: i64 = 10 * 60 * 1000;

/// Ranks of a large run that are named one by one.
const MOST_NAMED: usize = 8;

/// What makes it doubtful that they do, a sentence each that names the files.
pub(crate) fn doubts(traces: &[(String, TraceDocument)]) -> Vec<String> {
    let runs: Vec<(&str, &TraceRunMeta)> = traces
        .iter()
        .map(|(name, trace)| (name.as_str(), &trace.run))
        .collect();
    let Some((first, others)) = runs.split_first() else {
        return Vec::new();
    };
    let mut doubts = Vec::new();
    for other in others {
        let differing = [
            (
                "entrypoint",
                first.1.entrypoint.clone(),
                other.1.entrypoint.clone(),
            ),
            ("step", step(first.1), step(other.1)),
            ("world size", world_text(first.1), world_text(other.1)),
        ];
        for (what, here, there) in differing
            .into_iter()
            .filter(|(_, here, there)| here != there)
        {
            doubts.push(format!(
                "the {what} of {} is {here}, that of {} is {there}",
                first.0, other.0
            ));
        }
        if let Some(minutes) = minutes_apart(first.1, other.1) {
            doubts.push(format!(
                "{} and {} were opened {minutes} minutes apart: are they of one run?",
                first.0, other.0
            ));
        }
    }
    ranks(&runs, &mut doubts);
    doubts
}

fn step(run: &TraceRunMeta) -> String {
    let told = run.tags.get("step").cloned();
    told.unwrap_or_else(|| run.capture_step.to_string())
}

fn world(run: &TraceRunMeta) -> Option<u64> {
    run.tags.get("world_size")?.parse().ok()
}

fn world_text(run: &TraceRunMeta) -> String {
    world(run).map_or_else(|| "not told".to_owned(), |world| world.to_string())
}

fn minutes_apart(a: &TraceRunMeta, b: &TraceRunMeta) -> Option<i64> {
    let milliseconds = |run: &TraceRunMeta| {
        let stamp: jiff::Timestamp = run.timestamp.parse().ok()?;
        Some(stamp.as_millisecond())
    };
    let apart = milliseconds(a)?.saturating_sub(milliseconds(b)?).abs();
    (apart > FAR_APART_MS).then_some(apart / 60_000)
}

/// Whether each trace names a rank, and all ranks of the run are there.
fn ranks(runs: &[(&str, &TraceRunMeta)], doubts: &mut Vec<String>) {
    let nameless: Vec<&str> = runs
        .iter()
        .filter(|(_, run)| !run.tags.contains_key("rank"))
        .map(|(name, _)| *name)
        .collect();
    if !nameless.is_empty() {
        doubts.push(format!(
            "no rank is told in {}; the place among the arguments counts, from 0",
            listed(&nameless)
        ));
        return;
    }
    let worlds: BTreeSet<Option<u64>> = runs.iter().map(|(_, run)| world(run)).collect();
    let (Some(Some(world)), 1) = (worlds.first(), worlds.len()) else {
        return;
    };
    let there: BTreeSet<u64> = runs
        .iter()
        .filter_map(|(_, run)| run.tags.get("rank")?.parse().ok())
        .collect();
    let missing: Vec<String> = (0..*world)
        .filter(|rank| !there.contains(rank))
        .take(MOST_NAMED + 1)
        .map(|rank| rank.to_string())
        .collect();
    if !missing.is_empty() {
        doubts.push(format!(
            "the world size is {world}, {} traces are merged; missing: rank {}",
            runs.len(),
            listed(&missing)
        ));
    }
    let beyond: Vec<String> = there.range(*world..).map(u64::to_string).collect();
    if !beyond.is_empty() {
        doubts.push(format!(
            "the world size is {world}, which has no rank {}",
            listed(&beyond)
        ));
    }
}

fn listed<T: AsRef<str>>(names: &[T]) -> String {
    let shown: Vec<&str> = names.iter().take(MOST_NAMED).map(AsRef::as_ref).collect();
    let more = if names.len() > MOST_NAMED {
        ", …"
    } else {
        ""
    };
    format!("{}{more}", shown.join(", "))
}
