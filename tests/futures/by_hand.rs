//! Futures inside a session opened by hand: the same parents as in a capture of our own.

use std::pin::pin;

use candle_profiler::{
    ProfileRun, TraceSession, current, measured, profile_span, record_scalar, span,
};
use tests::trace::Trace;

use crate::{leaf, poll_once, threads, wait, worker};

#[profile_span(name = "outer {id}")]
#[record_scalar("sum")]
async fn outer(id: u32) -> u32 {
    worker(id, 1).await;
    candle_profiler::record_scalar("inside", &1.0);
    leaf(id);
    id
}

#[measured]
async fn step() -> u32 {
    outer(7).await
}

/// Runs `work` inside a session; gives the trace, which the judge has read.
fn session(work: impl FnOnce()) -> Trace {
    let folder = tempfile::tempdir().expect("a folder");
    let run = ProfileRun::training("by hand", 1, "cpu");
    let session = TraceSession::open(folder.path().join("trace.jsonl"), run).expect("a session");
    let entered = session.enter();
    work();
    drop(entered);
    Trace::read(&session.finish().expect("a trace"))
}

#[test]
fn a_measured_future_is_the_region_and_its_polls_hold_their_spans() {
    let trace = session(|| {
        wait(step());
    });
    assert_eq!(
        trace.tree(),
        "futures::by_hand::step*\n  outer 7\n    = inside\n    = sum\n    worker 7\n      leaf 7\n    leaf 7\n"
    );
    let outer = &trace.span("outer 7").id;
    assert_eq!(trace.stats("sum")["span_id"], outer.as_str());
    assert_eq!(trace.stats("inside")["span_id"], outer.as_str());
}

#[test]
fn interleaved_futures_keep_their_own_children() {
    let trace = session(|| {
        let _measured = candle_profiler::measure("region");
        let (mut a, mut b) = (pin!(worker(1, 2)), pin!(worker(2, 3)));
        let (mut a_runs, mut b_runs) = (true, true);
        while a_runs || b_runs {
            a_runs = a_runs && poll_once(a.as_mut()).is_pending();
            leaf(0);
            b_runs = b_runs && poll_once(b.as_mut()).is_pending();
        }
    });
    assert_eq!(
        trace.tree(),
        "region*\n  worker 1\n    leaf 1\n    leaf 1\n  leaf 0\n  worker 2\n    leaf 2\n    leaf 2\n    leaf 2\n  \
         leaf 0\n  leaf 0\n  leaf 0\n"
    );
}

#[test]
fn a_future_that_outlives_its_parent_hangs_under_the_next_open_span() {
    let trace = session(|| {
        let _measured = candle_profiler::measure("region");
        let mut future = Box::pin(worker(1, 1));
        {
            let _short = span("short");
            assert!(poll_once(future.as_mut()).is_pending());
        }
        wait(future);
    });
    assert_eq!(trace.tree(), "region*\n  short\n  worker 1\n    leaf 1\n");
}

#[test]
fn futures_move_between_threads_with_their_session() {
    let trace = session(|| {
        let _measured = candle_profiler::measure("region");
        let handle = current();
        let runtime = threads(2);
        let task = runtime.spawn(async move {
            // The first poll makes the span; whoever polls it later is in the session with it.
            let mut future = Box::pin(worker(5, 3));
            let first = handle.run(|| poll_once(future.as_mut()));
            assert!(first.is_pending());
            future.await;
        });
        runtime.block_on(task).expect("the task");
    });
    assert_eq!(
        trace.tree(),
        "region*\n  worker 5\n    leaf 5\n    leaf 5\n    leaf 5\n"
    );
}
