//! Time by part of the step, and the rate.

use super::digest::Digest;
use super::page::{Page, Tone};
use super::sites::StepTag;
use crate::view::text::counted;
use crate::view::text::{count, duration, percent};

/// The parts of the step, the time between steps, the rate.
pub(super) fn steps(page: &mut Page, digest: &Digest) {
    let sites = &digest.sites;
    let whole = sites.measured_ns;
    let part = |name: &str, ns: u64| vec![name.to_owned(), duration(ns), percent(ns, whole)];
    let mut parts = Vec::new();
    if let Some(between) = digest.meta.since_previous_ns {
        let name = match digest.meta.phase.as_str() {
            "infer" => "between calls",
            _ => "between steps",
        };
        parts.push(vec![name.to_owned(), duration(between)]);
    }
    let tags = StepTag::ALL.iter().zip(sites.part_ns());
    parts.extend(
        tags.filter(|(_, nanoseconds)| *nanoseconds > 0)
            .map(|((_, name), nanoseconds)| part(name, nanoseconds)),
    );
    parts.extend(sites.rest_ns().map(|rest| part("rest", rest)));
    if !parts.is_empty() {
        page.table(&["time by part", "total", "share"], &parts);
        if !digest.left_out.is_empty() {
            let text =
                "spans that were left out to keep within the budget count to what is around them";
            page.sentence(Tone::Warning, 2, text);
        }
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
    // What failed did not go through all of them.
    if whole == 0 || digest.failed.is_some() {
        return None;
    }
    let items_text = counted(items, "item", "items");
    let text = format!("{items_text}, {} a second", rate(whole));
    Some(match digest.meta.since_previous_ns {
        None | Some(0) => text,
        Some(between) => {
            let rate = rate(whole.saturating_add(between));
            format!("{text} ({rate} with the time between)")
        }
    })
}
