//! What differs between two traces, or between two sets of them.

use std::collections::BTreeSet;
use std::io::BufRead;

use anyhow::Result;

use crate::trace::TraceEvent;
use crate::view::summary::{Digest, read_with};
use crate::view::text::number;

mod change;
mod json;
mod median;
mod numerics;
mod regions;
mod show;

pub(crate) use change::Change;
pub(crate) use json::as_json;
pub(crate) use median::median;
pub(crate) use show::render;

use change::{memory, times};
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

/// All that differs.
#[derive(Debug)]
pub(crate) struct Diff {
    pub(crate) names: [Vec<String>; 2],
    /// The regions before.
    pub(crate) entrypoint: String,
    /// Why the two may not be comparable.
    pub(crate) cautions: Vec<String>,
    /// The measured times, then the call sites, those that changed most first.
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
            faults.extend(numerics.faults(limits.tolerance));
        }
        let names = |side: &[Facts]| side.iter().map(|facts| facts.name.clone()).collect();
        Diff {
            names: [names(before), names(after)],
            entrypoint: entrypoints(before),
            cautions: cautions(before, after),
            times,
            memory: memory([before, after]),
            numerics,
            faults,
        }
    }
}

fn entrypoints(side: &[Facts]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for (entrypoint, _) in regions::all(side) {
        if !names.contains(&entrypoint) {
            names.push(entrypoint);
        }
    }
    names.join(", ")
}

/// What the limit on the time says of each region.
fn slowdown(times: &[Change], limit: f64) -> Vec<String> {
    let percent = |ratio: f64| format!("{}%", number((ratio - 1.0) * 100.0, 3));
    let measured: Vec<&Change> = times.iter().filter(|change| change.measured).collect();
    if measured.is_empty() {
        return vec!["the measured times cannot be compared: there are none".to_owned()];
    }
    let fault = |change: &&Change| {
        let name = &change.name;
        let Some(ratio) = change.ratio() else {
            let side = match (change.before, change.after) {
                (Some(_), None) => "only before has it",
                (None, Some(_)) => "only after has it",
                _ => "it took no time before",
            };
            return Some(format!("the time of {name} cannot be compared: {side}"));
        };
        // With traces enough, chance alone must not be a fault.
        let sure = change.interval.is_none_or(|interval| interval.low > 1.0);
        (ratio > limit && sure).then(|| {
            format!(
                "{name} is {} slower, allowed is {}",
                percent(ratio),
                percent(limit)
            )
        })
    };
    measured.iter().filter_map(fault).collect()
}

fn cautions(before: &[Facts], after: &[Facts]) -> Vec<String> {
    let mut cautions = Vec::new();
    type Of = fn(&Facts) -> &str;
    let of: [(&str, Of); 3] = [
        ("regions", |facts| &facts.digest.run().entrypoint),
        ("phases", |facts| &facts.digest.run().phase),
        ("devices", |facts| &facts.digest.run().device),
    ];
    for (what, of) in of {
        let values = |side: &[Facts]| -> BTreeSet<String> {
            side.iter().map(|facts| of(facts).to_owned()).collect()
        };
        let (before, after) = (values(before), values(after));
        if before != after {
            let listed = |values: BTreeSet<String>| values.into_iter().collect::<Vec<_>>();
            cautions.push(format!(
                "the {what} are not the same: {} → {}",
                listed(before).join(", "),
                listed(after).join(", ")
            ));
        }
    }
    for facts in before.iter().chain(after) {
        if let Some(reason) = facts.digest.failure() {
            cautions.push(format!("{} failed: {reason}", facts.name));
        }
    }
    cautions
}
