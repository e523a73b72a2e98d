//! What is said on stderr: one line where something cannot be, and at the end of the program where nothing came of it.

use std::fs;
use std::process::Command;

use tests::program::{files, traces};

use crate::{NAME, folder, plain_output, trace_of, train};

#[test]
fn a_step_that_was_never_reached_is_told_with_the_calls_seen() {
    let folder = folder();
    let variables = [
        ("CANDLE_PROFILE", "traces"),
        ("CANDLE_PROFILE_STEPS", "50"),
        ("CANDLE_PROFILE_SUMMARY", "off"),
    ];
    let ran = train(folder.path(), "plain 4", &variables);
    let line = ran.only_line();
    assert!(
        line.contains("step 50 was asked for but never reached"),
        "{line}"
    );
    assert!(line.contains(&format!("{NAME} 4")), "{line}");
    assert_eq!(ran.stdout, plain_output("plain 4"));
    assert_eq!(files(folder.path()), [] as [String; 0]);
    let some = [
        ("CANDLE_PROFILE", "traces"),
        ("CANDLE_PROFILE_STEPS", "2,evaluate:1"),
        ("CANDLE_PROFILE_SUMMARY", "off"),
    ];
    let ran = train(folder.path(), "plain 4", &some);
    assert!(
        ran.only_line().contains("step evaluate:1 was asked for"),
        "{}",
        ran.stderr
    );
    assert_eq!(files(folder.path()), [trace_of(2)]);
}

#[test]
fn a_step_taken_back_was_not_reached() {
    let folder = folder();
    let variables = [
        ("CANDLE_PROFILE", "traces"),
        ("CANDLE_PROFILE_STEPS", "1,2"),
        ("CANDLE_PROFILE_SUMMARY", "off"),
    ];
    // Calls 1 and 3 are no steps: what would have been step 2 never came.
    let ran = train(folder.path(), "accumulate 3", &variables);
    assert!(
        ran.only_line()
            .contains("step 2 was asked for but never reached"),
        "{}",
        ran.stderr
    );
    assert_eq!(traces(folder.path()).len(), 1);
}

#[test]
fn a_program_of_which_nothing_was_captured_is_told_so() {
    let folder = folder();
    let on = [("CANDLE_PROFILE", "traces")];
    let ran = train(folder.path(), "plain 1", &on);
    let line = ran.only_line();
    assert!(line.contains("nothing was captured"), "{line}");
    assert!(line.contains(&format!("{NAME} 1")), "{line}");
    assert!(
        line.ends_with(
            ": by default it is the 2nd call of a training step; CANDLE_PROFILE_STEPS=1 takes the first"
        ),
        "{line}"
    );
    let first = [on[0], ("CANDLE_PROFILE_STEPS", "1")];
    let taken = crate::folder();
    crate::quiet(taken.path(), "plain 1", &first);
    assert_eq!(files(taken.path()), [trace_of(1)]);
    let ran = train(folder.path(), "unmeasured 3", &on);
    let line = ran.only_line();
    assert!(
        line.contains("nothing was captured") && line.contains("#[measured]"),
        "{line}"
    );
    let ran = train(folder.path(), "untouched", &on);
    assert_eq!(ran.stderr, "", "no annotated code ran");
    assert_eq!(files(folder.path()), [] as [String; 0]);
}

#[test]
fn an_empty_trace_is_better_than_none_and_says_what_it_is() {
    let folder = folder();
    let ran = train(folder.path(), "empty 6", &[("CANDLE_PROFILE", "traces")]);
    let line = ran.only_line();
    assert!(
        line.contains("train::modes::hollow_step ran nothing annotated"),
        "{line}"
    );
    assert_eq!(
        files(folder.path()),
        ["traces/train-modes-hollow_step-step2.jsonl"]
    );
    let trace = &traces(folder.path())[0];
    assert_eq!(trace.tree(), "train::modes::hollow_step*\n");
    assert_eq!(trace.meta()["capture_step"], 2);
}

#[test]
fn a_place_that_cannot_be_written_is_told_once_and_the_program_runs_on() {
    let plain = plain_output("plain 6");
    let folder = folder();
    fs::write(folder.path().join("taken"), "a file").expect("to write");
    let cases = [
        ("taken", "is a file"),
        ("taken/below", ""),
        ("/proc/traces", ""),
        ("/proc/trace.jsonl", ""),
    ];
    for (place, why) in cases {
        for steps in ["", "2..5"] {
            let variables = [("CANDLE_PROFILE", place), ("CANDLE_PROFILE_STEPS", steps)];
            let ran = train(folder.path(), "plain 6", &variables);
            let line = ran.only_line();
            assert!(line.contains(place) && line.contains(why), "{line}");
            assert_eq!((ran.code, &ran.stdout), (Some(0), &plain), "{place}");
        }
    }
    assert_eq!(files(folder.path()), ["taken"]);
}

#[test]
fn what_a_dead_process_left_is_named_and_kept() {
    let folder = folder();
    let traces = folder.path().join("traces");
    fs::create_dir(&traces).expect("a folder");
    let mut dead = Command::new("true").spawn().expect("a process");
    dead.wait().expect("its end");
    let left = "traces/train-model-train_step-step2.jsonl.partial";
    let meta = format!("{{\"kind\":\"meta\",\"run_id\":\"run-{}-1\"}}\n", dead.id());
    fs::write(folder.path().join(left), &meta).expect("to write");
    let variables = [
        ("CANDLE_PROFILE", "traces"),
        ("CANDLE_PROFILE_STEPS", "2,3"),
        ("CANDLE_PROFILE_SUMMARY", "off"),
    ];
    let ran = train(folder.path(), "plain 4", &variables);
    let line = ran.only_line();
    assert!(
        line.contains(left) && line.contains("candle-profile repair"),
        "{line}"
    );
    assert_eq!(
        fs::read_to_string(folder.path().join(left)).expect("the file"),
        meta
    );
    let alive = format!(
        "{{\"kind\":\"meta\",\"run_id\":\"run-{}-1\"}}\n",
        std::process::id()
    );
    fs::write(folder.path().join(left), alive).expect("to write");
    let ran = train(folder.path(), "plain 4", &variables);
    assert_eq!(ran.stderr, "", "its process is at work");
}
