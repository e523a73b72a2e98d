//! The difference as a person reads it.

use super::numerics::{NO_PARTNER, named};
use super::{Change, Diff};
use crate::view::summary::{Page, Tone};
use crate::view::text::counted;
use crate::view::text::{bytes, count, duration, number, printable};

/// Rows of a table that are shown.
const MOST_SHOWN: usize = 20;

/// The page.
pub(crate) fn render(diff: &Diff, width: usize, colour: bool) -> String {
    let mut page = Page::new(width, colour);
    let [before, after] = diff.names.each_ref().map(|names| match names.as_slice() {
        [only] => printable(only, 160),
        names => format!("{} traces", count(names.len() as u64)),
    });
    let title = format!("{}: {before} → {after}", printable(&diff.entrypoint, 60));
    page.sentence(Tone::Heading, 0, &title);
    if !diff.faults.is_empty() {
        page.heading("limits passed");
        for fault in &diff.faults {
            page.sentence(Tone::Problem, 2, fault);
        }
    }
    if !diff.cautions.is_empty() {
        page.heading("cautions");
    }
    for caution in &diff.cautions {
        page.sentence(Tone::Warning, 2, caution);
    }
    numerics(&mut page, diff);
    table(&mut page, "time by call site", &diff.times, |value| {
        duration(value as u64)
    });
    table(&mut page, "memory", &diff.memory, |value| {
        bytes(value as u64)
    });
    page.finish()
}

fn numerics(page: &mut Page, diff: &Diff) {
    let numerics = &diff.numerics;
    page.heading("numbers");
    let labels = |number: usize| counted(number as u64, "record", "records");
    match &numerics.first {
        Some(first) => {
            let again = match first.occurrence {
                1 => String::new(),
                occurrence => format!(" (record {occurrence} of it)"),
            };
            let text = format!(
                "part first at {}{again}, record {} of step {}: {}",
                first.label, first.place, first.step, first.how
            );
            page.sentence(Tone::Problem, 2, &text);
            let verb = if numerics.parted == 1 {
                "parts"
            } else {
                "part"
            };
            let text = format!(
                "{} of {} {verb}",
                count(numerics.parted as u64),
                labels(numerics.compared)
            );
            page.sentence(Tone::Plain, 2, &text);
        }
        None if numerics.compared == 0 => {
            page.sentence(Tone::Plain, 2, "nothing was recorded on both sides")
        }
        None => {
            let verb = if numerics.compared == 1 {
                "agrees"
            } else {
                "agree"
            };
            let mut text = format!("{} {verb}", labels(numerics.compared));
            if let Some((most, label)) = numerics.most.as_ref().filter(|(most, _)| *most > 0.0) {
                text += &format!("; {label} is furthest, {}% apart", number(most * 100.0, 3));
            }
            page.sentence(Tone::Plain, 2, &text);
        }
    }
    for (only, side) in numerics.only.iter().zip(["before", "after"]) {
        if !only.is_empty() {
            let names: Vec<&str> = only.iter().map(String::as_str).collect();
            page.sentence(Tone::Warning, 2, &format!("only {side}: {}", named(&names)));
        }
    }
    let alone: Vec<&str> = numerics
        .alone
        .iter()
        .flatten()
        .map(String::as_str)
        .collect();
    if !alone.is_empty() {
        let text = format!("not compared, {NO_PARTNER}: {}", named(&alone));
        page.sentence(Tone::Warning, 2, &text);
    }
}

fn table(page: &mut Page, title: &str, changes: &[Change], show: fn(f64) -> String) {
    if changes.is_empty() {
        return;
    }
    let intervals = changes.iter().any(|change| change.interval.is_some());
    let cell = |value: Option<f64>| value.map_or("-".to_owned(), show);
    let percent = |ratio: f64| format!("{:+.1}%", (ratio - 1.0) * 100.0);
    let rows: Vec<Vec<String>> = changes
        .iter()
        .take(MOST_SHOWN)
        .map(|change| {
            let name = match change.calls {
                Some([before, after]) if before != after && before.min(after) > 0 => {
                    let (before, after) = (count(before), count(after));
                    format!("{} ({before} → {after} calls)", change.name)
                }
                _ => change.name.clone(),
            };
            let ratio = change.ratio().map_or("-".to_owned(), percent);
            let mut cells = vec![
                printable(&name, 160),
                cell(change.before),
                cell(change.after),
                ratio,
            ];
            if intervals {
                cells.push(change.interval.map_or(String::new(), |interval| {
                    format!("{} … {}", percent(interval.low), percent(interval.high))
                }));
            }
            cells
        })
        .collect();
    let mut heading = vec![title, "before", "after", "change"];
    if intervals {
        heading.push("95% interval");
    }
    page.table(&heading, &rows);
    if changes.len() > MOST_SHOWN {
        let text = format!("… and {} more", count((changes.len() - MOST_SHOWN) as u64));
        page.sentence(Tone::Plain, 2, &text);
    }
}
