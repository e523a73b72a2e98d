//! The summary for programs: `candle-profiler/summary/1`.

use serde_json::{Value, json};

use super::bounded::Names;
use super::digest::Digest;
use super::problems::problems;
use super::sites::{Site, StepTag};

/// Everything that the text shows, in full, with times in nanoseconds. What is not known is left out or `null`; so is a
/// number that JSON has no word for.
pub(crate) fn summary(trace: &str, digest: &Digest) -> Value {
    let meta = &digest.meta;
    let sites = &digest.sites;
    let whole = sites.measured_ns;
    let rate = |ns: u64| {
        let items = meta.items? as f64;
        (ns > 0 && digest.failed.is_none()).then(|| items * 1e9 / ns as f64)
    };
    let between = meta.since_previous_ns.unwrap_or(0);
    let mut parts = serde_json::Map::new();
    for ((_, name), nanoseconds) in StepTag::ALL.iter().zip(sites.part_ns()) {
        parts.insert((*name).to_owned(), json!(nanoseconds));
    }
    parts.insert("rest".to_owned(), json!(sites.rest_ns()));
    json!({
        "schema": "candle-profiler/summary/1",
        "trace": trace,
        "entrypoint": meta.entrypoint,
        "phase": meta.phase,
        "capture_step": meta.capture_step,
        "device": meta.device,
        "rank": meta.rank,
        "outcome": if digest.failed.is_some() { "failed" } else { "complete" },
        "reason": digest.failed,
        "problems": problems(digest),
        "measured_ns": whole,
        "overhead_ns": sites.measured_overhead_ns,
        "since_previous_ns": meta.since_previous_ns,
        "parts_ns": parts,
        "items": meta.items,
        "items_per_second": rate(whole),
        "items_per_second_with_between": rate(whole.saturating_add(between)),
        "memory": memory(digest),
        "scalars": scalars(digest),
        "sites": sites.rows.iter().filter(|site| site.calls > 0).map(|row| site(row, whole)).collect::<Vec<_>>(),
        "other_calls": sites.others.calls,
        "tensors": tensors(digest),
        "gradients": gradients(digest),
        "graph": digest.graph.map(|graph| json!({
            "tensors": graph.nodes,
            "bytes": graph.bytes,
            "of_earlier_steps": graph.carried,
            "gradient_bytes_of_constants": graph.constant_bytes,
        })),
        "unused_graph": digest.unused_graph.map(|(tensors, bytes)| json!({"tensors": tensors, "bytes": bytes})),
    })
}

fn site(site: &Site, whole: u64) -> Value {
    let step = StepTag::ALL.iter().find(|(tag, _)| site.step == Some(*tag));
    json!({
        "name": site.name,
        "file": site.place.as_ref().map(|(file, _)| file),
        "line": site.place.as_ref().map(|(_, line)| line),
        "step": step.map(|(_, name)| name),
        "measured": site.measured,
        "calls": site.calls,
        "total_ns": site.total_ns,
        "self_ns": site.self_ns,
        "share": (whole > 0).then(|| site.total_ns as f64 / whole as f64),
        "mean_ns": site.durations.mean(),
        "p50_ns": site.durations.percentile(0.5),
        "p95_ns": site.durations.percentile(0.95),
        "memory_net_bytes": site.memory.map(|taken| taken.net),
        "memory_peak_bytes": site.memory.map(|taken| taken.peak),
    })
}

fn memory(digest: &Digest) -> Value {
    let memory = &digest.memory;
    let devices: Vec<Value> = memory
        .devices
        .iter()
        .map(|(device, row)| json!({"device": device, "peak_bytes": row.most, "growth_bytes": row.growth()}))
        .collect();
    json!({
        "step_net_bytes": memory.step.map(|(net, _)| net),
        "step_peak_bytes": memory.step.map(|(_, peak)| peak),
        "recorded_storages_peak_bytes": memory.storages,
        "devices": devices,
        "growth": memory.growth,
    })
}

fn scalars(digest: &Digest) -> Vec<Value> {
    let row = |(label, row): (&str, &super::scalars::ScalarRow)| {
        json!({
            "label": label,
            "values": row.values,
            "first": row.first,
            "last": row.last,
            "non_finite": row.non_finite,
        })
    };
    digest.scalars.iter().map(row).collect()
}

fn tensors(digest: &Digest) -> Vec<Value> {
    let row = |(label, row): (&str, &super::tensors::TensorRow)| {
        json!({
            "label": label,
            "events": row.events,
            "type": row.what,
            "rms": row.rms,
            "mean": row.mean,
            "abs_max": row.abs_max,
            "non_finite": row.non_finite,
        })
    };
    digest.tensors.rows.iter().map(row).collect()
}

fn gradients(digest: &Digest) -> Vec<Value> {
    let names = |names: &Names| json!({"count": names.count(), "first": names.first()});
    digest
        .gradients
        .iter()
        .map(|(root, row)| {
            json!({
                "root": root,
                "variables": row.all(),
                "present": row.present,
                "missing": names(&row.missing),
                "untrained": names(&row.untrained),
                "zero": names(&row.zero),
                "non_finite": names(&row.non_finite),
                "global_norm": (row.non_finite.count() == 0).then_some(row.norm),
            })
        })
        .collect()
}
