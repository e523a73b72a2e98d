//! The first label in the order of execution whose numbers part.

use std::collections::HashMap;

use super::regions::Regions;
use super::{Facts, Limits};
use crate::trace::TensorStatsEvent;
use crate::view::text::number;

/// Labels that are named in a list.
const MOST_NAMED: usize = 6;

/// The statistics of one tensor, or one number.
#[derive(Debug, Clone)]
pub(super) struct Recorded {
    label: String,
    dtype: String,
    shape: Vec<usize>,
    non_finite: u64,
    rms: f64,
    mean: f64,
    abs_max: f64,
}

impl Recorded {
    pub(super) fn of(stats: &TensorStatsEvent) -> Recorded {
        Recorded {
            label: stats.label.clone(),
            dtype: stats.dtype.clone(),
            shape: stats.shape.clone(),
            non_finite: stats.non_finite,
            rms: stats.rms,
            mean: stats.mean,
            abs_max: stats.abs_max,
        }
    }

    /// How far two are apart: the largest relative difference, and in words what makes them differ by more than the
    /// tolerance.
    fn differs(&self, other: &Recorded, limits: Limits) -> (f64, Option<String>) {
        if self.shape != other.shape {
            let words = format!("shape {:?} → {:?}", self.shape, other.shape);
            return (f64::INFINITY, Some(words));
        }
        if self.dtype != other.dtype && !limits.any_dtype {
            let words = format!("type {} → {}", self.dtype, other.dtype);
            return (f64::INFINITY, Some(words));
        }
        if self.non_finite != other.non_finite {
            let words = format!(
                "values that are not finite {} → {}",
                self.non_finite, other.non_finite
            );
            return (f64::INFINITY, Some(words));
        }
        // A mean near zero is compared with the size of the values that it is a mean of.
        let size = self.rms.max(other.rms);
        let figures = [
            ("rms", self.rms, other.rms, size),
            ("mean", self.mean, other.mean, size),
            (
                "abs max",
                self.abs_max,
                other.abs_max,
                self.abs_max.max(other.abs_max),
            ),
        ];
        let mut most = 0.0;
        let mut words = None;
        for (name, before, after, scale) in figures {
            let apart = match scale > 0.0 {
                true => (before - after).abs() / scale,
                false => 0.0,
            };
            if apart > limits.tolerance && words.is_none() {
                words = Some(format!(
                    "{name} {} → {}, {} apart",
                    number(before, 7),
                    number(after, 7),
                    share(apart)
                ));
            }
            most = f64::max(most, apart);
        }
        (most, words)
    }
}

fn share(apart: f64) -> String {
    format!("{}%", number(apart * 100.0, 3))
}

/// Where the numbers part.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Parting {
    pub(crate) label: String,
    /// The how-manieth record of the label in its step, from 1, and of all records of the step.
    pub(crate) occurrence: usize,
    pub(crate) place: usize,
    pub(crate) step: u64,
    pub(crate) how: String,
}

/// What was compared, and where it parted.
#[derive(Debug, Default)]
pub(crate) struct Numerics {
    /// Records on both sides.
    pub(crate) compared: usize,
    /// Of those, how many parted.
    pub(crate) parted: usize,
    pub(crate) first: Option<Parting>,
    /// The largest difference that is no parting, with its label.
    pub(crate) most: Option<(f64, String)>,
    /// Labels that one side has and the other has not.
    pub(crate) only: [Vec<String>; 2],
    /// Traces of each side that the other has no partner for.
    pub(crate) alone: [Vec<String>; 2],
}

impl Numerics {
    pub(super) fn of(before: &[Facts], after: &[Facts], limits: Limits) -> Numerics {
        let (pairs, alone) = pairs(before, after);
        let mut numerics = Numerics {
            alone: alone.map(|traces| traces.iter().map(|facts| facts.name.clone()).collect()),
            ..Numerics::default()
        };
        for (before, after) in pairs {
            numerics.pair(before, after, limits);
        }
        for only in &mut numerics.only {
            only.sort();
            only.dedup();
        }
        numerics
    }

    fn pair(&mut self, before: &Facts, after: &Facts, limits: Limits) {
        let mut others: HashMap<&str, Vec<&Recorded>> = HashMap::new();
        for recorded in &after.recorded {
            others.entry(&recorded.label).or_default().push(recorded);
        }
        let mut seen: HashMap<&str, usize> = HashMap::new();
        for (at, recorded) in before.recorded.iter().enumerate() {
            let occurrence = seen.entry(&recorded.label).or_default();
            let other = others
                .get(recorded.label.as_str())
                .and_then(|others| others.get(*occurrence));
            *occurrence += 1;
            let Some(other) = other else {
                self.only[0].push(recorded.label.clone());
                continue;
            };
            self.compared += 1;
            let (apart, how) = recorded.differs(other, limits);
            let Some(how) = how else {
                if self.most.as_ref().is_none_or(|(most, _)| apart > *most) {
                    self.most = Some((apart, recorded.label.clone()));
                }
                continue;
            };
            self.parted += 1;
            self.first.get_or_insert_with(|| Parting {
                label: recorded.label.clone(),
                occurrence: *occurrence,
                place: at + 1,
                step: before.digest.run().capture_step,
                how,
            });
        }
        for (label, others) in others {
            if others.len() > seen.get(label).copied().unwrap_or(0) {
                self.only[1].push(label.to_owned());
            }
        }
    }

    /// What a limit on the numbers says of them.
    pub(super) fn faults(&self, tolerance: f64) -> Vec<String> {
        let mut faults = Vec::new();
        let missing: Vec<&str> = self.only.iter().flatten().map(String::as_str).collect();
        if let Some(first) = &self.first {
            faults.push(format!(
                "the numbers part at {}: {} (allowed is {})",
                first.label,
                first.how,
                share(tolerance)
            ));
        } else if self.compared == 0 {
            let none = "the numbers cannot be compared: no label is on both sides in traces of the same step";
            faults.push(none.to_owned());
        } else if !missing.is_empty() {
            faults.push(format!("only one side has {}", named(&missing)));
        }
        let alone: Vec<&str> = self.alone.iter().flatten().map(String::as_str).collect();
        if !alone.is_empty() {
            faults.push(format!("not compared, {NO_PARTNER}: {}", named(&alone)));
        }
        faults
    }
}

/// What holds of a trace that stands alone.
pub(super) const NO_PARTNER: &str = "for the other side has no trace of the same step";

/// `a, b and 3 more`
pub(super) fn named(names: &[&str]) -> String {
    let first = names
        .iter()
        .take(MOST_NAMED)
        .copied()
        .collect::<Vec<_>>()
        .join(", ");
    match names.len().saturating_sub(MOST_NAMED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

type Pairs<'a> = Vec<(&'a Facts, &'a Facts)>;

/// Traces of the same region, step and rank, in the order of the steps, and those of each side that stand alone; two
/// single traces belong together whatever their steps are.
fn pairs<'a>(before: &'a [Facts], after: &'a [Facts]) -> (Pairs<'a>, [Vec<&'a Facts>; 2]) {
    if let ([before], [after]) = (before, after) {
        return (vec![(before, after)], Default::default());
    }
    let regions = Regions::of([before, after]);
    let when = |facts: &Facts| (facts.digest.run().capture_step, facts.digest.run().rank);
    let key = |facts: &'a Facts| (regions.region(facts), when(facts));
    let mut free: Vec<&Facts> = after.iter().collect();
    let mut alone = Vec::new();
    let mut pairs = Vec::new();
    for facts in before {
        match free.iter().position(|other| key(other) == key(facts)) {
            Some(at) => pairs.push((facts, free.remove(at))),
            None => alone.push(facts),
        }
    }
    pairs.sort_by_key(|(before, _)| when(before));
    (pairs, [alone, free])
}
