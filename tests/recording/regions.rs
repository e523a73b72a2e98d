//! Measured regions: which call is one, what its trace tells of it, and sessions opened by hand.

use std::time::{Duration, Instant};

use candle_core::{DType, Device, Tensor};
use candle_profiler::{
    ProfileRun, TraceSession, measure, measured, profile_span, record_scalar, span,
};
use serde_json::json;
use tests::capturing::{capture, captures, region};
use tests::trace::Trace;

#[profile_span(name = "work")]
fn work() {}

#[measured(name = "inner")]
fn inner() -> Result<(), String> {
    work();
    Err("handled".to_owned())
}

#[measured(name = "outer")]
fn outer() {
    let _ = inner();
    let _measured = measure("free");
    work();
}

#[test]
fn a_measured_call_in_another_is_a_plain_span_and_does_not_count() {
    let ((), trace) = capture(outer);
    assert_eq!(
        trace.tree(),
        "outer*\n  inner\n    work\n  free\n    work\n"
    );
    assert_eq!(trace.meta()["capture_step"], 1);
    let (_, trace) = capture(inner);
    assert_eq!(
        trace.meta()["capture_step"],
        1,
        "the call in `outer` was not counted"
    );
    assert_eq!(trace.reason(), Some("handled"));
    let (_, trace) = capture(inner);
    assert_eq!(trace.meta()["capture_step"], 2);
}

struct Trainer {
    device: Device,
}

impl Trainer {
    #[measured(infer, device = &self.device, items = batch * 2, tags(epoch = epoch, "lr" = format!("{:.3}", 0.1)))]
    fn evaluate(&self, epoch: u32, batch: usize) {
        work();
    }

    #[measured]
    fn step(&mut self, x: &Tensor) -> usize {
        x.elem_count()
    }
}

#[test]
fn the_meta_line_tells_what_the_attribute_says() {
    let mut trainer = Trainer {
        device: Device::Cpu,
    };
    let ((), trace) = capture(|| trainer.evaluate(3, 16));
    let meta = trace.meta();
    assert_eq!(
        (&meta["entrypoint"], &meta["phase"]),
        (&json!("Trainer::evaluate"), &json!("infer"))
    );
    assert_eq!(meta["device"], "cpu");
    assert_eq!(
        meta["tags"],
        json!({"epoch": "3", "items": "32", "lr": "0.100"})
    );
    assert_eq!(trace.spans[0].name, "Trainer::evaluate");
    let x = Tensor::zeros(6, DType::F32, &Device::Cpu).expect("a tensor");
    let (n, trace) = capture(|| trainer.step(&x));
    assert_eq!(
        (n, trace.meta()["device"].as_str()),
        (6, Some("cpu")),
        "told by an argument"
    );
    let ((), trace) = capture(outer);
    assert_eq!(trace.meta()["device"], "unknown");
}

#[test]
fn each_call_is_a_run_of_its_own() {
    let ((), traces) = captures(|| (0..3).for_each(|_| drop(measure("run of its own"))));
    let ids: std::collections::BTreeSet<String> = traces
        .iter()
        .map(|trace| trace.meta()["run_id"].to_string())
        .collect();
    assert_eq!((traces.len(), ids.len()), (3, 3));
}

#[measured(name = "loop")]
fn body(turn: u32) -> Option<u32> {
    (turn != 1).then_some(turn)
}

#[profile_span]
fn inline_loop() -> u32 {
    let mut sum = 0;
    #[measured(name = "turn")]
    for turn in 0..5_u32 {
        #[record_scalar("number")]
        let number = turn;
        if number == 1 {
            continue;
        }
        if number == 3 {
            break;
        }
        work();
        sum += number;
    }
    sum
}

#[test]
fn each_turn_of_a_measured_loop_is_a_call() {
    let (sum, traces) = captures(inline_loop);
    assert_eq!(sum, 2);
    let trees: Vec<String> = traces.iter().map(Trace::tree).collect();
    let with = "turn*\n  = number\n  work\n";
    let without = "turn*\n  = number\n";
    assert_eq!(trees, [with, without, with, without]);
    assert!(traces.iter().all(|trace| trace.reason().is_none()));
    let steps: Vec<&str> = traces
        .iter()
        .filter_map(|trace| trace.meta()["correlation_id"].as_str())
        .collect();
    assert_eq!(
        steps,
        [
            "turn/update-1",
            "turn/update-2",
            "turn/update-3",
            "turn/update-4"
        ]
    );
    assert_eq!(capture(|| body(1)).0, None);
}

/// What is asked of a call only once it is to be captured takes long here.
#[measured(name = "slow to open", tags(slow = slow()))]
fn slow_to_open() {
    work();
}

const SLOW: Duration = Duration::from_millis(400);

fn slow() -> u32 {
    std::thread::sleep(SLOW);
    1
}

#[test]
fn the_time_since_the_last_call_is_the_programs_alone() {
    let (between, traces) = captures(|| {
        slow_to_open();
        let since = Instant::now();
        std::thread::sleep(Duration::from_millis(20));
        let between = since.elapsed();
        slow_to_open();
        between
    });
    let since = |index: usize| traces[index].measured().start["since_previous_ns"].as_u64();
    assert_eq!(since(0), None, "there was none before");
    let since = Duration::from_nanos(since(1).expect("a time"));
    assert!(
        since >= Duration::from_millis(20) && since < between + SLOW,
        "{since:?} {between:?}"
    );
}

/// The trace of a session by hand in which `work` runs.
fn by_hand(work: impl FnOnce(&TraceSession)) -> Trace {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("by-hand.jsonl");
    let session =
        TraceSession::open(&path, ProfileRun::training("by hand", 4, "cpu")).expect("a session");
    work(&session);
    session.finish().expect("a complete trace");
    Trace::read(&path)
}

#[test]
fn in_a_session_by_hand_the_first_region_is_the_measured_one() {
    let ((), traces) = captures(|| {
        let trace = by_hand(|session| {
            let _entered = session.enter();
            work();
            outer();
            let _ = inner();
            candle_profiler::record_scalar("loss", &0.5);
        });
        assert_eq!(
            trace.tree(),
            "= loss\nwork\nouter*\n  inner\n    work\n  free\n    work\ninner\n  work\n"
        );
        assert_eq!(trace.meta()["capture_step"], 4);
        assert_eq!(trace.spans[0].name, "by hand");
    });
    assert_eq!(
        traces.len(),
        0,
        "a call in a session by hand opens no trace of its own"
    );
}

#[test]
fn spans_by_hand_and_by_attribute_nest_in_each_other() {
    let trace = by_hand(|session| {
        let entered = session.enter();
        {
            let _measured = session.begin_measurement("measured");
            let _span = span("free");
            let _module = session.begin_span("module", candle_profiler::SpanKind::Module);
            work();
        }
        drop(entered);
        work();
    });
    assert_eq!(
        trace.tree(),
        "measured*\n  free\n    module module\n      work\n"
    );
}

#[test]
fn outside_of_any_region_nothing_is_recorded() {
    let ((), traces) = captures(|| {
        work();
        let _ = inline();
        candle_profiler::record_scalar("lonely", &1);
        let _span = span("lonely");
    });
    assert_eq!(traces.len(), 0);
    let ((), trace) = region(|| ());
    assert_eq!(trace.tree(), "region*\n");
}

#[record_scalar("lonely")]
fn inline() -> u32 {
    1
}
