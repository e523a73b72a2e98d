//! Where traces go: names, numbers, ranks, what is kept and what replaced.

use std::fs;

use serde_json::json;
use tests::program::{files, traces};

use crate::{folder, quiet, trace_of, train};

#[test]
fn nothing_is_overwritten() {
    let folder = folder();
    let variables = [("CANDLE_PROFILE", "traces")];
    quiet(folder.path(), "plain 3", &variables);
    let first = fs::read(folder.path().join(trace_of(2))).expect("a trace");
    quiet(folder.path(), "plain 3", &variables);
    quiet(folder.path(), "plain 3", &variables);
    assert_eq!(
        files(folder.path()),
        [
            "traces/train-model-train_step-step2-2.jsonl".to_owned(),
            "traces/train-model-train_step-step2-3.jsonl".to_owned(),
            trace_of(2),
        ]
    );
    assert_eq!(
        fs::read(folder.path().join(trace_of(2))).expect("a trace"),
        first
    );
    assert_eq!(traces(folder.path()).len(), 3);
}

#[test]
fn an_exact_name_is_replaced_by_the_next_run() {
    let folder = folder();
    let variables = [("CANDLE_PROFILE", "deep/run.jsonl")];
    quiet(folder.path(), "plain 3", &variables);
    let run = |index: usize| traces(folder.path())[index].meta()["run_id"].clone();
    let first = run(0);
    quiet(folder.path(), "plain 3", &variables);
    assert_eq!(files(folder.path()), ["deep/run.jsonl"]);
    assert_ne!(run(0), first);
}

#[test]
fn a_second_trace_of_the_same_run_gets_a_longer_name() {
    let folder = folder();
    let variables = [
        ("CANDLE_PROFILE", "run.jsonl"),
        ("CANDLE_PROFILE_STEPS", "2,4"),
    ];
    for _ in 0..2 {
        quiet(folder.path(), "plain 5", &variables);
    }
    assert_eq!(
        files(folder.path()),
        [
            "run-train-model-train_step-step4-2.jsonl",
            "run-train-model-train_step-step4.jsonl",
            "run.jsonl",
        ]
    );
    assert_eq!(traces(folder.path())[2].meta()["capture_step"], 2);
}

#[test]
fn an_empty_capture_that_gives_way_frees_the_exact_name() {
    let folder = folder();
    quiet(
        folder.path(),
        "empty-first 6",
        &[("CANDLE_PROFILE", "run.jsonl")],
    );
    assert_eq!(files(folder.path()), ["run.jsonl"]);
    assert_eq!(traces(folder.path())[0].named("work").len(), 1);
}

/// Each launcher's name for the rank, and for how many there are.
const LAUNCHERS: [[&str; 2]; 4] = [
    ["RANK", "WORLD_SIZE"],
    ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"],
    ["PMI_RANK", "PMI_SIZE"],
    ["SLURM_PROCID", "SLURM_NTASKS"],
];

/// Three processes at once; gives what is in their folder.
fn three_ranks([rank, world]: [&str; 2], place: &str) -> tempfile::TempDir {
    let folder = folder();
    let spawn = |number| {
        let variables = [
            ("CANDLE_PROFILE", place),
            ("CANDLE_PROFILE_SUMMARY", "off"),
            (rank, number),
            (world, "3"),
        ];
        let train = env!("CARGO_BIN_EXE_train");
        let child = tests::program::command(train, folder.path(), &["plain", "3"], &variables);
        { child }.spawn().expect("a child")
    };
    for child in ["0", "1", "2"].map(spawn) {
        let output = child.wait_with_output().expect("its end");
        assert!(output.status.success() && output.stderr.is_empty());
    }
    folder
}

#[test]
fn a_rank_stands_in_name_and_tags() {
    for launcher in LAUNCHERS {
        let folder = three_ranks(launcher, "traces");
        let name = |rank| format!("traces/train-model-train_step-step2-rank{rank}.jsonl");
        assert_eq!(files(folder.path()), [0, 1, 2].map(name));
        for (rank, trace) in traces(folder.path()).iter().enumerate() {
            let tags = json!({"rank": rank.to_string(), "world_size": "3"});
            assert_eq!(trace.meta()["tags"], tags);
        }
        let exact = three_ranks(launcher, "run.jsonl");
        let name = |rank| format!("run-rank{rank}.jsonl");
        assert_eq!(files(exact.path()), [0, 1, 2].map(name));
    }
}

#[test]
fn the_program_knows_its_rank_best() {
    let folder = folder();
    let variables = [
        ("CANDLE_PROFILE", "traces"),
        ("RANK", "3"),
        ("WORLD_SIZE", "4"),
    ];
    quiet(folder.path(), "rank 3", &variables);
    assert_eq!(
        files(folder.path()),
        ["traces/train-model-train_step-step2-rank6.jsonl"]
    );
    let tags = traces(folder.path())[0].meta()["tags"].clone();
    assert_eq!(tags, json!({"rank": "6", "world_size": "8"}));
}

#[test]
fn processes_that_run_side_by_side_never_share_a_file() {
    let folder = folder();
    let variables = [
        ("CANDLE_PROFILE", "traces"),
        ("CANDLE_PROFILE_SUMMARY", "off"),
    ];
    let children: Vec<_> = (0..6)
        .map(|_| {
            tests::program::command(
                env!("CARGO_BIN_EXE_train"),
                folder.path(),
                &["plain", "3"],
                &variables,
            )
            .spawn()
            .expect("a child")
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().expect("its end");
        assert!(output.status.success() && output.stderr.is_empty());
    }
    let traces = traces(folder.path());
    let runs: std::collections::BTreeSet<String> = traces
        .iter()
        .map(|trace| trace.meta()["run_id"].to_string())
        .collect();
    assert_eq!(
        (traces.len(), runs.len(), files(folder.path()).len()),
        (6, 6, 6)
    );
}

#[test]
fn a_rank_that_makes_no_sense_is_told_and_stands_nowhere() {
    let on = [
        ("CANDLE_PROFILE", "traces"),
        ("CANDLE_PROFILE_SUMMARY", "off"),
    ];
    for (rank, world, said) in [
        (
            "2",
            "2",
            "RANK=2 is not understood: WORLD_SIZE=2, so the last rank is 1; ",
        ),
        ("x", "2", "RANK=x is not understood: "),
        ("-1", "2", "RANK=-1 is not understood: "),
        ("0", "two", "WORLD_SIZE=two is not understood: "),
    ] {
        let folder = folder();
        let launched = [("RANK", rank), ("WORLD_SIZE", world)];
        let ran = train(folder.path(), "plain 3", &[&on[..], &launched].concat());
        let line = ran.only_line();
        let start = format!("candle-profiler: {said}");
        assert!(line.starts_with(&start), "{line}");
        assert!(line.contains("; allowed: a whole number from "), "{line}");
        assert!(line.ends_with("; traces have no rank"), "{line}");
        assert_eq!(files(folder.path()), [trace_of(2)]);
        assert_eq!(traces(folder.path())[0].meta()["tags"], json!({}));
    }
    // A program that tells its rank itself knows better.
    let told = folder();
    let launched = [("RANK", "x"), on[0]];
    quiet(told.path(), "rank 3", &launched);
    assert!(files(told.path())[0].ends_with("-rank6.jsonl"));
    let off = folder();
    let ran = train(off.path(), "plain 3", &[("RANK", "x")]);
    assert_eq!(ran.stderr, "");
}

#[test]
fn a_folder_in_place_of_the_exact_file_is_told_once() {
    let folder = folder();
    fs::create_dir(folder.path().join("d.jsonl")).expect("a folder");
    let variables = [
        ("CANDLE_PROFILE", "d.jsonl"),
        ("CANDLE_PROFILE_STEPS", "2,3"),
        ("CANDLE_PROFILE_SUMMARY", "off"),
    ];
    let ran = train(folder.path(), "plain 3", &variables);
    assert_eq!(
        ran.only_line(),
        "candle-profiler: d.jsonl is a folder, so the trace is d-2.jsonl (CANDLE_PROFILE=d.jsonl/ puts traces into the \
         folder)"
    );
    assert_eq!(
        files(folder.path()),
        ["d-2.jsonl", "d-train-model-train_step-step3.jsonl"]
    );
    quiet(folder.path(), "plain 3", &[("CANDLE_PROFILE", "d.jsonl/")]);
    let inside = files(&folder.path().join("d.jsonl"));
    assert_eq!(inside, ["train-model-train_step-step2.jsonl"]);
}
