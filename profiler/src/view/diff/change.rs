//! Figures of both sides: times and memory.

use std::collections::HashMap;

use super::Facts;
use super::median::{Interval, median, ratio_interval};
use super::regions::{Region, Regions};

/// One figure of both sides.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    /// What it is of, with its region where others have the same.
    pub(crate) name: String,
    pub(crate) entrypoint: String,
    pub(crate) phase: String,
    /// Medians; none where a side has no such figure.
    pub(crate) before: Option<f64>,
    pub(crate) after: Option<f64>,
    /// Of `after / before`, where both sides have traces enough.
    pub(crate) interval: Option<Interval>,
    /// Calls in the first trace of the region on each side; none of what is not called.
    pub(crate) calls: Option<[u64; 2]>,
    /// It is the time of the region.
    pub(crate) measured: bool,
}

impl Change {
    pub(crate) fn ratio(&self) -> Option<f64> {
        let (before, after) = self.before.zip(self.after)?;
        (before > 0.0).then(|| after / before)
    }

    fn difference(&self) -> f64 {
        (self.after.unwrap_or(0.0) - self.before.unwrap_or(0.0)).abs()
    }
}

/// One figure of one trace.
struct Figure {
    name: String,
    measured: bool,
    calls: Option<u64>,
    value: f64,
}

/// The regions' times, then those of the call sites; of either those that changed most first.
pub(super) fn times(sides: [&[Facts]; 2]) -> Vec<Change> {
    let mut changes = changes(sides, times_of);
    changes.sort_by(|a, b| {
        let by_size = b.difference().total_cmp(&a.difference());
        b.measured.cmp(&a.measured).then(by_size)
    });
    changes
}

pub(super) fn memory(sides: [&[Facts]; 2]) -> Vec<Change> {
    changes(sides, |facts| {
        let figures = facts.digest.memory_figures().into_iter();
        let figure = |(name, bytes): (String, u64)| Figure {
            name,
            measured: false,
            calls: None,
            value: bytes as f64,
        };
        figures.map(figure).collect()
    })
}

/// A call site of the region's name is not the region, whose time is that of its measured spans alone.
fn times_of(facts: &Facts) -> Vec<Figure> {
    let mut figures: Vec<Figure> = Vec::new();
    for row in facts.digest.times() {
        let same = |figure: &&mut Figure| {
            figure.measured == row.measured && (row.measured || figure.name == row.name)
        };
        match figures.iter_mut().find(same) {
            Some(figure) => {
                figure.value += row.total_ns as f64;
                figure.calls = figure.calls.map(|calls| calls + row.calls);
            }
            None => figures.push(Figure {
                name: row.name.to_owned(),
                measured: row.measured,
                calls: Some(row.calls),
                value: row.total_ns as f64,
            }),
        }
    }
    for figure in figures.iter_mut().filter(|figure| figure.measured) {
        figure.value = facts.digest.measured_ns() as f64;
    }
    figures
}

/// Of one figure: what each side calls it, its values, and its calls in the first trace.
#[derive(Default)]
struct Sides<'a> {
    region: Region<'a>,
    measured: bool,
    names: [Option<String>; 2],
    values: [Vec<f64>; 2],
    calls: [Option<u64>; 2],
}

fn changes(sides: [&[Facts]; 2], figures: fn(&Facts) -> Vec<Figure>) -> Vec<Change> {
    let regions = Regions::of(sides);
    let mut all: Vec<Sides<'_>> = Vec::new();
    let mut places: HashMap<(Region<'_>, Option<String>), usize> = HashMap::new();
    for (side, traces) in sides.into_iter().enumerate() {
        for facts in traces {
            let region = regions.region(facts);
            for figure in figures(facts) {
                // A region has one time, whatever it is called.
                let key = (region, (!figure.measured).then(|| figure.name.clone()));
                let place = *places.entry(key).or_insert_with(|| {
                    all.push(Sides {
                        region,
                        measured: figure.measured,
                        ..Sides::default()
                    });
                    all.len() - 1
                });
                let Some(of) = all.get_mut(place) else {
                    continue;
                };
                if let Some(values) = of.values.get_mut(side) {
                    values.push(figure.value);
                }
                if let (Some(name @ None), Some(calls)) =
                    (of.names.get_mut(side), of.calls.get_mut(side))
                {
                    (*name, *calls) = (Some(figure.name), figure.calls);
                }
            }
        }
    }
    let mut changes: Vec<Change> = all.into_iter().map(change).collect();
    tell_apart(&mut changes);
    changes
}

fn change(of: Sides<'_>) -> Change {
    let [before, after] = &of.values;
    let (entrypoint, phase) = of.region;
    Change {
        name: match of.names {
            [Some(before), Some(after)] if before != after => format!("{before} → {after}"),
            [before, after] => before.or(after).unwrap_or_default(),
        },
        entrypoint: entrypoint.to_owned(),
        phase: phase.to_owned(),
        before: median(before),
        after: median(after),
        interval: ratio_interval(before, after),
        calls: match of.calls {
            [None, None] => None,
            calls => Some(calls.map(|calls| calls.unwrap_or(0))),
        },
        measured: of.measured,
    }
}

/// Figures of one name in several regions get the region's name, or its phase where that is all that differs.
fn tell_apart(changes: &mut [Change]) {
    let key = |change: &Change| (change.name.clone(), change.measured);
    let mut regions: HashMap<(String, bool), Vec<(String, String)>> = HashMap::new();
    for change in changes.iter() {
        let region = (change.entrypoint.clone(), change.phase.clone());
        regions.entry(key(change)).or_default().push(region);
    }
    for change in changes {
        let Some([first, others @ ..]) = regions.get(&key(change)).map(Vec::as_slice) else {
            continue;
        };
        if others.is_empty() {
            continue;
        }
        let region = match others.iter().all(|(entrypoint, _)| *entrypoint == first.0) {
            true => &change.phase,
            false => &change.entrypoint,
        };
        change.name = format!("{} (in {region})", change.name);
    }
}
