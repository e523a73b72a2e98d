//! `export`: the rules of the other tools' formats. The tools themselves are asked by a script.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};

use super::sample::{self, Lines, STAMP};
use super::{get, json, put, refused, tool, well};

/// Two futures that take turns on one thread, a worker, operations, and evidence of all kinds.
pub(crate) fn busy() -> String {
    Lines::new(4, 100_000, json!({}), STAMP)
        .measured("train_step", (1_001, 90_000), json!({}))
        .span("s3", Some("s2"), "left", (2_000, 50_000), json!({}), json!({"polls": 2, "busy_ns": 9}))
        .span("s4", Some("s2"), "right", (3_000, 60_000), json!({}), json!({"polls": 2, "busy_ns": 9}))
        .span("s5", Some("s3"), "inner; of left", (4_000, 9_000), json!({}), json!({}))
        .span("s6", Some("s4"), "inner of right", (10_000, 20_000), json!({}), json!({}))
        .span("s7", Some("s2"), "worker", (10_000, 80_000), json!({"thread": 1, "thread_name": "pool"}), json!({}))
        .span("s8", Some("s2"), "tail", (70_000, 80_000), json!({"step": "optimizer"}), json!({"overhead_ns": 1_000}))
        .line(&json!({
            "kind": "op", "span_id": "s8", "op_name": "matmul", "inputs": ["t1"], "output": "t2", "shape": [2],
            "dtype": "f32", "device": "cpu", "duration_ns": 2_000, "timestamp_ns": 71_000, "input_dense_bytes": 8,
        }))
        .line(&json!({
            "kind": "op", "span_id": "s8", "op_name": "relu", "inputs": ["t2"], "output": "t3", "shape": [2],
            "dtype": "f32", "device": "cpu", "duration_ns": 1_000, "timestamp_ns": 74_000, "input_dense_bytes": 8,
        }))
        .line(&json!({"kind": "edge", "edge_kind": "data", "from_tensor": "t2", "to_tensor": "t3"}))
        .line(&json!({"kind": "device_memory", "timestamp_ns": 5_000, "device": "cuda:0", "used_bytes": 1_000}))
        .line(&json!({"kind": "device_memory", "timestamp_ns": 6_000, "device": "cuda:0", "used_bytes": 3_000}))
        .line(&json!({
            "kind": "memory", "timestamp_ns": 72_000, "storage_id": "a", "tensor_id": "t2", "span_id": "s8",
            "device": "cpu", "bytes": 8, "action": "alloc", "shape": [2], "dtype": "f32", "category": "activation",
        }))
        .line(&json!({
            "kind": "memory", "timestamp_ns": 75_000, "storage_id": "a", "tensor_id": "t2", "span_id": "s8",
            "device": "cpu", "bytes": 8, "action": "free", "shape": [2], "dtype": "f32", "category": "activation",
        }))
        .line(&json!({
            "kind": "tensor_stats", "span_id": "s2", "label": "loss", "shape": [], "dtype": "f64", "elements": 1,
            "non_finite": 0, "rms": 0.25, "abs_max": 0.25, "mean": 0.25,
        }))
        .line(&json!({
            "kind": "device_interval", "span_id": "s8", "device": "cuda:0", "stream_id": "0", "clock_id": "event",
            "backend": "cuda", "start_ns": 10, "duration_ns": 500,
        }))
        .line(&json!({
            "kind": "gradient", "event_id": "gradient-1", "root": "loss", "key": "w", "state": "present", "norm": 2.0,
        }))
        .stats("s8", "logits", 0.5)
        .end()
}

fn events(text: &str) -> Vec<Value> {
    serde_json::from_str(text).expect("an array")
}

/// Microseconds with three digits, as nanoseconds.
fn nanoseconds(value: &Value) -> u64 {
    let text = value.to_string();
    let (whole, part) = text.split_once('.').expect("a decimal");
    // JSON's reader gives back the shortest form.
    format!("{whole}{part:0<3}").parse().expect("digits")
}

/// No two slices of a thread overlap unless one lies within the other; gives each slice's depth.
fn nested(events: &[Value]) -> Vec<(String, usize)> {
    let mut open: HashMap<u64, Vec<u64>> = HashMap::new();
    let mut depths = Vec::new();
    let mut last = 0;
    for event in events
        .iter()
        .filter(|event| event["ph"] == "X" && event["cat"] != "device")
    {
        let start = nanoseconds(&event["ts"]);
        let end = start + nanoseconds(&event["dur"]);
        assert!(start >= last, "in the order of time");
        last = start;
        let open = open
            .entry(event["tid"].as_u64().expect("a thread"))
            .or_default();
        while open.last().is_some_and(|end| *end <= start) {
            open.pop();
        }
        assert!(
            open.last().is_none_or(|above| end <= *above),
            "{event} overlaps"
        );
        depths.push((
            event["name"].as_str().expect("a name").to_owned(),
            open.len(),
        ));
        open.push(end);
    }
    depths
}

#[test]
fn chrome_gets_every_slice_on_a_track_where_it_nests() {
    let folder = tests::folder();
    put(folder.path(), "busy.jsonl", &busy());
    let text = well(folder.path(), &["export", "busy.jsonl", "--to", "chrome"]);
    let events = events(&text);
    let depths = nested(&events);
    let expected = [
        ("train_step", 0),
        ("train_step", 1),
        ("left", 2),
        ("right", 0),
        ("inner; of left", 3),
        ("worker", 0),
        ("inner of right", 1),
        ("tail", 2),
        ("matmul", 3),
        ("relu", 3),
    ];
    assert_eq!(
        depths,
        expected.map(|(name, depth)| (name.to_owned(), depth))
    );
    let of = |phase: &str| {
        events
            .iter()
            .filter(|event| event["ph"] == phase)
            .collect::<Vec<_>>()
    };
    let measured = of("X")
        .into_iter()
        .find(|event| event["args"]["measured"] == true)
        .expect("the region");
    assert_eq!(
        (nanoseconds(&measured["ts"]), nanoseconds(&measured["dur"])),
        (1_001, 88_999)
    );
    assert_eq!(measured["args"]["recorded"]["loss"], "0.25");
    let names: Vec<_> = of("M")
        .iter()
        .map(|event| event["args"]["name"].clone())
        .collect();
    assert_eq!(
        names,
        [
            "train_step 4",
            "main",
            "main, overlapping 1",
            "pool (1)",
            "cuda:0 stream 0 (its own clock, event)"
        ]
    );
    // An arrow to each span that its parent's track has no room for, and one from an operation to the next.
    let arrows: Vec<_> = of("s").iter().map(|event| event["name"].clone()).collect();
    assert_eq!(arrows.len(), of("f").len());
    assert_eq!(arrows.iter().filter(|name| **name == "started").count(), 2);
    assert_eq!(arrows.iter().filter(|name| **name == "data").count(), 1);
    let counters: Vec<_> = of("C")
        .iter()
        .map(|event| (event["name"].clone(), event["args"].clone()))
        .collect();
    assert_eq!(
        counters,
        [
            (json!("memory of cuda:0"), json!({"used": 1_000})),
            (json!("memory of cuda:0"), json!({"used": 3_000})),
            (json!("recorded storages on cpu"), json!({"bytes": 8})),
            (json!("recorded storages on cpu"), json!({"bytes": 0})),
            (json!("loss"), json!({"value": 0.25})),
            (json!("gradient norm of loss"), json!({"value": 2.0})),
        ]
    );
}

#[test]
fn several_traces_are_processes_of_one_timeline() {
    let folder = tests::folder();
    let later = busy().replace("21:30:12.000Z", "21:30:12.005Z");
    put(folder.path(), "a.jsonl", &busy());
    put(folder.path(), "b.jsonl", &later);
    let text = well(
        folder.path(),
        &["export", "a.jsonl", "b.jsonl", "--to", "chrome"],
    );
    let roots: Vec<_> = events(&text)
        .into_iter()
        .filter(|event| event["ph"] == "X" && event["args"]["id"] == "s1")
        .map(|event| (event["pid"].as_u64(), nanoseconds(&event["ts"])))
        .collect();
    assert_eq!(roots, [(Some(1), 0), (Some(2), 5_000_000)]);
}

#[test]
fn speedscope_gets_a_balanced_profile_for_each_track() {
    let folder = tests::folder();
    put(folder.path(), "busy.jsonl", &busy());
    let value = json(
        folder.path(),
        &["export", "busy.jsonl", "--to", "speedscope"],
    );
    assert_eq!(
        value["$schema"],
        "https://www.speedscope.app/file-format-schema.json"
    );
    let frames = value["shared"]["frames"].as_array().expect("frames");
    let mut totals: BTreeMap<&str, u64> = BTreeMap::new();
    for profile in value["profiles"].as_array().expect("profiles") {
        assert_eq!(
            (&profile["type"], &profile["unit"]),
            (&json!("evented"), &json!("nanoseconds"))
        );
        let mut open: Vec<(u64, u64)> = Vec::new();
        let mut last = profile["startValue"].as_u64().expect("a start");
        for event in profile["events"].as_array().expect("events") {
            let (frame, at) = (
                event["frame"].as_u64().expect("a frame"),
                event["at"].as_u64().expect("a time"),
            );
            assert!(at >= last);
            last = at;
            if event["type"] == "O" {
                open.push((frame, at));
            } else {
                let (opened, start) = open.pop().expect("an open frame");
                assert_eq!(opened, frame);
                let name = frames[frame as usize]["name"].as_str().expect("a name");
                *totals.entry(name).or_default() += at - start;
            }
        }
        assert!(open.is_empty());
        assert_eq!(profile["endValue"].as_u64(), Some(last));
    }
    let totals: Vec<_> = totals.into_iter().collect();
    assert_eq!(
        totals,
        [
            ("inner of right", 10_000),
            ("inner; of left", 5_000),
            ("left", 48_000),
            ("matmul", 2_000),
            ("relu", 1_000),
            ("right", 57_000),
            ("tail", 10_000),
            ("train_step", 100_000 + 88_999),
            ("worker", 70_000),
        ]
    );
}

#[test]
fn folded_stacks_hold_each_spans_own_time() {
    let folder = tests::folder();
    put(folder.path(), "busy.jsonl", &busy());
    assert_eq!(
        well(folder.path(), &["export", "busy.jsonl", "--to", "folded"]),
        "\
train_step 11001
train_step;train_step 79999
train_step;train_step;left 43000
train_step;train_step;left;inner: of left 5000
train_step;train_step;right 47000
train_step;train_step;right;inner of right 10000
train_step;train_step;worker 70000
train_step;train_step;tail 9000
"
    );
}

/// The records of an event file; lengths and checksums are the script's and the unit tests' to prove.
fn records(bytes: &[u8]) -> Vec<&[u8]> {
    let mut rest = bytes;
    let mut records = Vec::new();
    while !rest.is_empty() {
        let length = u64::from_le_bytes(rest[..8].try_into().expect("a length")) as usize;
        records.push(&rest[12..12 + length]);
        rest = &rest[12 + length + 4..];
    }
    records
}

#[test]
fn tensorboard_gets_a_folder_for_each_run_and_a_record_for_each_step() {
    let folder = tests::folder();
    let path = folder.path();
    put(path, "a.jsonl", &busy());
    put(path, "b.jsonl", &sample::simple(9, 1_000, 1.5));
    let said = well(
        path,
        &[
            "export",
            "b.jsonl",
            "a.jsonl",
            "--to",
            "tensorboard",
            "-o",
            "runs",
        ],
    );
    assert_eq!(
        said,
        "runs/train_step/events.out.tfevents.run-1-9.candle-profiler\n"
    );
    let bytes = std::fs::read(path.join(said.trim())).expect("the file");
    let records = records(&bytes);
    assert_eq!(records.len(), 3);
    let contains = |record: &[u8], text: &str| {
        record
            .windows(text.len())
            .any(|part| part == text.as_bytes())
    };
    assert!(contains(records[0], "brain.Event:2"));
    for tag in [
        "loss",
        "logits/rms",
        "gradient_norm/loss",
        "gradients/loss/w",
        "time/step",
        "time/optimizer",
    ] {
        assert!(contains(records[1], tag), "{tag}");
    }
    assert!(contains(records[2], "hidden/abs_max") && !contains(records[2], "loss"));
    assert_eq!(
        refused(path, &["export", "a.jsonl", "--to", "tensorboard"]),
        "candle-profile: --to tensorboard writes a folder: name it with -o"
    );
}

/// The number of a tag in a record.
fn number(record: &[u8], tag: &str) -> Option<f32> {
    // Field 1, the tag; field 2, four bytes of the number.
    let mut pattern = vec![0x0a, tag.len() as u8];
    pattern.extend(tag.as_bytes());
    pattern.push(0x15);
    let at = record
        .windows(pattern.len())
        .position(|part| part == pattern)?;
    let bytes = record[at + pattern.len()..].first_chunk()?;
    Some(f32::from_le_bytes(*bytes))
}

/// The number of a tag in what TensorBoard gets of one trace.
fn tensorboard(text: &str, tag: &str) -> Option<f32> {
    let folder = tests::folder();
    put(folder.path(), "a.jsonl", text);
    let said = well(
        folder.path(),
        &["export", "a.jsonl", "--to", "tensorboard", "-o", "runs"],
    );
    let bytes = std::fs::read(folder.path().join(said.trim())).expect("the file");
    number(records(&bytes)[1], tag)
}

#[test]
fn a_part_of_the_step_is_counted_once_however_deep_and_parallel_it_is() {
    let forward = json!({"step": "forward"});
    let nested = Lines::new(2, 1_000, json!({}), STAMP)
        .measured("train_step", (100, 600), json!({}))
        .span(
            "s3",
            Some("s2"),
            "forward",
            (100, 500),
            forward.clone(),
            json!({"overhead_ns": 50}),
        )
        .span("s4", Some("s3"), "block", (110, 490), json!({}), json!({}))
        .span(
            "s5",
            Some("s4"),
            "attention",
            (120, 480),
            forward.clone(),
            json!({}),
        )
        .end();
    assert_eq!(tensorboard(&nested, "time/forward"), Some(350e-9));
    assert_eq!(tensorboard(&nested, "time/step"), Some(500e-9));
    let worker = json!({"step": "forward", "thread": 1});
    let parallel = Lines::new(2, 1_000, json!({}), STAMP)
        .measured("train_step", (100, 600), json!({}))
        .span(
            "s3",
            Some("s2"),
            "left",
            (100, 350),
            forward.clone(),
            json!({}),
        )
        .span("s4", Some("s2"), "right", (150, 400), worker, json!({}))
        .span("s5", Some("s2"), "again", (500, 550), forward, json!({}))
        .end();
    assert_eq!(tensorboard(&parallel, "time/forward"), Some(350e-9));
}

fn gradient(key: &str, state: &str, norm: Option<f64>) -> Value {
    let mut line = json!({
        "kind": "gradient", "event_id": format!("gradient-{key}"), "root": "loss", "key": key, "state": state,
    });
    if let Some(norm) = norm {
        line["norm"] = json!(norm);
    }
    line
}

#[test]
fn the_norm_of_all_gradients_is_none_where_one_is_not_finite() {
    let lines = || {
        Lines::new(2, 1_000, json!({}), STAMP)
            .measured("train_step", (100, 600), json!({}))
            // A variable may have any name.
            .line(&gradient("norm", "present", Some(3.0)))
            .line(&gradient("w", "present", Some(4.0)))
    };
    let finite = lines().end();
    assert_eq!(tensorboard(&finite, "gradient_norm/loss"), Some(5.0));
    assert_eq!(tensorboard(&finite, "gradients/loss/norm"), Some(3.0));
    let overflown = lines().line(&gradient("b", "non_finite", None)).end();
    assert!(
        tensorboard(&overflown, "gradient_norm/loss")
            .expect("a number")
            .is_nan()
    );
    let folder = tests::folder();
    for (text, value, told) in [
        (finite, Some(json!({"value": 5.0})), Value::Null),
        (overflown, None, json!("not finite")),
    ] {
        put(folder.path(), "a.jsonl", &text);
        let events = events(&well(
            folder.path(),
            &["export", "a.jsonl", "--to", "chrome"],
        ));
        let name = "gradient norm of loss";
        let counter = events.iter().find(|event| event["name"] == name);
        assert_eq!(counter.map(|event| event["args"].clone()), value);
        let measured = events
            .iter()
            .find(|event| event["args"]["measured"] == true);
        assert_eq!(
            measured.expect("the region")["args"]["recorded"][name],
            told
        );
    }
}

#[test]
fn an_export_to_tensorboard_is_replaced_as_a_whole_and_only_on_demand() {
    let folder = tests::folder();
    let path = folder.path();
    put(path, "a.jsonl", &busy());
    put(path, "b.jsonl", &sample::simple(9, 1_000, 1.5));
    let to = ["--to", "tensorboard", "-o", "runs"];
    let first = well(path, &[&["export", "a.jsonl"], &to[..]].concat());
    let other = "runs/train_step/events.out.tfevents.1.host";
    put(path, other, "another program's");
    for trace in ["a.jsonl", "b.jsonl"] {
        assert_eq!(
            refused(path, &[&["export", trace], &to[..]].concat()),
            format!(
                "candle-profile: write runs/train_step: there is an export already, {}; --force replaces it",
                first.trim()
            )
        );
    }
    let arguments = [&["export", "b.jsonl"], &to[..], &["--force", "--json"]].concat();
    let second = "runs/train_step/events.out.tfevents.run-1-9.candle-profiler";
    assert_eq!(
        json(path, &arguments),
        json!({
            "schema": "candle-profiler/export/1", "traces": ["b.jsonl"], "paths": [second], "warnings": [],
        })
    );
    assert!(!path.join(first.trim()).exists() && path.join(second).exists());
    assert_eq!(get(path, other), "another program's");
}

#[test]
fn numbers_beyond_all_measure_are_no_panic() {
    let folder = tests::folder();
    let path = folder.path();
    put(path, "now.jsonl", &busy());
    let late = u64::MAX - 10;
    let huge = Lines::new(4, u64::MAX, json!({}), "2026-11-29T21:30:13.000Z")
        .measured("train_step", (late, u64::MAX), json!({}))
        .line(&json!({"kind": "device_memory", "timestamp_ns": late, "device": "cuda:0", "used_bytes": u64::MAX}))
        .line(&json!({
            "kind": "memory", "timestamp_ns": late, "storage_id": "a", "tensor_id": "t2", "span_id": "s2",
            "device": "cpu", "bytes": u64::MAX, "action": "alloc", "shape": [2], "dtype": "f32",
            "category": "activation",
        }))
        .line(&json!({
            "kind": "tensor_stats", "span_id": "s2", "label": "loss", "shape": [], "dtype": "f64", "elements": 1,
            "non_finite": 0, "rms": 0.25, "abs_max": 0.25, "mean": 0.25,
        }))
        .line(&gradient("w", "present", Some(f64::MAX)))
        .line(&gradient("v", "present", Some(f64::MAX)))
        .end();
    put(path, "huge.jsonl", &huge);
    for format in ["chrome", "speedscope", "folded"] {
        well(path, &["export", "now.jsonl", "huge.jsonl", "--to", format]);
    }
    well(
        path,
        &[
            "export",
            "now.jsonl",
            "huge.jsonl",
            "--to",
            "tensorboard",
            "-o",
            "runs",
        ],
    );
    for command in ["summary", "check", "view"] {
        well(path, &[command, "now.jsonl", "huge.jsonl"]);
    }
    let text = well(
        path,
        &["export", "now.jsonl", "huge.jsonl", "--to", "chrome"],
    );
    // The counters of memory, storages and the loss, and the region itself; so large a norm is no number any more.
    let latest = text.matches("\"ts\":18446744073709551.615,").count();
    assert_eq!(latest, 4, "{text}");
}

#[test]
fn files_are_replaced_only_where_it_is_wanted() {
    let folder = tests::folder();
    let path = folder.path();
    put(path, "a.jsonl", &busy());
    put(path, "a.json", "mine");
    let arguments = ["export", "a.jsonl", "--to", "chrome", "-o", "a.json"];
    assert!(refused(path, &arguments).contains("a.json: it is there already; --force replaces it"));
    assert_eq!(get(path, "a.json"), "mine");
    std::fs::create_dir(path.join("folder")).expect("a folder");
    for more in [&[][..], &["--force"]] {
        let arguments = [&arguments[..4], &["-o", "folder"], more].concat();
        assert_eq!(
            refused(path, &arguments),
            "candle-profile: write folder: it is a folder"
        );
    }
    let line = refused(path, &[&arguments[..4], &["-o", "nowhere/a.json"]].concat());
    assert!(
        line.starts_with("candle-profile: write nowhere/a.json: "),
        "{line}"
    );
    assert_eq!(
        tool(path, &[&arguments[..], &["--force"]].concat()).code,
        Some(0)
    );
    assert_eq!(
        events(&get(path, "a.json")).len(),
        events(&well(path, &arguments[..4])).len()
    );
}

#[test]
fn captures_of_futures_and_threads_nest_on_their_tracks() {
    for mode in ["awaited 3", "threads 3", "plain 3"] {
        let folder = tests::folder();
        sample::captured(folder.path(), mode, "2");
        let text = well(folder.path(), &["export", "traces", "--to", "chrome"]);
        assert!(!nested(&events(&text)).is_empty(), "{mode}");
    }
}
