//! Several steps of one program: how its numbers went.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::digest::Digest;
use super::page::{Page, Tone};
use super::problems::problems;
use crate::view::diff::median;
use crate::view::text::counted;
use crate::view::text::{count, duration, number, printable, sparkline};

/// Rows of each part that are shown.
const MOST_SHOWN: usize = 20;
/// Columns of a trend.
const TREND: usize = 16;

/// One step, as far as it is compared with others.
#[derive(Debug)]
pub(crate) struct Step {
    trace: String,
    entrypoint: String,
    phase: String,
    device: String,
    rank: Option<u64>,
    step: u64,
    measured_ns: u64,
    failed: bool,
    problems: Vec<String>,
    values: Vec<(What, f64)>,
}

/// What a number is of.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct What {
    kind: Kind,
    label: String,
    /// It is the time of the measured region, and not that of a call site of its name.
    measured: bool,
}

impl What {
    fn of(kind: Kind, label: impl Into<String>) -> What {
        What {
            kind,
            label: label.into(),
            measured: false,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Scalar,
    Time,
    Tensor,
}

impl Kind {
    const ALL: [(Kind, &'static str, &'static str); 3] = [
        (Kind::Scalar, "scalars", "scalar"),
        (Kind::Time, "time by call site", "time_ns"),
        (Kind::Tensor, "rms of tensors", "rms"),
    ];

    fn show(self, value: f64) -> String {
        match self {
            Kind::Scalar | Kind::Tensor => number(value, 4),
            Kind::Time => duration(value as u64),
        }
    }
}

impl Step {
    pub(crate) fn of(trace: &str, digest: &Digest) -> Step {
        let meta = &digest.meta;
        let mut values = Vec::new();
        for (label, row) in digest.own_scalars() {
            values.push((What::of(Kind::Scalar, label), row.last));
        }
        for (root, row) in digest.gradients.iter() {
            // As of a number that comes more than once, the last counts.
            let name = match row.passes() {
                0 | 1 => digest.gradients.norm_name(root),
                _ => format!("{} (last pass)", digest.gradients.norm_name(root)),
            };
            let norm = row.last_norm().unwrap_or(0.0);
            values.push((What::of(Kind::Scalar, name), norm));
        }
        let mut sites: Vec<_> = digest
            .sites
            .rows
            .iter()
            .filter(|site| site.calls > 0)
            .collect();
        sites.sort_by_key(|site| (!site.measured, std::cmp::Reverse(site.total_ns)));
        for site in sites {
            let what = What {
                measured: site.measured,
                ..What::of(Kind::Time, &*site.name)
            };
            values.push((what, site.total_ns as f64));
        }
        for (label, row) in digest.tensors.rows.iter() {
            values.push((What::of(Kind::Tensor, label), row.rms));
        }
        Step {
            trace: trace.to_owned(),
            entrypoint: meta.entrypoint.clone(),
            phase: meta.phase.clone(),
            device: meta.device.clone(),
            rank: meta.rank,
            step: meta.capture_step,
            measured_ns: digest.sites.measured_ns,
            failed: digest.failed.is_some(),
            problems: problems(digest),
            values,
        }
    }

    fn kin(&self) -> (&str, &str, &str, Option<u64>) {
        (&self.entrypoint, &self.phase, &self.device, self.rank)
    }
}

/// Steps of the same region, device and rank.
#[derive(Debug)]
struct Group<'a> {
    steps: Vec<&'a Step>,
    /// What each row is of, and a value for each step, NaN where there is none.
    rows: Vec<(&'a What, Vec<f64>)>,
}

/// In the order in which their regions first came, and in each in the order of the steps.
fn groups(steps: &[Step]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for step in steps {
        let kin = |group: &&mut Group<'_>| {
            group
                .steps
                .first()
                .is_some_and(|first| first.kin() == step.kin())
        };
        match groups.iter_mut().find(kin) {
            Some(group) => group.steps.push(step),
            None => groups.push(Group {
                steps: vec![step],
                rows: Vec::new(),
            }),
        }
    }
    for group in &mut groups {
        group.steps.sort_by_key(|step| step.step);
        let mut places = HashMap::new();
        for (at, step) in group.steps.iter().enumerate() {
            for (what, value) in &step.values {
                let place = *places.entry(what).or_insert_with(|| {
                    group.rows.push((what, vec![f64::NAN; group.steps.len()]));
                    group.rows.len() - 1
                });
                let cell = group
                    .rows
                    .get_mut(place)
                    .and_then(|(_, values)| values.get_mut(at));
                if let Some(cell) = cell {
                    // Of two call sites with one name, the sum.
                    *cell = if cell.is_nan() { *value } else { *cell + value };
                }
            }
        }
    }
    groups
}

/// The page of several traces.
pub(crate) fn render(steps: &[Step], width: usize, colour: bool) -> String {
    let mut page = Page::new(width, colour);
    for (at, group) in groups(steps).iter().enumerate() {
        if at > 0 {
            page.space();
        }
        page.sentence(Tone::Heading, 0, &title(group));
        let troubled: Vec<_> = group
            .steps
            .iter()
            .filter(|step| !step.problems.is_empty())
            .collect();
        if !troubled.is_empty() {
            page.heading("problems");
        }
        for step in troubled.iter().take(MOST_SHOWN) {
            let more = match step.problems.len() {
                0 | 1 => String::new(),
                problems => format!(" (and {} more)", count(problems as u64 - 1)),
            };
            let first = step.problems.first().map_or("", String::as_str);
            page.sentence(
                Tone::Problem,
                2,
                &format!("step {}: {first}{more}", step.step),
            );
        }
        if troubled.len() > MOST_SHOWN {
            let more = (troubled.len() - MOST_SHOWN) as u64;
            let text = format!("… and {} more", counted(more, "step", "steps"));
            page.sentence(Tone::Problem, 2, &text);
        }
        for (kind, title, _) in Kind::ALL {
            table(&mut page, group, kind, title);
        }
    }
    page.finish()
}

/// `train_step: 5 train steps (2 … 100) on cpu, median 10.2 ms`
fn title(group: &Group<'_>) -> String {
    let Some((first, last)) = group.steps.first().zip(group.steps.last()) else {
        return String::new();
    };
    // A step that failed was not there to its end.
    let whole = group.steps.iter().filter(|step| !step.failed);
    let times: Vec<f64> = whole.map(|step| step.measured_ns as f64).collect();
    let noun = match (first.phase.as_str(), group.steps.len()) {
        ("infer", 1) => "infer call",
        ("infer", _) => "infer calls",
        (_, 1) => "train step",
        _ => "train steps",
    };
    let numbers = match group.steps.len() {
        1 => first.step.to_string(),
        _ => format!("{} … {}", first.step, last.step),
    };
    let failed = group.steps.iter().filter(|step| step.failed).count();
    let mut title = format!(
        "{}: {} {noun} ({numbers}) on {}",
        printable(&first.entrypoint, 60),
        count(group.steps.len() as u64),
        first.device,
    );
    if let Some(median) = median(&times) {
        title += &format!(", median {}", duration(median.round() as u64));
    }
    if let Some(rank) = first.rank {
        title += &format!(", rank {rank}");
    }
    if failed > 0 {
        title += &format!(", {} failed", count(failed as u64));
    }
    title
}

fn table(page: &mut Page, group: &Group<'_>, kind: Kind, title: &str) {
    let of_kind = |row: &&(&What, Vec<f64>)| row.0.kind == kind;
    let rows: Vec<_> = group.rows.iter().filter(of_kind).collect();
    if rows.is_empty() {
        return;
    }
    let cells: Vec<Vec<String>> = rows
        .iter()
        .take(MOST_SHOWN)
        .map(|(what, values)| {
            let finite = || values.iter().copied().filter(|value| value.is_finite());
            let show = |value: Option<f64>| value.map_or("-".to_owned(), |value| kind.show(value));
            let ends = [values.first().copied(), values.last().copied()];
            let mut cells = vec![printable(&what.label, 160), sparkline(values, TREND)];
            cells.extend(ends.map(|value| show(value.filter(|value| !value.is_nan()))));
            cells.push(show(finite().reduce(f64::min)));
            cells.push(show(finite().reduce(f64::max)));
            cells
        })
        .collect();
    page.table(&[title, "trend", "first", "last", "least", "most"], &cells);
    if rows.len() > MOST_SHOWN {
        let text = format!("… and {} more", count((rows.len() - MOST_SHOWN) as u64));
        page.sentence(Tone::Plain, 2, &text);
    }
}

/// `candle-profiler/trends/1`
pub(crate) fn as_json(steps: &[Step]) -> Value {
    let groups: Vec<Value> = groups(steps)
        .iter()
        .map(|group| {
            let first = group.steps.first();
            let steps: Vec<Value> = group
                .steps
                .iter()
                .map(|step| {
                    json!({
                        "trace": step.trace,
                        "capture_step": step.step,
                        "measured_ns": step.measured_ns,
                        "outcome": if step.failed { "failed" } else { "complete" },
                        "problems": step.problems,
                    })
                })
                .collect();
            let rows: Vec<Value> = group
                .rows
                .iter()
                .map(|(what, values)| {
                    let kind = Kind::ALL.iter().find(|(of, ..)| *of == what.kind);
                    json!({
                        "kind": kind.map(|(.., name)| name),
                        "label": what.label,
                        "measured": what.measured,
                        "values": values,
                    })
                })
                .collect();
            json!({
                "entrypoint": first.map(|step| &step.entrypoint),
                "phase": first.map(|step| &step.phase),
                "device": first.map(|step| &step.device),
                "rank": first.and_then(|step| step.rank),
                "steps": steps,
                "rows": rows,
            })
        })
        .collect();
    json!({"schema": "candle-profiler/trends/1", "groups": groups})
}
