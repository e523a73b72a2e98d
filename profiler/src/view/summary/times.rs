//! Time by call site.

use std::collections::HashMap;

use super::digest::Digest;
use super::page::Page;
use super::sites::Site;
use crate::view::text::counted;
use crate::view::text::{count, duration, percent, printable};

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
        let mut cells = row(others.name.clone(), &others, sites.measured_ns);
        // Calls of many sites have no mean that says anything.
        cells.truncate(5);
        table.push(cells);
    }
    let mut heading = vec!["time by call site", "calls", "total", "self", "share"];
    if rows.iter().any(|site| site.calls > 1) {
        heading.extend(["mean", "p50", "p95"]);
    }
    page.table(&heading, &table);
}

/// All rows that are not shown, as one. Their totals may lie within one another, so only the sum
/// of their own times means anything.
fn others(hidden: &[&Site], refused: &Site) -> Site {
    let mut others = refused.clone();
    others.name = match (hidden.len(), refused.calls) {
        (hidden, 0) => format!("({})", counted(hidden as u64, "other", "others")),
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
        printable(&name, 160),
        count(site.calls),
        duration(site.total_ns),
        duration(site.self_ns),
        percent(site.total_ns, measured_ns),
        duration(site.durations.mean()),
        duration(site.durations.percentile(0.5)),
        duration(site.durations.percentile(0.95)),
    ]
}

/// The last two parts of a path are enough to find a file.
fn short(file: &str) -> &str {
    let parts = file.rmatch_indices(['/', '\\']);
    parts.map(|(at, _)| &file[at + 1..]).nth(1).unwrap_or(file)
}
