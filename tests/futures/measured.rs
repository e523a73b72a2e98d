//! Measured async functions: how they count and which calls are captured.

use std::pin::pin;

use candle_profiler::{measured, profile_span, span};
use tests::capturing::{capture, captures};
use tests::program::{self, files};

use crate::{poll_once, turn, wait};

fn numbers(traces: &[tests::trace::Trace]) -> Vec<u64> {
    let steps = traces.iter().map(|trace| &trace.meta()["capture_step"]);
    steps.map(|step| step.as_u64().expect("a number")).collect()
}

#[test]
fn calls_count_from_their_first_poll() {
    #[measured(name = "counted first poll")]
    async fn counted(id: u32) {
        turn().await;
        span(format!("call {id}")).end();
    }
    let ((), traces) = captures(|| {
        let first = counted(1);
        drop(counted(2));
        let mut third = pin!(counted(3));
        assert!(poll_once(third.as_mut()).is_pending());
        wait(first);
        wait(third);
    });
    assert_eq!(numbers(&traces), [1, 2]);
    let names: Vec<_> = traces
        .iter()
        .map(|trace| trace.spans[2].name.as_str())
        .collect();
    assert_eq!(names, ["call 3", "call 1"]);
}

#[test]
fn two_at_once_are_two_sessions() {
    #[profile_span(name = "part {id}")]
    async fn part(id: u32) {
        turn().await;
        span(format!("leaf {id}")).end();
    }
    #[measured(name = "at once")]
    async fn at_once(id: u32) {
        span(format!("leaf {id}")).end();
        part(id).await;
        turn().await;
        part(id).await;
    }
    let ((), traces) = captures(|| {
        wait(async {
            tokio::join!(at_once(1), at_once(2), at_once(3));
        });
    });
    assert_eq!(numbers(&traces), [1, 2, 3]);
    for (trace, id) in traces.iter().zip(1..) {
        let part = format!("  part {id}\n    leaf {id}\n");
        assert_eq!(trace.tree(), format!("at once*\n  leaf {id}\n{part}{part}"));
        assert_eq!(trace.reason(), None);
    }
}

#[test]
fn a_measured_future_inside_a_measured_call_is_a_plain_span() {
    #[measured(name = "inner future")]
    async fn inner() {
        turn().await;
        span("leaf").end();
    }
    #[measured(name = "outer future")]
    async fn outer() {
        inner().await;
        tokio::join!(inner(), inner());
    }
    let ((), trace) = capture(|| wait(outer()));
    assert_eq!(
        trace.tree(),
        "outer future*\n  inner future\n    leaf\n  inner future\n    leaf\n  inner future\n    leaf\n"
    );
    let ((), trace) = capture(|| wait(inner()));
    assert_eq!(
        trace.meta()["capture_step"],
        1,
        "those inside did not count"
    );
}

#[test]
fn a_future_between_the_polls_of_a_measured_one_is_not_in_it() {
    #[measured(name = "beside")]
    async fn beside(id: u32) {
        turn().await;
        span(format!("beside {id}")).end();
    }
    let ((), traces) = captures(|| {
        let mut first = pin!(beside(1));
        assert!(poll_once(first.as_mut()).is_pending());
        span("no capture is current here").end();
        wait(beside(2));
        assert!(poll_once(first.as_mut()).is_ready());
    });
    assert_eq!(numbers(&traces), [1, 2]);
    for (trace, id) in traces.iter().zip(1..) {
        assert_eq!(trace.tree(), format!("beside*\n  beside {id}\n"));
    }
}

#[measured(name = "selected")]
async fn selected(id: u32) {
    turn().await;
    span(format!("call {id}")).end();
}

/// Not a test by itself: the program of the next one.
#[test]
#[ignore = "run as a program by another test"]
fn program_of_five_calls() {
    let mut all: Vec<_> = (1..=5).map(|id| Box::pin(selected(id))).collect();
    while !all.is_empty() {
        all.retain_mut(|future| poll_once(future.as_mut()).is_pending());
    }
}

#[test]
fn steps_asked_for_are_captured_and_no_others() {
    let program = std::env::current_exe().expect("this program");
    for (steps, expected) in [
        ("2,4", vec![2, 4]),
        ("selected:every:2", vec![2, 4]),
        ("", vec![2]),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let ran = program::run(
            program.to_str().expect("UTF-8"),
            folder.path(),
            &["--exact", "measured::program_of_five_calls", "--ignored"],
            &[
                ("CANDLE_PROFILE", "t"),
                ("CANDLE_PROFILE_SUMMARY", "off"),
                ("CANDLE_PROFILE_STEPS", steps),
            ],
        );
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
        let files = files(folder.path());
        let names: Vec<String> = expected
            .iter()
            .map(|step| format!("t/selected-step{step}.jsonl"))
            .collect();
        assert_eq!(files, names);
        for (trace, step) in program::traces(folder.path()).iter().zip(expected) {
            assert_eq!(trace.tree(), format!("selected*\n  call {step}\n"));
        }
    }
}
