//! Spans of other threads, through handles.

use std::sync::mpsc;
use std::thread;

use candle_core::{DType, Device, Tensor};
use candle_profiler::{
    ExecutionStep, Handle, current, measured, profile_span, record_stats, span, step_span,
};
use serde_json::Value;
use tests::capturing::{captures, region};

#[profile_span(name = "load")]
fn load() {
    span("decode").end();
}

fn on_a_thread(name: &str, work: impl FnOnce() + Send) {
    thread::scope(|scope| {
        let spawned = thread::Builder::new()
            .name(name.to_owned())
            .spawn_scoped(scope, work);
        spawned.expect("a thread").join().expect("no panic");
    });
}

#[test]
fn a_span_of_another_thread_is_the_handles_child_and_says_whose_it_is() {
    let ((), trace) = region(|| {
        let _batch = span("batch");
        let handle = current();
        on_a_thread("loader", || {
            let _entered = handle.enter();
            load();
            load();
        });
        load();
    });
    assert_eq!(
        trace.tree(),
        "region*\n  batch\n    load\n      decode\n    load\n      decode\n    load\n      decode\n"
    );
    let loads = trace.named("load");
    let thread = &loads[0].start["thread"];
    assert!(thread.is_u64());
    assert_eq!(loads[1].start["thread"], *thread);
    let of_loader: Vec<&Value> = trace
        .kind("span_start")
        .into_iter()
        .filter(|start| start["thread"] == *thread)
        .map(|start| &start["thread_name"])
        .collect();
    assert_eq!(of_loader.len(), 4);
    assert_eq!(of_loader[0], "loader");
    assert!(
        of_loader[1..].iter().all(|name| name.is_null()),
        "the first line says it for all"
    );
    let own = loads[2];
    assert!(own.start["thread"].is_null() && own.start["thread_name"].is_null());
    let decode = trace.named("decode")[0];
    assert_eq!(decode.start["thread"], *thread);
}

#[test]
fn a_thread_without_a_handle_records_nothing() {
    let ((), trace) = region(|| on_a_thread("stranger", load));
    assert_eq!(trace.tree(), "region*\n");
}

#[test]
fn what_happens_in_a_span_of_another_thread_is_its_own() {
    let ((), trace) = region(|| {
        let handle = current();
        on_a_thread("loader", || {
            let _entered = handle.enter();
            let _batch = step_span("batch", ExecutionStep::Forward);
            let large = Tensor::ones((300, 300), DType::F32, &Device::Cpu).expect("a tensor");
            record_stats("pixels", &large);
            let inner = current();
            on_a_thread("helper", || inner.run(load));
            let caught = std::panic::catch_unwind(|| {
                let _span = span("unlucky");
                panic!("no such file");
            });
            assert!(caught.is_err());
        });
    });
    assert_eq!(
        trace.tree(),
        "region*\n  batch forward\n    = pixels\n    load\n      decode\n    unlucky!panicked\n"
    );
    let cost = &trace.span("batch").end["overhead_ns"];
    assert!(cost.as_u64().is_some_and(|cost| cost > 0), "{cost}");
    let measured = &trace.measured().end["overhead_ns"];
    assert!(
        measured.is_null(),
        "the other thread's cost was beside it: {measured}"
    );
}

#[test]
fn a_child_of_a_span_that_ended_first_goes_to_the_nearest_one_open() {
    let ((), trace) = region(|| {
        let _outer = span("outer");
        let inner = span("inner");
        let handle = current();
        let (tell, told) = mpsc::channel::<()>();
        let (begun, wait) = mpsc::channel::<()>();
        thread::scope(|scope| {
            scope.spawn(move || {
                let _entered = handle.enter();
                let _span = span("outlives inner");
                begun.send(()).expect("a receiver");
                told.recv().expect("a sender");
            });
            wait.recv().expect("a sender");
            drop(inner);
            tell.send(()).expect("a receiver");
        });
    });
    assert_eq!(
        trace.tree(),
        "region*\n  outer\n    inner\n    outlives inner\n"
    );
}

#[test]
fn what_is_open_on_another_thread_when_the_call_ends_is_ended_there() {
    let (tell, told) = mpsc::channel::<()>();
    let (begun, wait) = mpsc::channel::<()>();
    let mut thread = None;
    let ((), trace) = region(|| {
        let handle = current();
        thread = Some(thread::spawn(move || {
            let _entered = handle.enter();
            let _span = span("left open");
            begun.send(()).expect("a receiver");
            told.recv().expect("a sender");
            load();
        }));
        wait.recv().expect("a sender");
    });
    tell.send(()).expect("a receiver");
    thread.expect("a thread").join().expect("no panic");
    let left = trace.span("left open");
    assert!(left.is("open_at_end"));
    assert_eq!(
        left.time.1,
        trace.terminal()["timestamp_ns"].as_u64().expect("a time")
    );
    assert_eq!(trace.reason(), None, "the trace is complete");
    assert_eq!(trace.named("load").len(), 0, "what came later is dropped");
    // The measured span had ended by then, so the span is no child of it.
    assert_eq!(trace.path(left), ["region"]);
}

#[test]
fn a_handle_of_no_capture_does_nothing() {
    let handle: Handle = current();
    let ((), trace) = region(|| {
        let _entered = handle.enter();
        load();
    });
    assert_eq!(trace.tree(), "region*\n  load\n    decode\n");
    let mut old = None;
    let ((), _) = region(|| old = Some(current()));
    let ((), traces) = captures(|| {
        let old = old.expect("a handle");
        old.run(load);
        on_a_thread("late", || old.run(load));
    });
    assert_eq!(traces.len(), 0);
}

#[measured(name = "of eight")]
fn of_eight(worker: usize) {
    let _span = span(format!("worker {worker}"));
    load();
}

#[test]
fn calls_at_once_are_captures_of_their_own() {
    let ((), traces) = captures(|| {
        thread::scope(|scope| {
            for worker in 0..8 {
                scope.spawn(move || (0..5).for_each(|_| of_eight(worker)));
            }
        });
    });
    assert_eq!(traces.len(), 40);
    let mut workers: Vec<String> = Vec::new();
    let mut steps: Vec<u64> = Vec::new();
    for trace in &traces {
        let worker = trace.spans[2].name.clone();
        assert_eq!(
            trace.tree(),
            format!("of eight*\n  {worker}\n    load\n      decode\n")
        );
        assert!(
            trace
                .spans
                .iter()
                .all(|span| span.start["thread"] == Value::Null)
        );
        workers.push(worker);
        steps.extend(trace.meta()["capture_step"].as_u64());
    }
    workers.sort();
    let expected: Vec<String> = (0..8)
        .flat_map(|worker| vec![format!("worker {worker}"); 5])
        .collect();
    assert_eq!(workers, expected);
    steps.sort_unstable();
    assert_eq!(steps, (1..=40).collect::<Vec<u64>>());
}
