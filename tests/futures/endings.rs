//! How a future's span ends: done, dropped midway, by a panic; what it counts.

use std::pin::pin;
use std::thread::sleep;
use std::time::Duration;

use candle_core::{Device, Tensor};
use candle_profiler::{measured, profile_span, record_scalar, record_stats, span};
use tests::capturing::{capture, captures, region};
use tests::trace::Span;

use crate::{poll_once, threads, turn, wait};

struct Cleaner(u32);

impl Drop for Cleaner {
    fn drop(&mut self) {
        clean(self.0);
    }
}

#[profile_span(name = "clean {id}")]
fn clean(id: u32) {}

#[profile_span(name = "long {id}")]
async fn long(id: u32, turns: u32) -> u32 {
    let _cleaner = Cleaner(id);
    for _ in 0..turns {
        turn().await;
    }
    id
}

#[measured(name = "outer")]
async fn outer() {
    let _cleaner = Cleaner(0);
    long(1, 100).await;
}

fn polls(span: &Span) -> u64 {
    span.end["polls"].as_u64().expect("polls")
}

fn busy(span: &Span) -> u64 {
    span.end["busy_ns"].as_u64().expect("busy_ns")
}

#[test]
fn a_dropped_future_is_marked_and_its_destructors_are_its_children() {
    let ((), trace) = region(|| {
        let mut future = Box::pin(long(1, 9));
        assert!(poll_once(future.as_mut()).is_pending());
        assert!(poll_once(future.as_mut()).is_pending());
        drop(future);
        clean(2);
    });
    assert_eq!(
        trace.tree(),
        "region*\n  long 1!cancelled\n    clean 1\n  clean 2\n"
    );
    assert_eq!(polls(trace.span("long 1")), 2, "its drop is no poll");
    assert_eq!(trace.reason(), None);
}

#[test]
fn a_future_that_was_never_polled_leaves_nothing() {
    let ((), trace) = region(|| {
        drop(long(1, 1));
        let _kept = long(2, 1);
    });
    assert_eq!(trace.tree(), "region*\n");
}

#[test]
fn a_dropped_measured_future_fails_its_trace() {
    let ((), trace) = capture(|| {
        let mut future = Box::pin(outer());
        assert!(poll_once(future.as_mut()).is_pending());
    });
    assert_eq!(
        trace.tree(),
        "outer*!cancelled\n  long 1!cancelled\n    clean 1\n  clean 0\n"
    );
    assert_eq!(
        trace.reason(),
        Some("the measured future was dropped before it was done")
    );
    let root = &trace.spans[0];
    assert_eq!(trace.terminal()["timestamp_ns"], root.end["duration_ns"]);
}

#[test]
fn a_measured_future_dropped_by_a_panic_of_its_owner_is_cancelled() {
    let (_, trace) = capture(|| {
        std::panic::catch_unwind(|| {
            let mut future = Box::pin(outer());
            assert!(poll_once(future.as_mut()).is_pending());
            panic!("of the owner");
        })
        .expect_err("the panic")
    });
    assert!(trace.measured().is("cancelled"));
    assert!(
        !trace.measured().is("panicked"),
        "its own code did not panic"
    );
    assert!(trace.reason().expect("a reason").contains("dropped"));
}

#[test]
fn select_cancels_the_branches_that_lose() {
    let (won, trace) = region(|| {
        wait(async {
            tokio::select! {
                biased;
                id = long(1, 5) => id,
                id = long(2, 2) => id,
            }
        })
    });
    assert_eq!(won, 2);
    assert_eq!(
        trace.tree(),
        "region*\n  long 1!cancelled\n    clean 1\n  long 2\n    clean 2\n"
    );
    assert_eq!(polls(trace.span("long 1")), 3);
    assert_eq!(polls(trace.span("long 2")), 3);
}

#[test]
fn a_task_that_is_aborted_is_a_dropped_future() {
    let runtime = threads(2);
    let ((), trace) = capture(|| {
        runtime.block_on(async {
            let (tell, told) = tokio::sync::oneshot::channel();
            let task = tokio::spawn(waiting(tell));
            told.await.expect("the task");
            task.abort();
            assert!(task.await.expect_err("aborted").is_cancelled());
        });
    });
    assert_eq!(trace.tree(), "waiting*!cancelled\n  clean 7\n");
    assert!(trace.reason().expect("a reason").contains("dropped"));
}

#[measured(name = "waiting")]
async fn waiting(tell: tokio::sync::oneshot::Sender<()>) {
    let _cleaner = Cleaner(7);
    let _ = tell.send(());
    std::future::pending::<()>().await;
}

#[profile_span(name = "frail")]
async fn frail() {
    let _cleaner = Cleaner(3);
    turn().await;
    let _held = span("held");
    panic!("no gradient");
}

#[measured(name = "frail step")]
async fn frail_step() {
    frail().await;
}

#[test]
fn a_panic_in_a_poll_that_is_caught_inside_marks_the_span() {
    let ((), trace) = region(|| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .expect("a runtime");
        let ended = runtime.block_on(async { tokio::spawn(frail()).await });
        assert!(ended.expect_err("the panic").is_panic());
        clean(4);
    });
    assert_eq!(
        trace.tree(),
        "region*\n  frail!panicked\n    held!panicked\n    clean 3\n  clean 4\n"
    );
    assert_eq!(trace.reason(), None, "the call itself went well");
    assert_eq!(polls(trace.span("frail")), 2);
}

#[test]
fn a_panic_in_a_poll_fails_the_measured_call_with_message_and_place() {
    let runtime = threads(2);
    let ((), trace) = capture(|| {
        let ended = runtime.block_on(async { tokio::spawn(frail_step()).await });
        assert!(ended.expect_err("the panic").is_panic());
    });
    assert_eq!(
        trace.tree(),
        "frail step*!panicked\n  frail!panicked\n    held!panicked\n    clean 3\n"
    );
    let line = include_str!("endings.rs")
        .lines()
        .position(|line| line.contains("panic!(\"no gradient\")"))
        .expect("the line");
    assert_eq!(
        trace.reason(),
        Some(
            format!(
                "panicked at tests/futures/endings.rs:{}:5: no gradient",
                line + 1
            )
            .as_str()
        )
    );
}

#[profile_span(name = "napping")]
async fn napping() {
    for _ in 0..3 {
        sleep(Duration::from_millis(4));
        turn().await;
    }
}

#[test]
fn time_asleep_is_not_busy_and_polls_are_exact() {
    let ((), trace) = region(|| {
        let mut future = pin!(napping());
        while poll_once(future.as_mut()).is_pending() {
            sleep(Duration::from_millis(10));
        }
    });
    let span = trace.span("napping");
    let duration = span.time.1 - span.time.0;
    let (busy, away) = (busy(span), 30_000_000);
    assert_eq!(polls(span), 4);
    assert!(busy >= 12_000_000, "{busy}");
    assert!(busy + away <= duration, "{busy} of {duration}");
}

#[test]
fn one_poll_is_one_poll() {
    let (value, trace) = region(|| wait(long(5, 0)));
    assert_eq!(value, 5);
    let span = trace.span("long 5");
    assert_eq!(polls(span), 1);
    assert!(busy(span) <= span.time.1 - span.time.0);
}

#[record_stats("logits")]
#[record_scalar("loss")]
#[profile_span(name = "later")]
async fn later(value: f32) -> candle_core::Result<Tensor> {
    turn().await;
    Tensor::new(value, &Device::Cpu)
}

#[measured(name = "inference")]
#[record_stats("out")]
async fn inference() -> candle_core::Result<(Tensor, Tensor)> {
    Ok(tokio::try_join!(later(1.5), later(2.5))?)
}

#[test]
fn statistics_of_the_output_belong_to_the_futures_span() {
    let (_, trace) = capture(|| wait(inference()).expect("tensors"));
    let owner = |line: &serde_json::Value| {
        let id = line["span_id"].as_str().expect("an id");
        trace
            .spans
            .iter()
            .find(|span| span.id == id)
            .expect("a span")
            .clone()
    };
    let all = trace.kind("tensor_stats");
    for label in ["logits", "loss"] {
        let of_label: Vec<_> = all.iter().filter(|line| line["label"] == label).collect();
        assert_eq!(of_label.len(), 2, "{label}");
        let owners: Vec<Span> = of_label.iter().map(|line| owner(line)).collect();
        assert!(owners.iter().all(|span| span.name == "later"));
        assert_ne!(owners[0].id, owners[1].id);
    }
    for (index, mean) in [(0, 1.5), (1, 2.5)] {
        let stats = trace.stats(&format!("out/{index}"));
        assert_eq!(stats["mean"], mean);
        assert_eq!(owner(stats).name, "inference");
    }
    assert_eq!(trace.reason(), None);
}

#[test]
fn an_err_of_a_measured_future_is_the_reason() {
    #[measured(name = "refused")]
    async fn refused(file: &str) -> Result<u32, String> {
        turn().await;
        long(1, 1).await;
        Err(format!("no file {file}"))
    }
    let (value, traces) = captures(|| wait(refused("x.bin")));
    assert_eq!(value, Err("no file x.bin".to_owned()));
    assert_eq!(traces.len(), 1);
    assert_eq!(traces[0].reason(), Some("no file x.bin"));
    assert_eq!(polls(traces[0].measured()), 3);
}

#[test]
fn a_future_that_outlives_the_capture_is_ended_with_it() {
    #[measured(name = "own call")]
    fn own_call() {
        clean(8);
    }
    #[record_scalar("late")]
    #[profile_span(name = "outliving")]
    async fn outliving() -> u32 {
        let _cleaner = Cleaner(6);
        clean(5);
        turn().await;
        clean(7);
        own_call();
        6
    }
    let (_, traces) = captures(|| {
        let mut future = {
            let _measured = candle_profiler::measure("over before");
            let mut future = Box::pin(outliving());
            assert!(poll_once(future.as_mut()).is_pending());
            future
        };
        assert!(poll_once(future.as_mut()).is_ready());
    });
    let trees: Vec<String> = traces.iter().map(|trace| trace.tree()).collect();
    assert_eq!(
        trees,
        [
            "over before*\noutliving!open_at_end\n  clean 5\n",
            "own call*\n  clean 8\n"
        ]
    );
    assert_eq!(traces[0].reason(), None);
}
