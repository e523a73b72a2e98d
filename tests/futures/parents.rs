//! A span of a future is current during its polls and at no other time.

use std::future::Future;
use std::pin::{Pin, pin};
use std::thread;

use candle_profiler::{current, measured, profile_span, profile_step, record_scalar, span};
use tests::capturing::{capture, captures, region};
use tests::trace::Trace;

use crate::{leaf, poll_once, threads, turn, wait, worker};

#[profile_step(forward, name = "nested {id}")]
async fn nested(id: u32) {
    turn().await;
    worker(id, 1).await;
    leaf(id);
}

#[test]
fn futures_that_take_turns_keep_their_own_children() {
    let ((), trace) = region(|| {
        // The first starts first and ends first, while the second is suspended: not the order of a stack.
        let (mut a, mut b) = (pin!(worker(1, 2)), pin!(worker(2, 3)));
        let (mut a_runs, mut b_runs) = (true, true);
        while a_runs || b_runs {
            a_runs = a_runs && poll_once(a.as_mut()).is_pending();
            leaf(0);
            b_runs = b_runs && poll_once(b.as_mut()).is_pending();
        }
        leaf(3);
    });
    assert_eq!(
        trace.tree(),
        "region*\n  worker 1\n    leaf 1\n    leaf 1\n  leaf 0\n  worker 2\n    leaf 2\n    leaf 2\n    leaf 2\n  \
         leaf 0\n  leaf 0\n  leaf 0\n  leaf 3\n"
    );
}

#[test]
fn joined_futures_nest_each_in_its_own() {
    let ((), trace) = region(|| {
        wait(async {
            tokio::join!(nested(1), nested(2), worker(3, 1));
        });
    });
    let nested =
        |id| format!("  nested {id} forward\n    worker {id}\n      leaf {id}\n    leaf {id}\n");
    assert_eq!(
        trace.tree(),
        format!(
            "region*\n{}{}  worker 3\n    leaf 3\n",
            nested(1),
            nested(2)
        )
    );
}

#[test]
fn the_parent_is_what_is_current_at_the_first_poll() {
    let ((), trace) = region(|| {
        let made = {
            let _span = span("made here");
            worker(1, 2)
        };
        let mut future = pin!(made);
        {
            let _span = span("polled first here");
            assert!(poll_once(future.as_mut()).is_pending());
            {
                let _span = span("polled next here");
                assert!(poll_once(future.as_mut()).is_pending());
            }
            assert!(poll_once(future.as_mut()).is_ready());
        }
    });
    assert_eq!(
        trace.tree(),
        "region*\n  made here\n  polled first here\n    worker 1\n      leaf 1\n      leaf 1\n    polled next here\n"
    );
}

#[test]
fn a_future_that_outlives_its_parent_is_the_child_of_the_nearest_open_one() {
    let ((), trace) = region(|| {
        let _outer = span("outer");
        let mut future = pin!(worker(1, 2));
        {
            let _inner = span("inner");
            assert!(poll_once(future.as_mut()).is_pending());
        }
        wait(future);
    });
    assert_eq!(
        trace.tree(),
        "region*\n  outer\n    inner\n    worker 1\n      leaf 1\n      leaf 1\n"
    );
}

#[test]
fn a_guard_kept_over_a_pause_ends_with_the_poll() {
    #[profile_span(name = "keeper")]
    async fn keeper() {
        let _guard = span("kept");
        leaf(1);
        turn().await;
        leaf(2);
    }
    let ((), trace) = region(|| {
        let mut future = pin!(keeper());
        assert!(poll_once(future.as_mut()).is_pending());
        leaf(3);
        assert!(poll_once(future.as_mut()).is_ready());
        leaf(4);
    });
    assert_eq!(
        trace.tree(),
        "region*\n  keeper\n    kept!cut\n      leaf 1\n    leaf 2\n  leaf 3\n  leaf 4\n"
    );
}

/// Polls a future to its end, each time on a new thread.
fn wander<F: Future + Send + 'static>(future: F) {
    let mut future: Pin<Box<F>> = Box::pin(future);
    loop {
        let polled = thread::spawn(move || {
            let is_ready = poll_once(future.as_mut()).is_ready();
            (!is_ready).then_some(future)
        });
        match polled.join().expect("no panic") {
            Some(pending) => future = pending,
            None => return,
        }
    }
}

#[measured(name = "wandering")]
async fn wandering() {
    nested(1).await;
    tokio::join!(worker(2, 2), nested(3));
    leaf(4);
}

const WANDERED: &str = "wandering*\n  \
    nested 1 forward\n    worker 1\n      leaf 1\n    leaf 1\n  \
    worker 2\n    leaf 2\n    leaf 2\n  \
    nested 3 forward\n    worker 3\n      leaf 3\n    leaf 3\n  \
    leaf 4\n";

#[test]
fn a_measured_future_may_be_polled_on_another_thread_each_time() {
    let ((), trace) = capture(|| wander(wandering()));
    assert_eq!(trace.tree(), WANDERED);
    assert_eq!(trace.reason(), None);
    let of_threads: Vec<bool> = trace
        .named("leaf 2")
        .iter()
        .map(|leaf| leaf.start["thread"].is_u64())
        .collect();
    assert!(of_threads.contains(&true), "spans tell of their thread");
}

#[test]
fn a_future_of_a_capture_moves_to_threads_that_take_no_part() {
    let ((), trace) = region(|| {
        let mut future = Box::pin(nested(1));
        assert!(poll_once(future.as_mut()).is_pending());
        thread::spawn(|| wander(future)).join().expect("no panic");
        leaf(2);
    });
    assert_eq!(
        trace.tree(),
        "region*\n  nested 1 forward\n    worker 1\n      leaf 1\n    leaf 1\n  leaf 2\n"
    );
}

#[test]
fn tasks_of_a_runtime_with_many_threads_have_the_right_parents() {
    #[measured(name = "served {id}")]
    async fn served(id: u32) {
        for part in 0..20 {
            nested(100 * id + part).await;
        }
    }
    let runtime = threads(4);
    let ((), traces) = captures(|| {
        runtime.block_on(async {
            let tasks: Vec<_> = (1..=8).map(|id| tokio::spawn(served(id))).collect();
            for task in tasks {
                task.await.expect("no panic");
            }
        });
    });
    assert_eq!(traces.len(), 8, "each call is a session of its own");
    for trace in &traces {
        let name = trace.measured().name.clone();
        let id: u32 = name
            .strip_prefix("served ")
            .expect("a name")
            .parse()
            .expect("an id");
        let parts: String = (0..20)
            .map(|part| 100 * id + part)
            .map(|id| {
                format!("  nested {id} forward\n    worker {id}\n      leaf {id}\n    leaf {id}\n")
            })
            .collect();
        assert_eq!(trace.tree(), format!("{name}*\n{parts}"));
    }
}

#[test]
fn a_spawned_task_takes_part_only_through_a_handle() {
    let runtime = threads(2);
    let ((), trace) = region(|| {
        let _span = span("spawning");
        let handle = current();
        let alone = runtime.spawn(worker(1, 2));
        let within = runtime.spawn(async move {
            let mut future = Box::pin(worker(2, 2));
            let first = handle.run(|| poll_once(future.as_mut()).is_pending());
            assert!(first);
            future.await;
        });
        runtime.block_on(async {
            alone.await.expect("no panic");
            within.await.expect("no panic");
        });
    });
    assert_eq!(
        trace.tree(),
        "region*\n  spawning\n    worker 2\n      leaf 2\n      leaf 2\n"
    );
}

/// All spans of a trace that ended in an ordinary way.
fn plain(trace: &Trace) -> bool {
    ["cut", "cancelled", "panicked", "open_at_end"]
        .iter()
        .all(|mark| trace.spans.iter().all(|span| !span.is(mark)))
}

#[test]
fn futures_within_futures_on_one_runtime_thread_end_plainly() {
    #[measured(name = "gathering")]
    async fn gathering() {
        let all: Vec<_> = (0..50).map(nested).collect();
        let mut all: Vec<_> = all.into_iter().map(Box::pin).collect();
        while !all.is_empty() {
            all.retain_mut(|future| poll_once(future.as_mut()).is_pending());
            turn().await;
        }
    }
    let ((), trace) = capture(|| wait(gathering()));
    assert!(plain(&trace));
    for id in 0..50 {
        let worker = trace.span(&format!("worker {id}"));
        let above = format!("nested {id}");
        assert_eq!(trace.path(worker)[1..], ["gathering", above.as_str()]);
        for leaf in trace.named(&format!("leaf {id}")) {
            assert!(trace.path(leaf).contains(&above.as_str()));
        }
    }
}

#[profile_span(name = "block {#}")]
#[record_scalar("of block {#}")]
async fn block(#[record_scalar("turns {#}")] turns: u32) -> f64 {
    for _ in 0..turns {
        turn().await;
    }
    f64::from(turns)
}

fn shown(number: u32) -> String {
    format!("    block {number}\n      = turns {number}\n      = of block {number}\n")
}

#[test]
fn ordinals_count_first_polls_under_the_parent() {
    let ((), trace) = region(|| {
        for _ in 0..2 {
            let _span = span("layer");
            wait(async {
                let skipped = block(9);
                // Those that start first end last.
                tokio::join!(block(3), block(2), block(1));
                drop(skipped);
            });
        }
    });
    let blocks: String = (0..3).map(shown).collect();
    assert_eq!(
        trace.tree(),
        format!("region*\n  layer\n{blocks}  layer\n{blocks}")
    );
    let means: Vec<f64> = trace
        .kind("tensor_stats")
        .iter()
        .filter(|stats| {
            !stats["label"]
                .as_str()
                .expect("a label")
                .starts_with("turns")
        })
        .filter_map(|stats| stats["mean"].as_f64())
        .collect();
    assert_eq!(means, [1.0, 2.0, 3.0, 1.0, 2.0, 3.0]);
}

#[test]
fn a_measured_future_polled_inside_another_capture_stays_its_own() {
    #[measured(name = "visitor")]
    async fn visitor() {
        nested(1).await;
        span("last").end();
    }
    let ((), traces) = captures(|| {
        let mut future = pin!(visitor());
        assert!(poll_once(future.as_mut()).is_pending());
        {
            let _measured = candle_profiler::measure("visited");
            span("before").end();
            let _around = span("around");
            wait(future);
            span("after").end();
        }
    });
    let trees: Vec<String> = traces.iter().map(Trace::tree).collect();
    assert_eq!(
        trees,
        [
            "visited*\n  before\n  around\n    after\n",
            "visitor*\n  nested 1 forward\n    worker 1\n      leaf 1\n    leaf 1\n  last\n"
        ]
    );
}

#[test]
fn ordinals_go_on_from_poll_to_poll_and_through_handles() {
    #[profile_span(name = "stack")]
    async fn stack() {
        for _ in 0..3 {
            block(1).await;
        }
        let handle = current();
        thread::scope(|scope| {
            scope.spawn(|| handle.run(|| wait(block(0))));
        });
        handle.run(|| wait(block(0)));
        block(1).await;
    }
    let ((), trace) = region(|| wait(stack()));
    let blocks: String = (0..6).map(shown).collect();
    assert_eq!(trace.tree(), format!("region*\n  stack\n{blocks}"));
}
