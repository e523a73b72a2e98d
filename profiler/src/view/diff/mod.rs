//! What differs between two traces, or between two sets of them.

use std::collections::HashMap;
use std::io::BufRead;

use anyhow::Result;

use crate::trace::TraceEvent;
use crate::view::summary::{Digest, read_with};

mod json;
mod median;
mod numerics;
mod show;

pub(crate) use json::as_json;
pub(crate) use median::Interval;
pub(crate) use show::render;

use median::{median, ratio_interval};
use numerics::{Numerics, Recorded};

/// One trace, as far as it is compared.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) name: String,
    pub(crate) digest: Digest,
    recorded: Vec<Recorded>,
}

impl Facts {
    /// Reads a trace.
    ///
    /// # Errors
    /// A line that is no event, or stands where it cannot.
    pub(crate) fn read(name: String, trace: impl BufRead) -> Result<Facts> {
        let mut recorded = Vec::new();
        let fed = read_with(trace, |event| {
            if let TraceEvent::TensorStats(stats) = event {
                recorded.push(Recorded::of(stats));
            }
        })?;
        Ok(Facts {
            name,
            digest: fed.digest,
            recorded,
        })
    }
}

/// What is allowed, and how numbers are compared.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// The measured time may grow by so large a factor.
    pub(crate) slowdown: Option<f64>,
    /// Statistics may differ by so large a share.
    pub(crate) tolerance: f64,
    /// Whether it is a fault if they differ by more.
    pub(crate) enforced: bool,
    /// Whether tensors of another type may still be equal.
    pub(crate) any_dtype: bool,
}

/// One figure of both sides.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub(crate) name: String,
    /// Medians; none where a side has no such figure.
    pub(crate) before: Option<f64>,
    pub(crate) after: Option<f64>,
    /// Of `after / before`, where both sides have traces enough.
    pub(crate) interval: Option<Interval>,
    /// Calls in the first trace of each side.
    pub(crate) calls: [u64; 2],
    pub(crate) measured: bool,
}

impl Change {
    fn of(name: String, measured: bool, sides: [&[f64]; 2]) -> Change {
        let [before, after] = sides;
        Change {
            name,
            before: median(before),
            after: median(after),
            interval: ratio_interval(before, after),
            calls: [0; 2],
            measured,
        }
    }

    pub(crate) fn ratio(&self) -> Option<f64> {
        let (before, after) = self.before.zip(self.after)?;
        (before > 0.0).then(|| after / before)
    }

    fn difference(&self) -> f64 {
        (self.after.unwrap_or(0.0) - self.before.unwrap_or(0.0)).abs()
    }
}

/// All that differs.
#[derive(Debug)]
pub(crate) struct Diff {
    pub(crate) names: [Vec<String>; 2],
    pub(crate) entrypoint: String,
    /// Why the two may not be comparable.
    pub(crate) cautions: Vec<String>,
    /// The measured time, then the call sites, those that changed most first.
    pub(crate) times: Vec<Change>,
    pub(crate) memory: Vec<Change>,
    pub(crate) numerics: Numerics,
    /// Limits that were passed, in words.
    pub(crate) faults: Vec<String>,
}

impl Diff {
    pub(crate) fn of(before: &[Facts], after: &[Facts], limits: Limits) -> Diff {
        let numerics = Numerics::of(before, after, limits);
        let times = times([before, after]);
        let mut faults = Vec::new();
        if let Some(limit) = limits.slowdown {
            faults.extend(slowdown(&times, limit));
        }
        if limits.enforced {
            faults.extend(numerics.fault(limits.tolerance));
        }
        let names = |side: &[Facts]| side.iter().map(|facts| facts.name.clone()).collect();
        Diff {
            names: [names(before), names(after)],
            entrypoint: before.first().map_or(String::new(), |facts| facts.digest.run().entrypoint.clone()),
            cautions: cautions(before, after),
            times,
            memory: memory([before, after]),
            numerics,
            faults,
        }
    }
}

fn slowdown(times: &[Change], limit: f64) -> Option<String> {
    let percent = |ratio: f64| format!("{:+.1}%", (ratio - 1.0) * 100.0);
    let Some((change, ratio)) = times.iter().find(|change| change.measured).and_then(|c| Some((c, c.ratio()?)))
    else {
        return Some("the measured times cannot be compared: a side has none".to_owned());
    };
    // With traces enough, chance alone must not be a fault.
    let sure = change.interval.is_none_or(|interval| interval.low > 1.0);
    let name = &change.name;
    (ratio > limit && sure).then(|| {
        format!("{name} takes {} of its time, allowed is {}", percent(ratio), percent(limit))
    })
}

fn cautions(before: &[Facts], after: &[Facts]) -> Vec<String> {
    let mut cautions = Vec::new();
    type Of = fn(&Facts) -> String;
    let of: [(&str, Of); 3] = [
        ("regions", |facts| facts.digest.run().entrypoint.clone()),
        ("phases", |facts| facts.digest.run().phase.clone()),
        ("devices", |facts| facts.digest.run().device.clone()),
    ];
    for (what, of) in of {
        let mut values: Vec<String> = before.iter().chain(after).map(of).collect();
        values.dedup();
        values.sort();
        values.dedup();
        if values.len() > 1 {
            cautions.push(format!("the {what} are not the same: {}", values.join(", ")));
        }
    }
    for facts in before.iter().chain(after) {
        if let Some(reason) = facts.digest.failure() {
            cautions.push(format!("{} failed: {reason}", facts.name));
        }
    }
    cautions
}

/// By name: total times of each side, the calls in its first trace, and whether it is the measured region.
#[derive(Default)]
struct Times {
    sides: [Vec<f64>; 2],
    calls: [u64; 2],
    measured: bool,
}

fn times(sides: [&[Facts]; 2]) -> Vec<Change> {
    let mut order: Vec<String> = Vec::new();
    let mut all: HashMap<String, Times> = HashMap::new();
    for (side, traces) in sides.into_iter().enumerate() {
        for (at, facts) in traces.iter().enumerate() {
            let mut of_trace: HashMap<&str, f64> = HashMap::new();
            for row in facts.digest.times() {
                *of_trace.entry(row.name).or_default() += row.total_ns as f64;
                let times = all.entry(row.name.to_owned()).or_insert_with(|| {
                    order.push(row.name.to_owned());
                    Times::default()
                });
                times.measured |= row.measured;
                if at == 0 && let Some(calls) = times.calls.get_mut(side) {
                    *calls += row.calls;
                }
            }
            for (name, total) in of_trace {
                if let Some(of_side) = all.get_mut(name).and_then(|times| times.sides.get_mut(side)) {
                    of_side.push(total);
                }
            }
        }
    }
    let mut changes: Vec<Change> = order
        .into_iter()
        .filter_map(|name| {
            let times = all.remove(&name)?;
            let [before, after] = &times.sides;
            let mut change = Change::of(name, times.measured, [before, after]);
            change.calls = times.calls;
            Some(change)
        })
        .collect();
    changes.sort_by(|a, b| {
        let key = |change: &Change| (change.measured, change.difference());
        key(b).partial_cmp(&key(a)).unwrap_or(std::cmp::Ordering::Equal)
    });
    changes
}

fn memory(sides: [&[Facts]; 2]) -> Vec<Change> {
    let mut order: Vec<String> = Vec::new();
    let mut all: HashMap<String, [Vec<f64>; 2]> = HashMap::new();
    for (side, traces) in sides.into_iter().enumerate() {
        for facts in traces {
            for (name, bytes) in facts.digest.memory_figures() {
                let figures = all.entry(name.clone()).or_insert_with(|| {
                    order.push(name);
                    Default::default()
                });
                if let Some(of_side) = figures.get_mut(side) {
                    of_side.push(bytes as f64);
                }
            }
        }
    }
    let change = |name: String| {
        let [before, after] = all.get(&name)?;
        Some(Change::of(name, false, [before, after]))
    };
    order.into_iter().filter_map(change).collect()
}
