//! `merge`.

use serde_json::json;
use tests::judge;

use super::sample::{Lines, captured};
use super::{get, put, refused, well};

fn rank(number: u64, timestamp: &str) -> Lines {
    Lines::new(3, 1_000, json!({"rank": number.to_string(), "world_size": "2", "data": "digits", "items": "8"}), timestamp)
        .measured("train_step", (100 + number, 900), json!({}))
        .span("s3", Some("s2"), "forward", (200, 500), json!({"step": "forward"}), json!({}))
        .span("s4", Some("s2"), "worker", (250, 800), json!({"thread": 1, "thread_name": "pool"}), json!({}))
        .stats("s3", "loss", 1.0)
        .line(&json!({
            "kind": "op", "span_id": "s3", "op_name": "matmul", "inputs": ["t1"], "output": "t2", "shape": [2],
            "dtype": "f32", "device": "cpu", "duration_ns": 10, "timestamp_ns": 300, "input_dense_bytes": 8,
        }))
        .line(&json!({"kind": "edge", "edge_kind": "data", "from_tensor": "t1", "to_tensor": "t2"}))
        .line(&json!({
            "kind": "memory", "timestamp_ns": 310, "storage_id": "a", "tensor_id": "t2", "span_id": "s3",
            "device": "cpu", "bytes": 8, "action": "alloc", "shape": [2], "dtype": "f32", "category": "activation",
        }))
        .line(&json!({
            "kind": "gradient", "event_id": "gradient-1", "root": "loss", "key": "w", "state": "present", "norm": 1.0,
        }))
}

#[test]
fn ranks_become_one_valid_trace_at_the_times_of_their_clocks() {
    let folder = tests::folder();
    let path = folder.path();
    put(path, "r0.jsonl", &rank(0, "2026-11-29T21:30:12.000Z").end());
    put(path, "r1.jsonl", &rank(1, "2026-11-29T21:30:12.002Z").end());
    assert_eq!(
        well(path, &["merge", "r1.jsonl", "r0.jsonl", "-o", "all.jsonl"]),
        ""
    );
    let merged = get(path, "all.jsonl");
    let verdict = judge(&merged);
    assert!(verdict.is_complete(), "{verdict:?}");
    let lines: Vec<serde_json::Value> = merged
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(
        lines[0]["tags"],
        json!({"data": "digits", "items": "16", "ranks": "1,0", "world_size": "2"})
    );
    assert_eq!(lines[0]["timestamp"], "2026-11-29T21:30:12.000Z");
    let start = |name: &str| {
        let found = lines
            .iter()
            .find(|line| line["kind"] == "span_start" && line["name"] == name);
        found.unwrap_or_else(|| panic!("{name} in {merged}"))["start_ns"].as_u64()
    };
    assert_eq!(
        (start("rank 0"), start("rank 1")),
        (Some(0), Some(2_000_000))
    );
    let measured: Vec<_> = lines
        .iter()
        .filter(|line| line["measured"] == true)
        .collect();
    assert_eq!((measured.len(), &measured[0]["start_ns"]), (1, &json!(100)));
    let end = lines
        .iter()
        .find(|line| line["kind"] == "span_end" && line["id"] == measured[0]["id"]);
    assert_eq!(end.expect("its end")["duration_ns"], 2_000_900 - 100);
    let text = well(path, &["summary", "all.jsonl"]);
    assert!(
        text.contains("rank 0/loss") && text.contains("gradient norm of rank 1/loss"),
        "{text}"
    );
    // The region of all, and below it as another row the calls of the ranks.
    let calls: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("  train_step "))
        .filter_map(|line| line.split_whitespace().nth(1))
        .collect();
    assert_eq!(calls, ["1", "2"], "{text}");
    // Whoever reads line by line meets parents before their children.
    let mut started = std::collections::HashSet::new();
    for span in lines.iter().filter(|line| line["kind"] == "span_start") {
        let parent = span["parent_id"].as_str();
        assert!(
            parent.is_none_or(|parent| started.contains(parent)),
            "{span}"
        );
        started.insert(span["id"].as_str().expect("an id"));
    }

    let text = well(
        path,
        &["merge", "r0.jsonl", "r1.jsonl", "--align", "measured"],
    );
    assert!(judge(&text).is_complete());
    assert!(
        text.contains("\"name\":\"rank 0\",\"start_ns\":1,"),
        "{text}"
    );
}

#[test]
fn a_failed_rank_makes_the_whole_a_failed_one() {
    let folder = tests::folder();
    let path = folder.path();
    put(path, "r0.jsonl", &rank(0, "2026-11-29T21:30:12.000Z").end());
    put(
        path,
        "r1.jsonl",
        &rank(1, "2026-11-29T21:30:12.000Z")
            .failed("out of memory")
            .end(),
    );
    let text = well(path, &["merge", "r0.jsonl", "r1.jsonl"]);
    let verdict = judge(&text);
    assert!(verdict.is_valid() && !verdict.is_complete(), "{verdict:?}");
    assert!(
        text.contains("\"reason\":\"rank 1: out of memory\""),
        "{text}"
    );
}

#[test]
fn what_are_no_ranks_of_one_step_is_refused() {
    let folder = tests::folder();
    let path = folder.path();
    put(path, "r0.jsonl", &rank(0, "2026-11-29T21:30:12.000Z").end());
    assert_eq!(
        refused(path, &["merge", "r0.jsonl"]),
        "candle-profile: merge takes the traces of two ranks or more"
    );
    assert_eq!(
        refused(path, &["merge", "r0.jsonl", "r0.jsonl"]),
        "candle-profile: r0.jsonl and r0.jsonl are both of rank 0; merge takes one trace of each rank: name the \
         files of one step and run, or give each run a folder of its own"
    );
    put(path, "there.jsonl", "mine");
    put(path, "r1.jsonl", &rank(1, "2026-11-29T21:30:12.000Z").end());
    assert_eq!(
        refused(
            path,
            &["merge", "r0.jsonl", "r1.jsonl", "-o", "there.jsonl"]
        ),
        "candle-profile: write there.jsonl: it is there already; --force replaces it"
    );
    assert_eq!(get(path, "there.jsonl"), "mine");
}

#[test]
fn no_trace_that_is_read_is_written_over() {
    let folder = tests::folder();
    let path = folder.path();
    let first = rank(0, "2026-11-29T21:30:12.000Z").end();
    put(path, "r0.jsonl", &first);
    put(path, "r1.jsonl", &rank(1, "2026-11-29T21:30:12.000Z").end());
    for output in ["r0.jsonl", "./r0.jsonl"] {
        assert_eq!(
            refused(
                path,
                &["merge", "r0.jsonl", "r1.jsonl", "-o", output, "--force"]
            ),
            format!("candle-profile: write {output}: it is the trace r0.jsonl, which is read")
        );
    }
    assert_eq!(get(path, "r0.jsonl"), first);
    // What cannot be made leaves what was there.
    put(path, "all.jsonl", "mine");
    put(
        path,
        "r2.jsonl",
        &rank(1, "2026-11-29T21:30:12.000Z")
            .end()
            .replace("\"train\"", "\"infer\""),
    );
    assert!(
        refused(
            path,
            &[
                "merge",
                "r0.jsonl",
                "r2.jsonl",
                "-o",
                "all.jsonl",
                "--force"
            ]
        )
        .contains("of phase")
    );
    assert_eq!(get(path, "all.jsonl"), "mine");
    assert_eq!(
        well(
            path,
            &[
                "merge",
                "r0.jsonl",
                "r1.jsonl",
                "-o",
                "all.jsonl",
                "--force"
            ]
        ),
        ""
    );
    assert!(judge(&get(path, "all.jsonl")).is_complete());
    let files = tests::program::files(path);
    assert_eq!(files, ["all.jsonl", "r0.jsonl", "r1.jsonl", "r2.jsonl"]);
}

/// A rank with findings in its last line.
fn found(number: u64, terminal: &serde_json::Value) -> String {
    let text = rank(number, super::sample::STAMP).end();
    let (lines, last) = text.trim_end().rsplit_once('\n').expect("lines");
    let mut last: serde_json::Value = serde_json::from_str(last).expect("JSON");
    for (key, value) in terminal.as_object().expect("keys") {
        last[key] = value.clone();
    }
    format!("{lines}\n{last}\n")
}

#[test]
fn what_the_writers_of_the_ranks_found_is_kept() {
    let folder = tests::folder();
    let path = folder.path();
    let first = json!({
        "cuts": ["graph cut in norm (src/a.rs:3)"], "notes": ["weight w did not move"], "growth": "12 KiB a call",
        "dropped": {"layer": 3, "head": 1}, "late": 2, "waited_ns": 1_000,
        "graph_nodes": 8, "graph_bytes": 64, "graph_constant_bytes": 16,
    });
    let second = json!({
        "notes": ["weight v did not move"], "growth": "4 KiB a call", "dropped": {"layer": 4}, "late": 1,
        "waited_ns": 500, "graph_nodes": 8, "graph_bytes": 32, "unused_graph_nodes": 2, "unused_graph_bytes": 7,
    });
    put(path, "r0.jsonl", &found(0, &first));
    // Its cut is known from the tensor alone.
    let tensor = json!({
        "kind": "tensor", "span_id": "s3", "tensor_id": "t9", "label": "logits", "shape": [2], "dtype": "f32",
        "device": "cpu", "requires_grad": false, "category": "activation", "autograd": "cut", "twin": "softmax",
    });
    let text = found(1, &second);
    let (lines, last) = text.trim_end().rsplit_once('\n').expect("lines");
    put(path, "r1.jsonl", &format!("{lines}\n{tensor}\n{last}\n"));
    let text = well(path, &["merge", "r0.jsonl", "r1.jsonl"]);
    assert!(judge(&text).is_complete());
    let last: serde_json::Value =
        serde_json::from_str(text.lines().last().expect("a line")).expect("JSON");
    assert_eq!(
        last,
        json!({
            "kind": "terminal", "outcome": "complete", "timestamp_ns": 1_000,
            "cuts": [
                "rank 0: graph cut in norm (src/a.rs:3)",
                "rank 1: graph cut in forward at logits; softmax keeps it",
            ],
            "notes": ["rank 0: weight w did not move", "rank 1: weight v did not move"],
            "growth": "rank 0: 12 KiB a call; rank 1: 4 KiB a call",
            "dropped": {"layer": 7, "head": 1}, "late": 3, "waited_ns": 1_500,
            "graph_nodes": 16, "graph_bytes": 96, "graph_constant_bytes": 16,
            "unused_graph_nodes": 2, "unused_graph_bytes": 7,
        })
    );
    put(path, "all.jsonl", &text);
    let summary = well(path, &["summary", "all.jsonl"]);
    for part in [
        "rank 0: graph cut in norm",
        "rank 1: weight v did not move",
        "8 spans and records",
    ] {
        assert!(summary.contains(part), "{part} in\n{summary}");
    }
}

#[test]
fn ranks_of_the_old_schema_merge_too() {
    let folder = tests::folder();
    let path = folder.path();
    let old = tests::golden("all-events.trace6.jsonl");
    let tagged = |rank: &str| {
        let mut lines = old.lines();
        let first = lines.next().expect("a line");
        let mut meta: serde_json::Value = serde_json::from_str(first).expect("JSON");
        meta["tags"] = json!({"rank": rank, "world_size": "2"});
        let rest: Vec<&str> = lines.collect();
        format!("{meta}\n{}\n", rest.join("\n"))
    };
    for rank in ["0", "1"] {
        put(path, &format!("r{rank}.jsonl"), &tagged(rank));
    }
    let text = well(path, &["merge", "r0.jsonl", "r1.jsonl"]);
    let verdict = judge(&text);
    assert!(verdict.is_complete(), "{verdict:?}");
    assert!(text.starts_with("{\"kind\":\"meta\",\"schema\":\"candle-graph/trace/10\""));
    let spans = text
        .lines()
        .filter(|line| line.contains("\"kind\":\"span_start\""))
        .count();
    assert_eq!(spans, 2 + 2 * 4);
}

#[test]
fn numbers_beyond_all_measure_are_no_panic() {
    let folder = tests::folder();
    let path = folder.path();
    put(path, "r0.jsonl", &rank(0, super::sample::STAMP).end());
    let most = u64::MAX.to_string();
    put(
        path,
        "threads.jsonl",
        &rank(1, super::sample::STAMP)
            .end()
            .replace("\"thread\":1", &format!("\"thread\":{most}")),
    );
    assert_eq!(
        refused(path, &["merge", "r0.jsonl", "threads.jsonl"]),
        format!(
            "candle-profile: threads.jsonl: there is a thread number {most}, beyond which none is left for other ranks"
        )
    );
    put(
        path,
        "items.jsonl",
        &rank(1, super::sample::STAMP)
            .end()
            .replace("\"items\":\"8\"", &format!("\"items\":\"{most}\"")),
    );
    let text = well(path, &["merge", "r0.jsonl", "items.jsonl"]);
    assert!(
        judge(&text).is_complete() && !text.contains("\"items\""),
        "{text}"
    );
}

#[test]
fn what_was_written_and_is_doubtful_is_told_as_json() {
    let folder = tests::folder();
    let path = folder.path();
    for number in [0, 2] {
        put(
            path,
            &format!("r{number}.jsonl"),
            &rank(number, super::sample::STAMP).end(),
        );
    }
    let value = super::json(
        path,
        &["merge", "r0.jsonl", "r2.jsonl", "-o", "all.jsonl", "--json"],
    );
    assert_eq!(
        value,
        json!({
            "schema": "candle-profiler/merge/1", "traces": ["r0.jsonl", "r2.jsonl"], "paths": ["all.jsonl"],
            "warnings": [
                "the world size is 2, 2 traces are merged; missing: rank 1",
                "the world size is 2, which has no rank 2",
            ],
        })
    );
    let ran = super::tool(path, &["merge", "r0.jsonl", "r2.jsonl", "--json"]);
    assert_eq!(ran.code, Some(2), "standard output would hold the trace");
}

/// What the tool warns of; the trace is made all the same, and valid.
fn warnings(folder: &std::path::Path, traces: &[&str]) -> Vec<String> {
    let ran = super::tool(folder, &[&["merge"], traces].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(judge(&ran.stdout).is_valid());
    let start = "candle-profile: warning: ";
    let lines = ran.stderr.lines();
    lines
        .map(|line| line.strip_prefix(start).expect("a warning").to_owned())
        .collect()
}

#[test]
fn what_does_not_seem_to_belong_together_is_merged_with_a_warning() {
    const STAMP: &str = super::sample::STAMP;
    let folder = tests::folder();
    let path = folder.path();
    let other = |step: u64, tags: serde_json::Value, stamp: &str| {
        let lines = Lines::new(step, 1_000, tags, stamp);
        lines.measured("train_step", (100, 900), json!({})).end()
    };
    put(path, "r0.jsonl", &rank(0, STAMP).end());
    put(
        path,
        "step.jsonl",
        &other(4, json!({"rank": "1", "world_size": "2"}), STAMP),
    );
    assert_eq!(
        warnings(path, &["r0.jsonl", "step.jsonl"]),
        ["the step of r0.jsonl is 3, that of step.jsonl is 4"]
    );
    let evaluation = other(3, json!({"rank": "1", "world_size": "2"}), STAMP)
        .replace(
            "\"entrypoint\":\"train_step\"",
            "\"entrypoint\":\"evaluate\"",
        )
        .replacen("\"name\":\"train_step\"", "\"name\":\"evaluate\"", 1);
    put(path, "evaluate.jsonl", &evaluation);
    assert_eq!(
        warnings(path, &["r0.jsonl", "evaluate.jsonl"]),
        ["the entrypoint of r0.jsonl is train_step, that of evaluate.jsonl is evaluate"]
    );
    put(
        path,
        "world.jsonl",
        &other(3, json!({"rank": "3", "world_size": "4"}), STAMP),
    );
    assert_eq!(
        warnings(path, &["r0.jsonl", "world.jsonl"]),
        ["the world size of r0.jsonl is 2, that of world.jsonl is 4"]
    );
    put(
        path,
        "late.jsonl",
        &other(
            3,
            json!({"rank": "1", "world_size": "2"}),
            "2026-11-29T22:30:12.000Z",
        ),
    );
    assert_eq!(
        warnings(path, &["r0.jsonl", "late.jsonl"]),
        ["r0.jsonl and late.jsonl were opened 60 minutes apart: are they of one run?"]
    );
    for number in ["0", "4"] {
        let tags = json!({"rank": number, "world_size": "4"});
        put(path, &format!("four{number}.jsonl"), &other(3, tags, STAMP));
    }
    assert_eq!(
        warnings(path, &["four0.jsonl", "four4.jsonl"]),
        [
            "the world size is 4, 2 traces are merged; missing: rank 1, 2, 3",
            "the world size is 4, which has no rank 4",
        ]
    );
    put(
        path,
        "none.jsonl",
        &other(3, json!({"world_size": "2"}), STAMP),
    );
    assert_eq!(
        warnings(path, &["r0.jsonl", "none.jsonl"]),
        ["no rank is told in none.jsonl; the place among the arguments counts, from 0"]
    );
}

#[test]
fn captures_of_real_ranks_merge() {
    let folder = tests::folder();
    captured(folder.path(), "rank 3", "2,3");
    let traces = tests::program::files(&folder.path().join("traces"));
    assert_eq!(traces.len(), 2, "{traces:?}");
}
