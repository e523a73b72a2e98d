//! Which calls are captured.

use serde_json::json;
use tests::program::{files, traces};

use crate::{NAME, folder, quiet, trace_of, train};

/// The files that a run with these steps leaves, without folder and name of the measured function.
fn left(mode: &str, steps: &str) -> Vec<String> {
    let folder = folder();
    let variables = [("CANDLE_PROFILE", "t"), ("CANDLE_PROFILE_STEPS", steps)];
    quiet(folder.path(), mode, &variables);
    let traces = traces(folder.path());
    let files = files(folder.path());
    assert_eq!(traces.len(), files.len(), "nothing but traces: {files:?}");
    files
}

#[test]
fn off_means_nothing_written_and_nothing_said() {
    for value in [
        None,
        Some(""),
        Some("0"),
        Some("off"),
        Some("OFF"),
        Some("false"),
    ] {
        let folder = folder();
        let variables: Vec<(&str, &str)> = value
            .into_iter()
            .map(|value| ("CANDLE_PROFILE", value))
            .chain([("CANDLE_PROFILE_STEPS", "not looked at")])
            .collect();
        quiet(folder.path(), "plain 3", &variables);
        assert_eq!(files(folder.path()), [] as [String; 0], "{value:?}");
    }
}

#[test]
fn on_means_the_folder_candle_profile() {
    for value in ["1", "on", "true", "True"] {
        let folder = folder();
        quiet(folder.path(), "plain 3", &[("CANDLE_PROFILE", value)]);
        assert_eq!(
            files(folder.path()),
            ["candle-profile/train-model-train_step-step2.jsonl"]
        );
    }
}

#[test]
fn by_default_the_second_training_step_and_the_first_two_inferences_are_captured() {
    let folder = folder();
    quiet(folder.path(), "both 5", &[("CANDLE_PROFILE", "traces")]);
    assert_eq!(
        files(folder.path()),
        [
            "traces/train-model-predict-step1.jsonl",
            "traces/train-model-predict-step2.jsonl",
            "traces/train-model-train_step-step2.jsonl",
        ]
    );
    let traces = traces(folder.path());
    let told: Vec<_> = traces
        .iter()
        .map(|trace| {
            let meta = trace.meta();
            json!([
                meta["entrypoint"],
                meta["phase"],
                meta["capture_step"],
                meta["warmup_steps"],
                meta["correlation_id"],
                meta["device"],
            ])
        })
        .collect();
    let predict = "train::model::predict";
    assert_eq!(
        told,
        [
            json!([
                predict,
                "infer",
                1,
                0,
                format!("{predict}/inference-1"),
                "cpu"
            ]),
            json!([
                predict,
                "infer",
                2,
                1,
                format!("{predict}/inference-2"),
                "cpu"
            ]),
            json!([NAME, "train", 2, 1, format!("{NAME}/update-2"), "cpu"]),
        ]
    );
}

#[test]
fn the_trace_of_a_step_holds_its_parts_its_statistics_and_its_loss() {
    let folder = folder();
    quiet(folder.path(), "plain 3", &[("CANDLE_PROFILE", "traces")]);
    let trace = &traces(folder.path())[0];
    assert_eq!(
        trace.tree(),
        "train::model::train_step*\n  \
           = loss\n  \
           Model::forward forward\n    \
             = input\n    \
             = hidden\n    \
             = logits\n    \
             Linear::forward module\n    \
             Linear::forward module\n  \
           Training::backward backward\n  \
           Training::update optimizer\n"
    );
    assert_eq!(trace.reason(), None);
    assert_eq!(trace.stats("logits")["shape"], json!([12, 2]));
    assert_eq!(trace.stats("hidden")["elements"], 192);
    assert_eq!(trace.stats("hidden")["min"], 0.0, "after relu");
    let loss = trace.stats("loss")["mean"].as_f64().expect("a number");
    assert!((0.5..1.0).contains(&loss), "{loss}");
    let contract = &trace.meta()["capture_contract"];
    assert_eq!(contract["measurement_scope"], "profiled_work");
    for (plane, level) in [("activations", "partial"), ("operations", "partial")] {
        assert_eq!(contract[plane], level, "{plane}");
    }
}

#[test]
fn steps_asked_for_are_captured_and_no_others() {
    assert_eq!(
        left("plain 9", "3,5..7"),
        [
            "t/train-model-train_step-step3.jsonl",
            "t/train-model-train_step-step5.jsonl",
            "t/train-model-train_step-step6.jsonl"
        ]
    );
    assert_eq!(left("plain 9", "every:4, 8..=8").len(), 2);
    assert_eq!(
        left("both 3", "predict:3"),
        ["t/train-model-predict-step3.jsonl"]
    );
    assert_eq!(left("both 3", "model::predict:1,train_step:1..=2").len(), 3);
}

#[test]
fn numbers_of_the_program_take_the_place_of_the_count() {
    let folder = folder();
    let variables = [
        ("CANDLE_PROFILE", "traces"),
        ("CANDLE_PROFILE_STEPS", "20,numbered_step:0"),
    ];
    quiet(folder.path(), "numbered 5", &variables);
    assert_eq!(
        files(folder.path()),
        [
            "traces/train-modes-numbered_step-step0.jsonl",
            "traces/train-modes-numbered_step-step20.jsonl"
        ]
    );
    let traces = traces(folder.path());
    let zero = traces[0].meta();
    assert_eq!(
        zero["capture_step"], 1,
        "0 is no capture step: the count is"
    );
    assert_eq!(zero["tags"], json!({"half": "0", "step": "0"}));
    let twenty = traces[1].meta();
    assert_eq!(
        (&twenty["capture_step"], &twenty["warmup_steps"]),
        (&json!(20), &json!(19))
    );
    assert_eq!(twenty["tags"], json!({"half": "10"}));
}

#[test]
fn the_default_counts_calls_whatever_the_programs_numbers() {
    let folder = folder();
    quiet(folder.path(), "numbered 5", &[("CANDLE_PROFILE", "traces")]);
    assert_eq!(
        files(folder.path()),
        ["traces/train-modes-numbered_step-step10.jsonl"]
    );
}

#[test]
fn a_rendered_name_has_its_own_count() {
    let folder = folder();
    quiet(folder.path(), "phases 4", &[("CANDLE_PROFILE", "traces")]);
    assert_eq!(
        files(folder.path()),
        [
            "traces/decode-step1.jsonl",
            "traces/decode-step2.jsonl",
            "traces/prefill-step1.jsonl"
        ]
    );
    let traces = traces(folder.path());
    assert_eq!(traces[1].measured().name, "decode");
    assert_eq!(
        traces[2].meta()["tags"],
        json!({"items": "96", "length": "96"})
    );
}

#[test]
fn what_is_no_step_leaves_the_count_and_no_trace() {
    let folder = folder();
    let variables = [
        ("CANDLE_PROFILE", "traces"),
        ("CANDLE_PROFILE_STEPS", "1..=3"),
    ];
    quiet(folder.path(), "accumulate 6", &variables);
    let step = |step| format!("traces/train-modes-accumulating_step-step{step}.jsonl");
    assert_eq!(files(folder.path()), [step(1), step(2), step(3)]);
    for trace in traces(folder.path()) {
        // Those that only gather run no optimizer.
        assert_eq!(trace.named("Training::update").len(), 1);
    }
}

#[test]
fn the_default_passes_over_what_is_no_step() {
    let folder = folder();
    quiet(
        folder.path(),
        "accumulate 8",
        &[("CANDLE_PROFILE", "traces")],
    );
    let trace = &traces(folder.path())[0];
    assert_eq!(trace.meta()["capture_step"], 2);
    assert_eq!(trace.named("Training::update").len(), 1);
    assert_eq!(files(folder.path()).len(), 1);
}

#[test]
fn the_default_passes_over_calls_that_hold_nothing() {
    let folder = folder();
    quiet(
        folder.path(),
        "empty-first 6",
        &[("CANDLE_PROFILE", "traces")],
    );
    assert_eq!(
        files(folder.path()),
        ["traces/train-modes-hollow_step-step4.jsonl"]
    );
    assert_eq!(traces(folder.path())[0].named("work").len(), 1);
}

#[test]
fn steps_asked_for_are_captured_even_where_they_hold_nothing() {
    assert_eq!(
        left("empty 4", "3"),
        ["t/train-modes-hollow_step-step3.jsonl"]
    );
}

#[test]
fn spans_that_run_count_where_spans_are_not_recorded() {
    let folder = folder();
    let variables = [
        ("CANDLE_PROFILE", "traces"),
        ("CANDLE_PROFILE_RECORD", "stats"),
    ];
    quiet(folder.path(), "empty-first 6", &variables);
    assert_eq!(
        files(folder.path()),
        ["traces/train-modes-hollow_step-step4.jsonl"]
    );
}

#[test]
fn threads_share_the_count() {
    let folder = folder();
    let variables = [
        ("CANDLE_PROFILE", "traces"),
        ("CANDLE_PROFILE_STEPS", "1..=24"),
    ];
    let ran = quiet(folder.path(), "threads 3", &variables);
    let weights: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(weights.len(), 8);
    assert!(weights.iter().all(|other| *other == weights[0]));
    let traces = traces(folder.path());
    assert_eq!(traces.len(), 24, "8 threads with 3 calls each");
    for trace in &traces {
        assert_eq!(trace.spans.len(), 7, "\n{}", trace.tree());
        assert!(
            trace
                .spans
                .iter()
                .all(|span| span.start["thread"].is_null())
        );
    }
    let mut steps: Vec<u64> = traces
        .iter()
        .filter_map(|trace| trace.meta()["capture_step"].as_u64())
        .collect();
    steps.sort_unstable();
    assert_eq!(steps, (1..=24).collect::<Vec<u64>>());
}

#[test]
fn calls_can_be_wished_for_from_the_program() {
    let folder = folder();
    quiet(
        folder.path(),
        "capture-next 9",
        &[("CANDLE_PROFILE", "traces")],
    );
    let wished = |step| format!("traces/wished-step{step}.jsonl");
    assert_eq!(
        files(folder.path()),
        [trace_of(2), trace_of(6), trace_of(7), wished(1), wished(2)]
    );
    quiet(folder.path(), "capture-next 9", &[]);
    assert_eq!(files(folder.path()).len(), 5, "off, it does nothing");
}

#[test]
fn a_wish_for_the_next_call_outlives_a_call_that_is_taken_back() {
    let folder = folder();
    let variables = [
        ("CANDLE_PROFILE", "traces"),
        ("CANDLE_PROFILE_STEPS", "999"),
        ("CANDLE_PROFILE_SUMMARY", "off"),
    ];
    train(folder.path(), "wish-taken-back 3", &variables);
    let names = files(&folder.path().join("traces"));
    assert_eq!(names.len(), 1, "{names:?}");
    assert!(names[0].ends_with("step1.jsonl"), "{names:?}");
}
