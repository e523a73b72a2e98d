//! What the variables change, and what is said of values that cannot be understood.

use std::fs;

use serde_json::json;
use tests::program::{files, traces};

use crate::{folder, plain_output, quiet, trace_of, train};

#[test]
fn a_value_that_is_not_understood_gives_one_line_and_no_profiling() {
    let plain = plain_output("plain 4");
    let cases = [
        ("CANDLE_PROFILE_STEPS", "0", "steps count from 1"),
        ("CANDLE_PROFILE_STEPS", "x", "3..6 or 3..=6 or every:100"),
        ("CANDLE_PROFILE_STEPS", "7..3", "7..3 is empty"),
        (
            "CANDLE_PROFILE_RECORD",
            "spans,hats",
            "spans, stats, scalars, ops, gradients, memory, or all",
        ),
        ("CANDLE_PROFILE_SYNC", "always", "none, measured or spans"),
        ("CANDLE_PROFILE_TAGS", "novalue", "key=value"),
        (
            "CANDLE_PROFILE_NONFINITE",
            "shout",
            "report, watch, stop, inf",
        ),
        ("CANDLE_PROFILE_BUDGET", "lots", "64MiB"),
        ("CANDLE_PROFILE_BUDGET", "1KiB", "too small: at least 64KiB"),
        ("CANDLE_PROFILE_SUMMARY", "stdout", "stderr, off, or a file"),
    ];
    for (variable, value, allowed) in cases {
        let folder = folder();
        let variables = [("CANDLE_PROFILE", "traces"), (variable, value)];
        let ran = train(folder.path(), "plain 4", &variables);
        let line = ran.only_line();
        assert!(
            line.starts_with(&format!("candle-profiler: {variable}={value} ")),
            "{line}"
        );
        assert!(line.contains(allowed), "{line}");
        assert_eq!((ran.code, &ran.stdout), (Some(0), &plain));
        assert_eq!(files(folder.path()), [] as [String; 0]);
    }
}

#[test]
fn a_misspelt_variable_is_named_where_profiling_is_on() {
    let folder = folder();
    let slips = [
        ("CANDLE_PROFILE_STEP", "secret"),
        ("CANDLE_PROFILER_RECORD", "all"),
        ("CANDLE_OTHER", "1"),
    ];
    let on = [
        ("CANDLE_PROFILE", "traces"),
        ("CANDLE_PROFILE_SUMMARY", "off"),
    ];
    let ran = train(folder.path(), "plain 4", &[&on[..], &slips].concat());
    assert_eq!(
        ran.stderr.lines().collect::<Vec<_>>(),
        [
            "candle-profiler: CANDLE_PROFILER_RECORD is no setting and is ignored; the nearest is CANDLE_PROFILE_RECORD",
            "candle-profiler: CANDLE_PROFILE_STEP is no setting and is ignored; the nearest is CANDLE_PROFILE_STEPS",
        ]
    );
    assert_eq!(files(folder.path()), [trace_of(2)]);
    let ran = train(folder.path(), "plain 4", &slips);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    // A value that is not understood hides none of them.
    let bad = [
        ("CANDLE_PROFILE", "traces"),
        ("CANDLE_PROFILE_STEPS", "x"),
        ("CANDLE_PROFILE_TAG", "a=b"),
    ];
    let ran = train(folder.path(), "plain 4", &bad);
    let lines: Vec<&str> = ran.stderr.lines().collect();
    let starts = [
        "candle-profiler: CANDLE_PROFILE_STEPS=x is not understood: ",
        "candle-profiler: CANDLE_PROFILE_TAG is no setting and is ignored; the nearest is CANDLE_PROFILE_TAGS",
    ];
    assert_eq!(lines.len(), 2, "{lines:?}");
    for (line, start) in lines.iter().zip(starts) {
        assert!(line.starts_with(start), "{line}");
    }
}

/// The kinds of lines in the trace of one step, recorded with this list of planes.
fn kinds(planes: &str) -> (usize, Vec<String>) {
    let folder = folder();
    let variables = [
        ("CANDLE_PROFILE", "traces"),
        ("CANDLE_PROFILE_RECORD", planes),
    ];
    quiet(folder.path(), "plain 3", &variables);
    let trace = &traces(folder.path())[0];
    let labels = trace.labels().into_iter().map(str::to_owned).collect();
    (trace.spans.len(), labels)
}

#[test]
fn planes_can_be_chosen() {
    let of = |spans, labels: &[&str]| {
        let labels = labels.iter().map(|label| (*label).to_owned()).collect();
        (spans, labels)
    };
    assert_eq!(kinds("all"), of(7, &["input", "hidden", "logits", "loss"]));
    assert_eq!(kinds("-stats"), of(7, &["loss"]));
    assert_eq!(kinds("spans"), of(7, &[]));
    assert_eq!(kinds("spans,scalars"), of(7, &["loss"]));
    assert_eq!(
        kinds("-spans"),
        of(2, &["input", "hidden", "logits", "loss"])
    );
    assert_eq!(kinds("scalars"), of(2, &["loss"]));
}

#[test]
fn what_is_switched_off_is_not_declared() {
    for (planes, level) in [("all", "partial"), ("-stats", "none")] {
        let folder = folder();
        let variables = [
            ("CANDLE_PROFILE", "traces"),
            ("CANDLE_PROFILE_RECORD", planes),
        ];
        quiet(folder.path(), "plain 3", &variables);
        let trace = &traces(folder.path())[0];
        assert_eq!(trace.meta()["capture_contract"]["tensors"], level);
    }
}

#[test]
fn evidence_of_spans_that_are_not_recorded_is_the_measured_spans_and_so_is_its_cost() {
    let folder = folder();
    let variables = [
        ("CANDLE_PROFILE", "traces"),
        ("CANDLE_PROFILE_RECORD", "-spans"),
    ];
    quiet(folder.path(), "plain 3", &variables);
    let trace = &traces(folder.path())[0];
    let measured = trace.measured();
    assert_eq!(trace.stats("input")["span_id"], measured.id);
    assert_eq!(trace.stats("logits")["span_id"], measured.id);
    let overhead = measured.end["overhead_ns"].as_u64().expect("a cost");
    assert!(overhead > 0);
    // What the spans that are not recorded cost is passed on, up to the root.
    assert_eq!(trace.spans[0].end["overhead_ns"], overhead);
}

#[test]
fn a_measured_future_outlives_the_spans_in_it_that_are_not_recorded() {
    let of = |planes| {
        let folder = folder();
        let variables = [
            ("CANDLE_PROFILE", "traces"),
            ("CANDLE_PROFILE_RECORD", planes),
        ];
        quiet(folder.path(), "awaited 3", &variables);
        traces(folder.path())[0].tree()
    };
    let records = "= input\n    = hidden\n    = logits\n";
    assert_eq!(
        of("-spans"),
        format!(
            "train::modes::awaited_step*\n  {}",
            records.replace("    ", "  ")
        )
    );
    assert_eq!(
        of("spans"),
        "train::modes::awaited_step*\n  \
           train::modes::asked\n    \
             Model::forward forward\n      \
               Linear::forward module\n      \
               Linear::forward module\n  \
           after\n"
    );
}

#[test]
fn the_summary_fits_a_narrow_page_and_has_no_colour_where_nobody_looks() {
    let folder = folder();
    let ran = train(folder.path(), "plain 3", &[("CANDLE_PROFILE", "traces")]);
    assert!(
        ran.stderr
            .starts_with("train::model::train_step: train step 2 on cpu")
    );
    for line in ran.stderr.lines() {
        assert!(!line.contains('\u{1b}'), "{line:?}");
        let is_path = line.contains(&*folder.path().to_string_lossy());
        assert!(is_path || line.chars().count() <= 80, "{line:?}");
    }
    let path = folder.path().join(trace_of(2));
    assert!(ran.stderr.contains(&format!("trace  {}", path.display())));
    for part in [
        "loss",
        "Model::forward",
        "Linear::forward",
        "backward",
        "between steps",
        "candle-profile view",
    ] {
        assert!(ran.stderr.contains(part), "{part} in\n{}", ran.stderr);
    }
    assert!(ran.stderr.contains("built without optimisation") || !cfg!(debug_assertions));
}

#[test]
fn the_summary_goes_where_it_is_wanted() {
    let folder = folder();
    let to = |summary| {
        [
            ("CANDLE_PROFILE", "traces"),
            ("CANDLE_PROFILE_STEPS", "2,3"),
            ("CANDLE_PROFILE_SUMMARY", summary),
        ]
    };
    let ran = train(folder.path(), "plain 3", &to("summary.txt"));
    assert_eq!(ran.stderr, "");
    let text = fs::read_to_string(folder.path().join("summary.txt")).expect("a summary");
    assert!(
        text.contains("train step 2 on cpu") && text.contains("train step 3 on cpu"),
        "{text}"
    );
    for off in ["off", "none", "No", "0"] {
        let ran = train(folder.path(), "plain 3", &to(off));
        assert_eq!(ran.stderr, "");
        assert!(!folder.path().join(off).exists(), "no file of that name");
    }
    let ran = train(folder.path(), "plain 3", &to("stderr"));
    assert!(ran.stderr.contains("train step 3 on cpu"));
    let ran = train(folder.path(), "plain 3", &to("nowhere/summary.txt"));
    assert!(ran.only_line().contains("nowhere/summary.txt"));
    assert_eq!(ran.code, Some(0));
}

#[test]
fn tags_stand_in_the_meta_line() {
    let folder = folder();
    let variables = [
        ("CANDLE_PROFILE", "traces"),
        ("CANDLE_PROFILE_TAGS", "data=digits, run = 7,empty="),
    ];
    quiet(folder.path(), "plain 3", &variables);
    let trace = &traces(folder.path())[0];
    assert_eq!(
        trace.meta()["tags"],
        json!({"data": "digits", "empty": "", "run": "7"})
    );
}

#[test]
fn nothing_private_gets_into_the_trace() {
    let folder = folder();
    let secrets = [
        ("SECRET_TOKEN", "hunter2"),
        ("HF_TOKEN", "hf_sesame"),
        ("USER", "somebody"),
        ("LOGNAME", "somebodyelse"),
        ("HOME", "/home/somebody"),
        ("HOSTNAME", "somewhere"),
        ("CANDLE_PROFILE_UNHEARD_OF", "unheard"),
    ];
    let mut variables = vec![("CANDLE_PROFILE", "traces")];
    variables.extend(secrets);
    variables.push(("CANDLE_PROFILE_SUMMARY", "off"));
    let ran = train(folder.path(), "samples 3", &variables);
    // Its name is told, as it looks like a setting; its value is not.
    let line = ran.only_line();
    let start =
        "candle-profiler: CANDLE_PROFILE_UNHEARD_OF is no setting and is ignored; allowed: ";
    assert!(line.starts_with(start), "{line}");
    assert!(!line.contains("unheard"), "{line}");
    let trace = fs::read_to_string(
        folder
            .path()
            .join("traces/train-modes-sampling_step-step2.jsonl"),
    );
    let trace = trace.expect("a trace");
    for (_, secret) in secrets {
        assert!(!trace.contains(secret), "{secret}");
    }
    if let Ok(host) = fs::read_to_string("/proc/sys/kernel/hostname") {
        assert!(!trace.contains(host.trim()), "{host}");
    }
    // The smallest and the largest element are statistics; no other element is told.
    for sample in 1..15 {
        let text = format!("{}", 100_003 + sample * 1009);
        assert!(!trace.contains(&text), "element {sample}");
    }
    assert!(trace.contains("100003") && trace.contains("115138"));
}

#[test]
fn settings_can_be_made_in_the_program_before_annotated_code_runs() {
    let folder = folder();
    let variables = [
        ("CANDLE_PROFILE", "elsewhere"),
        ("CANDLE_PROFILE_STEPS", "3"),
    ];
    let ran = train(folder.path(), "configure 5", &variables);
    assert!(ran.stderr.contains("train step 4 on cpu"), "{}", ran.stderr);
    assert_eq!(
        files(folder.path()),
        ["configured/train-model-train_step-step4.jsonl"]
    );
    assert_eq!(
        traces(folder.path())[0].meta()["tags"],
        json!({"by": "hand"})
    );
}

#[test]
fn settings_made_too_late_are_refused_and_change_nothing() {
    let folder = folder();
    let variables = [("CANDLE_PROFILE", "traces"), ("CANDLE_PROFILE_STEPS", "3")];
    let ran = quiet(folder.path(), "configure-late 5", &variables);
    assert!(
        ran.stdout
            .starts_with("refused: configure was called after annotated code had run"),
        "{}",
        ran.stdout
    );
    assert_eq!(files(folder.path()), [trace_of(3)]);
    let off = crate::folder();
    let ran = quiet(off.path(), "configure-late 5", &[]);
    assert!(ran.stdout.starts_with("refused: "), "off is a setting too");
    assert_eq!(files(off.path()), [] as [String; 0]);
}

#[test]
fn a_trace_keeps_within_its_budget_and_counts_what_it_left_out() {
    let folder = folder();
    let variables = [
        ("CANDLE_PROFILE", "traces"),
        ("CANDLE_PROFILE_SUMMARY", "off"),
        ("CANDLE_PROFILE_BUDGET", "64KiB"),
    ];
    let ran = train(folder.path(), "flood 2", &variables);
    let line = ran.only_line();
    let start = "candle-profiler: traces/train-modes-flood_step-step2.jsonl: ";
    assert!(line.starts_with(start), "{line}");
    assert!(line.contains(" spans and records were left out"), "{line}");
    assert!(line.contains("a larger CANDLE_PROFILE_BUDGET"), "{line}");
    let written = folder.path().join("traces");
    let path = written.join(&files(&written)[0]);
    let trace = traces(&written).remove(0);
    assert!(fs::metadata(path).unwrap().len() <= 64 * 1024);
    let recorded = trace.named("train::modes::burst_inner").len() as u64;
    let dropped = &trace.terminal()["dropped"];
    let left_out = dropped["train::modes::burst_inner"].as_u64().unwrap();
    assert!(recorded > 100, "{recorded}");
    assert_eq!(recorded + left_out, 2000);
}

#[test]
fn a_word_for_no_is_off_and_no_folder() {
    for no in ["no", "NONE", "Disabled", "false"] {
        let folder = folder();
        let ran = train(folder.path(), "plain 3", &[("CANDLE_PROFILE", no)]);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{no}");
        assert_eq!(files(folder.path()), [] as [String; 0]);
    }
}
