//! `merge`.

use serde_json::json;
use tests::judge;

use super::sample::{Lines, captured};
use super::{get, put, refused, well};

fn rank(number: u64, timestamp: &str) -> Lines {
    Lines::new(3, 1_000, json!({"rank": number.to_string(), "world_size": "2", "data": "digits"}), timestamp)
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
    assert_eq!(well(path, &["merge", "r1.jsonl", "r0.jsonl", "-o", "all.jsonl"]), "");
    let merged = get(path, "all.jsonl");
    let verdict = judge(&merged);
    assert!(verdict.is_complete(), "{verdict:?}");
    let lines: Vec<serde_json::Value> =
        merged.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines[0]["tags"], json!({"data": "digits", "ranks": "1,0", "world_size": "2"}));
    assert_eq!(lines[0]["timestamp"], "2026-11-29T21:30:12.000Z");
    let start = |name: &str| {
        let found = lines.iter().find(|line| line["kind"] == "span_start" && line["name"] == name);
        found.unwrap_or_else(|| panic!("{name} in {merged}"))["start_ns"].as_u64()
    };
    assert_eq!((start("rank 0"), start("rank 1")), (Some(0), Some(2_000_000)));
    let measured: Vec<_> = lines.iter().filter(|line| line["measured"] == true).collect();
    assert_eq!((measured.len(), &measured[0]["start_ns"]), (1, &json!(100)));
    let end = lines.iter().find(|line| line["kind"] == "span_end" && line["id"] == measured[0]["id"]);
    assert_eq!(end.expect("its end")["duration_ns"], 2_000_900 - 100);
    let text = well(path, &["summary", "all.jsonl"]);
    assert!(text.contains("rank 0/loss") && text.contains("gradient norm of rank 1/loss"), "{text}");

    let text = well(path, &["merge", "r0.jsonl", "r1.jsonl", "--align", "measured"]);
    assert!(judge(&text).is_complete());
    assert!(text.contains("\"name\":\"rank 0\",\"start_ns\":1,"), "{text}");
}

#[test]
fn a_failed_rank_makes_the_whole_a_failed_one() {
    let folder = tests::folder();
    let path = folder.path();
    put(path, "r0.jsonl", &rank(0, "2026-11-29T21:30:12.000Z").end());
    put(path, "r1.jsonl", &rank(1, "2026-11-29T21:30:12.000Z").failed("out of memory").end());
    let text = well(path, &["merge", "r0.jsonl", "r1.jsonl"]);
    let verdict = judge(&text);
    assert!(verdict.is_valid() && !verdict.is_complete(), "{verdict:?}");
    assert!(text.contains("\"reason\":\"rank 1: out of memory\""), "{text}");
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
        "candle-profile: two traces are of rank 0; merge takes one trace of each rank"
    );
    put(path, "there.jsonl", "mine");
    put(path, "r1.jsonl", &rank(1, "2026-11-29T21:30:12.000Z").end());
    assert_eq!(
        refused(path, &["merge", "r0.jsonl", "r1.jsonl", "-o", "there.jsonl"]).split(": File").next(),
        Some("candle-profile: write there.jsonl: it is there already; --force replaces it")
    );
    assert_eq!(get(path, "there.jsonl"), "mine");
}

#[test]
fn captures_of_real_ranks_merge() {
    let folder = tests::folder();
    captured(folder.path(), "rank 3", "2,3");
    let traces = tests::program::files(&folder.path().join("traces"));
    assert_eq!(traces.len(), 2, "{traces:?}");
}
