//! Where the time went.

use std::collections::HashMap;

use super::digest::Digest;
use super::page::{Page, Tone};
use super::sites::{Site, StepTag};
use crate::view::text::{count, duration, percent};

/// Rows shown; the table is sorted, so what matters is among them.
const MOST_SHOWN: usize = 20;

pub(super) fn times(page: &mut Page, digest: &Digest) {
    let sites = &digest.sites;
    let mut rows: Vec<&Site> = sites.rows.iter().filter(|site| site.calls > 0).collect();
    if rows.is_empty() {
        return;
    }
    // The sort is stable: equal rows stay in the order in which they first came.
    rows.sort_by_key(|site| (!site.measured, std::cmp::Reverse(site.total_ns)));
    let mut named: HashMap<&str, u32> = HashMap::new();
    for site in &rows {
        *named.entry(&site.name).or_default() += 1;
    }
    let shown = &rows[..rows.len().min(MOST_SHOWN)];
    let mut table: Vec<Vec<String>> = shown
        .iter()
        .map(|site| {
            let name = match &site.place {
                Some((file, line)) if named.get(site.name.as_str()) > Some(&1) => {
                    format!("{} ({}:{line})", site.name, short(file))
                }
                _ => site.name.clone(),
            };
            row(name, site, sites.measured_ns)
        })
        .collect();
    let others = others(&rows[shown.len()..], &sites.others);
    if others.calls > 0 {
        table.push(row(others.name.clone(), &others, sites.measured_ns));
    }
    page.table(
        &["time by call site", "calls", "total", "self", "share"],
        &table,
    );
    steps(page, digest);
}

/// All rows that are not shown, as one. Their totals may lie within one another, so only the sum
/// of their own times means anything.
fn others(hidden: &[&Site], refused: &Site) -> Site {
    let mut others = refused.clone();
    others.name = match (hidden.len(), refused.calls) {
        (hidden, 0) => format!("({} others)", count(hidden as u64)),
        _ => "(others)".to_owned(),
    };
    for site in hidden {
        others.calls += site.calls;
        others.self_ns = others.self_ns.saturating_add(site.self_ns);
    }
    others.total_ns = others.self_ns;
    others
}

fn row(name: String, site: &Site, measured_ns: u64) -> Vec<String> {
    vec![
        crate::view::text::printable(&name, 160),
        count(site.calls),
        duration(site.total_ns),
        duration(site.self_ns),
        percent(site.total_ns, measured_ns),
    ]
}

/// The last two parts of a path are enough to find a file.
fn short(file: &str) -> &str {
    let parts = file.rmatch_indices(['/', '\\']);
    parts.map(|(at, _)| &file[at + 1..]).nth(1).unwrap_or(file)
}

/// The parts of the step, the time between steps, the rate.
fn steps(page: &mut Page, digest: &Digest) {
    let sites = &digest.sites;
    let whole = sites.measured_ns;
    let part = |name: &str, ns: u64| vec![name.to_owned(), duration(ns), percent(ns, whole)];
    let mut parts: Vec<Vec<String>> = StepTag::ALL
        .iter()
        .zip(sites.step_ns)
        .filter(|(_, nanoseconds)| *nanoseconds > 0)
        .map(|((_, name), nanoseconds)| part(name, nanoseconds))
        .collect();
    let tagged = sites
        .step_ns
        .iter()
        .fold(0, |sum: u64, ns| sum.saturating_add(*ns));
    // Parts on several threads at once may take more than the whole.
    if tagged > 0 && tagged <= whole {
        parts.push(part("rest", whole - tagged));
    }
    if let Some(between) = digest.meta.since_previous_ns {
        let name = match digest.meta.phase.as_str() {
            "infer" => "between calls",
            _ => "between steps",
        };
        parts.push(vec![name.to_owned(), duration(between)]);
    }
    if !parts.is_empty() {
        page.table(&["time by part", "total", "share"], &parts);
    }
    let own = sites.measured_overhead_ns;
    let rate = rate(digest);
    if rate.is_some() || own > 0 {
        page.space();
    }
    if let Some(rate) = rate {
        page.sentence(Tone::Plain, 0, &rate);
    }
    if own > 0 {
        let text = format!("{} of the profiler's own work is taken off", duration(own));
        page.sentence(Tone::Plain, 0, &text);
    }
}

/// `64 items, 6,400 a second (5,333 with the time between)`
fn rate(digest: &Digest) -> Option<String> {
    let items = digest.meta.items?;
    let whole = digest.sites.measured_ns;
    let rate = |ns: u64| count((items as f64 * 1e9 / ns as f64).round() as u64);
    if whole == 0 {
        return None;
    }
    let text = format!("{} items, {} a second", count(items), rate(whole));
    Some(match digest.meta.since_previous_ns {
        None | Some(0) => text,
        Some(between) => {
            let rate = rate(whole.saturating_add(between));
            format!("{text} ({rate} with the time between)")
        }
    })
}
