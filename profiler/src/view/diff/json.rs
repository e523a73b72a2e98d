//! The difference for programs: `candle-profiler/diff/1`.

use serde_json::{Value, json};

use super::{Change, Diff};

/// Everything that the text shows, in full; times in nanoseconds, memory in bytes.
pub(crate) fn as_json(diff: &Diff) -> Value {
    let [before, after] = &diff.names;
    let numerics = &diff.numerics;
    let first = numerics.first.as_ref().map(|first| {
        json!({
            "label": first.label,
            "occurrence": first.occurrence,
            "record": first.place,
            "capture_step": first.step,
            "how": first.how,
        })
    });
    let [only_before, only_after] = &numerics.only;
    let [alone_before, alone_after] = &numerics.alone;
    json!({
        "schema": "candle-profiler/diff/1",
        "before": before,
        "after": after,
        "entrypoint": diff.entrypoint,
        "limits_passed": diff.faults,
        "cautions": diff.cautions,
        "times": diff.times.iter().map(change).collect::<Vec<_>>(),
        "memory": diff.memory.iter().map(change).collect::<Vec<_>>(),
        "numerics": {
            "compared": numerics.compared,
            "parted": numerics.parted,
            "first": first,
            "largest_within": numerics.most.as_ref().map(|(apart, label)| json!({"label": label, "apart": apart})),
            "only_before": only_before,
            "only_after": only_after,
            "not_compared_before": alone_before,
            "not_compared_after": alone_after,
        },
    })
}

fn change(change: &Change) -> Value {
    json!({
        "name": change.name,
        "entrypoint": change.entrypoint,
        "phase": change.phase,
        "measured": change.measured,
        "before": change.before,
        "after": change.after,
        "ratio": change.ratio(),
        "interval": change.interval.map(|interval| [interval.low, interval.high]),
        "calls": change.calls,
    })
}
