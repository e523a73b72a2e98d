//! `summary`.

use serde_json::json;

use super::sample::{self, Lines, STAMP, captured};
use super::{json, put, well};

/// A run that is built without optimisation says so; its trace cannot know.
fn without_warning(text: &str) -> String {
    let lines = text
        .lines()
        .filter(|line| !line.starts_with("built without optimisation"));
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn the_tool_says_of_a_trace_what_the_capture_said_at_its_end() {
    for mode in [
        "plain 3",
        "threads 3",
        "burst 3",
        "accumulate 4",
        "infer 3",
        "awaited 3",
        "masks 3",
    ] {
        let folder = tests::folder();
        let said = captured(folder.path(), mode, "2");
        let traces = tests::program::files(&folder.path().join("traces"));
        assert_eq!(traces.len(), 1, "{mode}: {traces:?}");
        let trace = format!("traces/{}", traces[0]);
        let text = well(folder.path(), &["summary", &trace]);
        let live = said.replace(&format!("{}/", folder.path().display()), "");
        assert_eq!(text, without_warning(&live), "{mode}");
    }
}

/// Problems and the memory row of a trace that a capture with these variables wrote last, from the capture and from the
/// tool.
fn told_twice(mode: &str, variables: &[(&str, &str)]) -> (String, String) {
    let folder = tests::folder();
    let arguments: Vec<&str> = mode.split(' ').collect();
    let all = [&[("CANDLE_PROFILE", "traces")], variables].concat();
    let train = env!("CARGO_BIN_EXE_train");
    let ran = tests::program::run(train, folder.path(), &arguments, &all);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let traces = tests::program::files(&folder.path().join("traces"));
    assert_eq!(traces.len(), 1, "{mode}: {traces:?}");
    let trace = format!("traces/{}", traces[0]);
    let live = ran
        .stderr
        .replace(&format!("{}/", folder.path().display()), "");
    (
        without_warning(&live),
        well(folder.path(), &["summary", &trace]),
    )
}

#[test]
fn alarms_that_were_asked_for_are_in_the_trace() {
    let step = ("CANDLE_PROFILE_STEPS", "2");
    let (live, text) = told_twice("masks 3", &[step, ("CANDLE_PROFILE_NONFINITE", "inf")]);
    // -inf alarms where that is asked for, and what is meant does not.
    assert!(text.contains("not finite: mask (f32 [4, 4]"), "{text}");
    let problems = text.split("\n\n").nth(1).expect("problems");
    assert!(!problems.contains("meant"), "{problems}");
    assert!(live.ends_with(&text), "{live}\n{text}");
}

#[test]
fn programs_get_the_graphs_that_the_text_tells_of() {
    let folder = tests::folder();
    let trace = Lines::new(3, 100, json!({}), STAMP)
        .measured("train_step", (10, 60), json!({"mem_net": 8, "mem_peak": 16}))
        .span("s3", Some("s2"), "layer", (20, 30), json!({}), json!({"mem_net": -4, "mem_peak": 12}))
        .end()
        .replace(
            "\"outcome\":\"complete\"",
            "\"outcome\":\"complete\",\"graph_nodes\":32,\"graph_bytes\":640,\"graph_carried\":2,\"growth\":\"it grew\"",
        );
    put(folder.path(), "graph.jsonl", &trace);
    let value = json(folder.path(), &["summary", "--json", "graph.jsonl"]);
    let graph = json!({
        "tensors": 32, "bytes": 640, "of_earlier_steps": 2, "gradient_bytes_of_constants": 0,
    });
    assert_eq!(
        (&value["graph"], &value["unused_graph"]),
        (&graph, &json!(null))
    );
    assert_eq!(value["memory"]["growth"], "it grew");
    let layer = &value["sites"][1];
    assert_eq!(layer["name"], "layer");
    assert_eq!(
        (&layer["memory_net_bytes"], &layer["memory_peak_bytes"]),
        (&json!(-4), &json!(12))
    );
}

#[cfg(target_os = "linux")]
#[test]
fn growth_of_the_process_is_in_the_trace() {
    let (live, text) = told_twice("leak 20", &[("CANDLE_PROFILE_STEPS", "20")]);
    assert!(text.contains("  resident memory grew 7"), "{text}");
    assert!(live.starts_with(&text), "{live}\n{text}");
}

#[test]
fn a_gradient_that_was_zero_before_is_told_again() {
    let folder = tests::folder();
    let gradient = |key: &str| json!({"kind": "gradient", "event_id": format!("gradient-{key}"), "root": "loss", "key": key, "state": "zero", "norm": 0.0});
    let mut before = gradient("head.weight");
    before["zero_before"] = json!(true);
    let trace = Lines::new(3, 100, json!({}), STAMP)
        .measured("train_step", (10, 60), json!({}))
        .line(&before)
        .line(&gradient("head.bias"))
        .end();
    put(folder.path(), "zero.jsonl", &trace);
    let text = well(folder.path(), &["summary", "zero.jsonl"]);
    let problem = "  gradients that were zero in this step and in one before: head.weight\n";
    assert!(text.contains(problem), "{text}");
}

#[test]
fn the_norm_of_the_gradients_is_shown_once() {
    let folder = tests::folder();
    let trace = |norm: f64| {
        let number = |label: &str, value: f64| {
            json!({
                "kind": "tensor_stats", "span_id": "s2", "label": label, "shape": [], "dtype": "f64", "elements": 1,
                "non_finite": 0, "rms": value, "abs_max": value, "mean": value,
            })
        };
        let gradient = |key: &str, norm: f64| {
            json!({
                "kind": "gradient", "event_id": format!("gradient-{key}"), "root": "loss", "key": key,
                "state": "present", "norm": norm,
            })
        };
        Lines::new(3, 100, json!({}), STAMP)
            .measured("train_step", (10, 60), json!({}))
            .line(&number("loss", 0.25))
            .line(&number("loss/grad_norm", norm))
            .line(&number("loss/grad_norm/after", 1.0))
            .line(&gradient("a", 3.0))
            .line(&gradient("b", 4.0))
            .end()
    };
    put(folder.path(), "same.jsonl", &trace(5.0 + 1e-9));
    put(folder.path(), "other.jsonl", &trace(5.5));
    let rows = |arguments: &[&str]| -> Vec<String> {
        let text = well(folder.path(), arguments);
        let rows = text.lines().skip_while(|line| !line.starts_with("scalars"));
        let rows = rows.skip(1).take_while(|line| !line.is_empty());
        rows.map(|row| row.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect()
    };
    assert_eq!(
        rows(&["summary", "same.jsonl"]),
        ["loss 0.25", "loss/grad_norm/after 1", "gradient norm 5"]
    );
    // A number of the program's own that only has the name stays.
    assert_eq!(
        rows(&["summary", "other.jsonl"]),
        [
            "loss 0.25",
            "loss/grad_norm 5.5",
            "loss/grad_norm/after 1",
            "gradient norm 5"
        ]
    );
    put(folder.path(), "again.jsonl", &trace(5.0));
    let labels: Vec<String> = rows(&["summary", "same.jsonl", "again.jsonl"])
        .iter()
        .map(|row| row.split(' ').next().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(labels, ["loss", "loss/grad_norm/after", "gradient"]);
}

fn step() -> String {
    Lines::new(7, 2_000_000, json!({"items": "64", "rank": "1"}), STAMP)
        .span(
            "s2",
            Some("s1"),
            "train_step",
            (100, 1_500_100),
            json!({"measured": true, "since_previous_ns": 250_000, "file": "src/main.rs", "line": 9}),
            json!({"overhead_ns": 500_000, "mem_net": -2048, "mem_peak": 1_048_576}),
        )
        .span("s3", Some("s2"), "forward", (200, 600_200), json!({"step": "forward"}), json!({"overhead_ns": 100_000}))
        .span("s4", Some("s3"), "layer", (300, 100_300), json!({}), json!({}))
        .span("s5", Some("s3"), "layer", (200_000, 500_000), json!({}), json!({"overhead_ns": 100_000}))
        .span("s6", Some("s2"), "worker", (700_000, 1_400_000), json!({"thread": 1, "thread_name": "pool"}), json!({}))
        .stats("s4", "hidden", 0.5)
        .line(&json!({
            "kind": "tensor_stats", "span_id": "s3", "label": "logits", "shape": [2, 3], "dtype": "f32", "elements": 6,
            "non_finite": 2, "rms": 1.0, "abs_max": 2.0, "mean": 0.5, "nan": 2, "pos_inf": 0, "neg_inf": 0,
            "first_non_finite": [1, 2],
        }))
        .line(&json!({
            "kind": "tensor", "span_id": "s4", "tensor_id": "t1", "label": "probabilities", "shape": [2, 3],
            "dtype": "f32", "device": "cpu", "requires_grad": false, "category": "activation", "autograd": "cut",
            "twin": "candle_nn::ops::softmax",
        }))
        .line(&json!({
            "kind": "tensor_stats", "span_id": "s2", "label": "loss", "shape": [], "dtype": "f64", "elements": 1,
            "non_finite": 0, "rms": 0.25, "abs_max": 0.25, "mean": 0.25,
        }))
        .line(&json!({
            "kind": "gradient", "event_id": "gradient-1", "root": "loss", "key": "weight", "state": "present",
            "norm": 3.0,
        }))
        .line(&json!({
            "kind": "gradient", "event_id": "gradient-2", "root": "loss", "key": "bias", "state": "missing",
            "reason": "cut",
        }))
        .line(&json!({
            "kind": "gradient", "event_id": "gradient-3", "root": "loss", "key": "base", "state": "missing",
            "reason": "frozen",
        }))
        .line(&json!({
            "kind": "gradient", "event_id": "gradient-4", "root": "loss", "key": "norm.running_mean", "state": "missing",
            "reason": "buffer",
        }))
        .end()
}

#[test]
fn a_step_is_told_from_what_matters_most() {
    let folder = tests::folder();
    put(folder.path(), "step.jsonl", &step());
    assert_eq!(
        well(folder.path(), &["summary", "step.jsonl", "--tree"]),
        "\
train_step: train step 7 on cpu, rank 1, 1.00 ms

problems
  first value that is not finite: logits (f32 [2, 3] in train_step > forward):
    2 of 6 values (2 NaN), first at [1, 2]
  graph cut in layer at probabilities; candle_nn::ops::softmax keeps it

scalars                                    value
  loss                                      0.25
  gradient norm               3 (1 of 2 missing)

time by part                   total  share
  between steps               250 µs
  forward                     500 µs  50.0%
  rest                        500 µs  50.0%

64 items, 64,000 a second (51,200 with the time between)
500 µs of the profiler's own work is taken off

memory                            peak     growth
  heap of the step's thread   1.00 MiB  -2.00 KiB

time by call site      calls    total    self   share     mean      p50      p95
  train_step               1  1.00 ms  500 µs  100.0%  1.00 ms  1.00 ms  1.00 ms
  worker                   1   700 µs  700 µs   70.0%   700 µs   700 µs   700 µs
  forward                  1   500 µs  200 µs   50.0%   500 µs   500 µs   500 µs
  layer                    2   300 µs  300 µs   30.0%   150 µs   100 µs   200 µs

tensors in order                    type  not finite  rms  mean  abs max
  hidden                      f32 [2, 3]           0  0.5  0.05        1
  logits                      f32 [2, 3]           2    1   0.5        2

gradients
  loss: 4 variables, 1 present, 1 missing, 2 untrained, global norm 3
    missing: bias (cut)
    untrained: base (frozen), norm.running_mean (buffer)

trace  step.jsonl
view   candle-profile view step.jsonl -o step.html

tree of calls                 calls    total    self   share
  train_step                      1  1.00 ms  500 µs  100.0%
    worker                        1   700 µs  700 µs   70.0%
    forward                       1   500 µs  200 µs   50.0%
      layer                       2   300 µs  300 µs   30.0%
"
    );
    let narrow = well(folder.path(), &["summary", "step.jsonl", "--width", "40"]);
    assert!(
        narrow.lines().all(|line| line.chars().count() <= 62),
        "{narrow}"
    );
    let library = candle_profiler::view::summary_text(step().as_bytes(), 80).expect("a summary");
    assert!(well(folder.path(), &["summary", "step.jsonl"]).starts_with(&library));
}

#[test]
fn programs_get_the_same_in_nanoseconds() {
    let folder = tests::folder();
    put(folder.path(), "step.jsonl", &step());
    let value = json(
        folder.path(),
        &["summary", "--json", "--tree", "step.jsonl"],
    );
    assert_eq!(value["schema"], "candle-profiler/summary/1");
    assert_eq!(value["measured_ns"], 1_000_000);
    assert_eq!(value["since_previous_ns"], 250_000);
    assert_eq!(value["items_per_second"], 64_000.0);
    assert_eq!(value["rank"], 1);
    assert_eq!(value["memory"]["step_peak_bytes"], 1_048_576);
    let layer = value["sites"]
        .as_array()
        .expect("sites")
        .iter()
        .find(|site| site["name"] == "layer");
    let layer = layer.expect("the layer");
    assert_eq!(
        (&layer["calls"], &layer["total_ns"]),
        (&2.into(), &300_000.into())
    );
    assert_eq!(
        (&layer["p50_ns"], &layer["p95_ns"]),
        (&100_000.into(), &200_000.into())
    );
    assert_eq!(
        value["tree"][0]["children"][1]["children"][0]["name"],
        "layer"
    );
    assert_eq!(value["gradients"][0]["missing"]["count"], 1);
    assert_eq!(value["gradients"][0]["untrained"]["count"], 2);
    assert_eq!(value["problems"].as_array().map(Vec::len), Some(2));
}

#[test]
fn several_steps_show_how_their_numbers_went() {
    let folder = tests::folder();
    for (number, loss) in [(2, 4.0), (10, 2.0), (100, 1.0)] {
        sample::step(
            &folder
                .path()
                .join(format!("traces/train_step-step{number}.jsonl")),
            number,
            loss,
        );
    }
    for arguments in [&["summary", "traces"][..], &["summary", "traces/*.jsonl"]] {
        let text = well(folder.path(), arguments);
        assert!(
            text.starts_with("train_step: 3 train steps (2 … 100) on cpu, median "),
            "{text}"
        );
        let line = |start: &str| {
            let line = text
                .lines()
                .find(|line| line.trim_start().starts_with(start))
                .unwrap_or_default();
            line.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(line("loss"), "loss █▃▁ 4 1 1 4");
        assert_eq!(line("gradient norm"), "gradient norm █▃▁ 2 0.5 0.5 2");
        assert_eq!(line("activation"), "activation ▁▁▁ 2 2 2 2");
        assert!(text.contains("time by call site"), "{text}");
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
    }
    let value = json(folder.path(), &["summary", "--json", "traces"]);
    assert_eq!(value["schema"], "candle-profiler/trends/1");
    let group = &value["groups"][0];
    let steps: Vec<_> = group["steps"]
        .as_array()
        .expect("steps")
        .iter()
        .map(|step| &step["capture_step"])
        .collect();
    assert_eq!(steps, [&json!(2), &json!(10), &json!(100)]);
    let loss = group["rows"]
        .as_array()
        .expect("rows")
        .iter()
        .find(|row| row["label"] == "loss");
    assert_eq!(loss.expect("the loss")["values"], json!([4.0, 2.0, 1.0]));
}

#[test]
fn a_failed_step_and_one_that_is_not_finite_are_told_by_their_numbers() {
    let folder = tests::folder();
    let failed = Lines::new(3, 100, json!({}), STAMP)
        .measured("train_step", (10, 60), json!({}))
        .failed("the loss\n\u{1b}[31mexploded")
        .end();
    put(folder.path(), "a.jsonl", &sample::simple(2, 1_000, 1.0));
    put(folder.path(), "b.jsonl", &failed);
    let text = well(folder.path(), &["summary", "a.jsonl", "b.jsonl"]);
    assert!(
        text.contains("\nproblems\n  step 3: failed: the loss \\u{1b}[31mexploded\n"),
        "{text}"
    );
    assert!(text.contains(", 1 failed\n"), "{text}");
    for traces in [&["a.jsonl"][..], &["a.jsonl", "b.jsonl"]] {
        let list = json(
            folder.path(),
            &[&["summary", "--each", "--json"], traces].concat(),
        );
        let list = list.as_array().expect("an array, of one trace too");
        let names: Vec<_> = list.iter().map(|one| one["trace"].clone()).collect();
        assert_eq!(names, traces);
    }
    let each = well(folder.path(), &["summary", "--each", "a.jsonl", "b.jsonl"]);
    assert!(
        each.contains("train_step: train step 3 on cpu, failed after 50 ns"),
        "{each}"
    );
}

#[test]
fn the_middle_of_the_steps_is_that_of_those_that_ended_well() {
    let folder = tests::folder();
    let path = folder.path();
    put(path, "a.jsonl", &sample::simple(2, 500_000, 1.0));
    put(path, "b.jsonl", &sample::simple(3, 900_000, 1.0));
    let title = |arguments: &[&str]| {
        let text = well(path, arguments);
        text.lines().next().unwrap_or_default().to_owned()
    };
    let two = "train_step: 2 train steps (2 … 3) on cpu, median 700 µs";
    assert_eq!(title(&["summary", "a.jsonl", "b.jsonl"]), two);
    // One file under several names is one step.
    let all = ["summary", "a.jsonl", "*.jsonl", "./b.jsonl"];
    assert_eq!(title(&all), two);
    let failed = Lines::new(4, 100, json!({}), STAMP)
        .measured("train_step", (10, 60), json!({}))
        .failed("no luck")
        .end();
    put(path, "c.jsonl", &failed);
    assert_eq!(
        title(&["summary", "a.jsonl", "b.jsonl", "c.jsonl"]),
        "train_step: 3 train steps (2 … 4) on cpu, median 700 µs, 1 failed"
    );
    put(path, "d.jsonl", &failed);
    assert_eq!(
        title(&["summary", "c.jsonl", "d.jsonl"]),
        "train_step: 2 train steps (4 … 4) on cpu, 2 failed"
    );
    // Steps on another device are no steps of the same kind.
    let other = sample::simple(5, 10_000, 1.0).replace("\"cpu\"", "\"cuda:0\"");
    put(path, "e.jsonl", &other);
    let text = well(path, &["summary", "a.jsonl", "b.jsonl", "e.jsonl"]);
    assert!(text.starts_with(two), "{text}");
    let one = "\ntrain_step: 1 train step (5) on cuda:0, median 10.0 µs\n";
    assert!(text.contains(one), "{text}");
}

#[test]
fn over_steps_a_call_of_the_regions_name_has_its_own_row() {
    let folder = tests::folder();
    let path = folder.path();
    for step in [2, 3] {
        let trace = Lines::new(step, 2_000, json!({}), STAMP)
            .measured("train_step", (10, 510), json!({}))
            .span(
                "s3",
                Some("s2"),
                "train_step",
                (20, 418),
                json!({}),
                json!({}),
            );
        put(path, &format!("step{step}.jsonl"), &trace.end());
    }
    let text = well(path, &["summary", "step2.jsonl", "step3.jsonl"]);
    let rows: Vec<String> = text
        .lines()
        .filter(|line| line.starts_with("  train_step "))
        .map(|line| {
            line.split_whitespace()
                .skip(2)
                .collect::<Vec<_>>()
                .join(" ")
        })
        .collect();
    let row = |time: &str| [time; 4].map(|time| format!("{time} ns")).join(" ");
    assert_eq!(rows, [row("500"), row("398")], "{text}");
    let value = json(path, &["summary", "--json", "step2.jsonl", "step3.jsonl"]);
    let rows = &value["groups"][0]["rows"];
    assert_eq!(
        (&rows[0]["measured"], &rows[0]["values"]),
        (&json!(true), &json!([500.0, 500.0]))
    );
    assert_eq!(rows[1]["measured"], false);
}

#[test]
fn storages_count_in_the_order_of_time_and_are_something_recorded() {
    let folder = tests::folder();
    let storage = |at: u64, id: &str, action: &str| {
        json!({
            "kind": "memory", "timestamp_ns": at, "storage_id": id, "tensor_id": id, "span_id": "s2", "device": "cpu",
            "bytes": 1_000_000, "action": action, "shape": [1_000_000], "dtype": "u8", "category": "activation",
        })
    };
    // `b` comes when `a` is gone, though its line is before.
    let trace = Lines::new(2, 9_000, json!({}), STAMP)
        .measured("train_step", (10, 8_000), json!({}))
        .line(&storage(2_000, "a", "alloc"))
        .line(&storage(4_000, "b", "alloc"))
        .line(&storage(3_000, "a", "free"))
        .line(&storage(5_000, "b", "free"))
        .end();
    put(folder.path(), "memory.jsonl", &trace);
    let value = json(folder.path(), &["summary", "--json", "memory.jsonl"]);
    let peak = &value["memory"]["recorded_storages_peak_bytes"];
    assert_eq!(peak, 1_000_000);
    let document = candle_profiler::trace::parse_trace_reader(trace.as_bytes()).expect("a trace");
    assert_eq!(json!(document.build_summary().logical_peak_bytes), *peak);
    let text = well(folder.path(), &["summary", "memory.jsonl"]);
    assert!(!text.contains("nothing is recorded"), "{text}");
}

#[test]
fn call_sites_of_one_name_have_their_own_rows() {
    let folder = tests::folder();
    let place = |file: &str| json!({"file": file, "line": 7});
    // What tells no place is of the site that was there first.
    let trace = Lines::new(2, 9_000, json!({}), STAMP)
        .measured("train_step", (10, 8_000), json!({}))
        .span(
            "s3",
            Some("s2"),
            "forward",
            (20, 120),
            place("src/a.rs"),
            json!({}),
        )
        .span(
            "s4",
            Some("s2"),
            "forward",
            (200, 500),
            place("src/b.rs"),
            json!({}),
        )
        .span(
            "s5",
            Some("s2"),
            "forward",
            (600, 650),
            json!({}),
            json!({}),
        )
        .end();
    put(folder.path(), "two.jsonl", &trace);
    let text = well(folder.path(), &["summary", "two.jsonl", "--width", "100"]);
    let rows: Vec<String> = text
        .lines()
        .filter(|line| line.contains("forward ("))
        .map(|line| {
            line.split_whitespace()
                .take(6)
                .collect::<Vec<_>>()
                .join(" ")
        })
        .collect();
    assert_eq!(
        rows,
        [
            "forward (src/b.rs:7) 1 300 ns 300",
            "forward (src/a.rs:7) 2 150 ns 150",
        ],
        "{text}"
    );
}

#[test]
fn parts_on_two_threads_at_once_take_their_time_once() {
    let folder = tests::folder();
    let forward = json!({"step": "forward"});
    let elsewhere = json!({"step": "forward", "thread": 1, "thread_name": "pool"});
    let trace = Lines::new(2, 600_000, json!({}), STAMP)
        .measured("train_step", (10, 500_010), json!({}))
        .span("s3", Some("s2"), "left", (100, 250_100), forward, json!({}))
        .span(
            "s4",
            Some("s2"),
            "right",
            (100, 250_100),
            elsewhere,
            json!({}),
        )
        .end();
    put(folder.path(), "parts.jsonl", &trace);
    let value = json(folder.path(), &["summary", "--json", "parts.jsonl"]);
    assert_eq!(
        value["parts_ns"],
        json!({"forward": 250_000, "backward": 0, "optimizer": 0, "rest": 250_000})
    );
    let text = well(folder.path(), &["summary", "parts.jsonl"]);
    for row in ["forward 250 µs 50.0%", "rest 250 µs 50.0%"] {
        let found = text
            .lines()
            .any(|line| line.split_whitespace().collect::<Vec<_>>().join(" ") == row);
        assert!(found, "{row}\n{text}");
    }
}

#[test]
fn the_trees_of_ranks_are_no_calls() {
    let folder = tests::folder();
    let path = folder.path();
    // Both ranks go forward in the same half of the region.
    for rank in ["0", "1"] {
        let trace = Lines::new(2, 1_000, json!({"rank": rank, "world_size": "2"}), STAMP)
            .measured("train_step", (100, 700), json!({}))
            .span(
                "s3",
                Some("s2"),
                "forward",
                (200, 500),
                json!({"step": "forward"}),
                json!({}),
            );
        put(path, &format!("r{rank}.jsonl"), &trace.end());
    }
    well(path, &["merge", "r0.jsonl", "r1.jsonl", "-o", "all.jsonl"]);
    let value = json(path, &["summary", "--json", "--tree", "all.jsonl"]);
    assert_eq!(
        value["parts_ns"],
        json!({"forward": 300, "backward": 0, "optimizer": 0, "rest": 300})
    );
    let names: Vec<_> = value["sites"].as_array().expect("sites").iter().collect();
    assert!(
        names
            .iter()
            .all(|site| !site["name"].to_string().contains("rank")),
        "{names:?}"
    );
    let text = well(path, &["summary", "--tree", "all.jsonl"]);
    let tree = text.split("tree of calls").nth(1).expect("a tree");
    for rank in ["rank 0", "rank 1"] {
        let line = tree.lines().find(|line| line.contains(rank)).expect(rank);
        assert!(line.ends_with(" -"), "{line}");
        assert!(
            !text
                .split("tree of calls")
                .next()
                .unwrap_or_default()
                .contains(rank)
        );
    }
}
