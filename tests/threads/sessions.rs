//! Captures at once on several threads keep apart.

use std::collections::BTreeSet;
use std::sync::Barrier;
use std::thread;

use candle_profiler::{current, measured, profile_span, span};
use tests::capturing::captures;
use tests::trace::Trace;

#[profile_span(name = "work of {whose}")]
fn work(whose: usize) {
    span(format!("part of {whose}")).end();
}

fn of<'a>(traces: &'a [Trace], name: &str) -> &'a Trace {
    let mut named = traces.iter().filter(|trace| trace.measured().name == name);
    let first = named.next().expect("a trace");
    assert!(named.next().is_none(), "one trace of {name}");
    first
}

#[test]
fn two_captures_on_two_threads_share_nothing() {
    #[measured(name = "pair {whose}")]
    fn pair(whose: usize, barrier: &Barrier) {
        for _ in 0..20 {
            // Both are open, and take turns.
            barrier.wait();
            work(whose);
        }
        barrier.wait();
    }
    let barrier = &Barrier::new(2);
    let ((), traces) = captures(|| {
        thread::scope(|scope| {
            scope.spawn(|| pair(1, barrier));
            scope.spawn(|| pair(2, barrier));
        });
    });
    assert_eq!(traces.len(), 2);
    for whose in 1..=2 {
        let trace = of(&traces, &format!("pair {whose}"));
        let work = format!("  work of {whose}\n    part of {whose}\n").repeat(20);
        assert_eq!(trace.tree(), format!("pair {whose}*\n{work}"));
        assert_eq!(trace.reason(), None);
    }
}

#[test]
fn one_thread_may_serve_two_captures_by_turns_and_inside_each_other() {
    #[measured(name = "served {whose}")]
    fn served(
        whose: usize,
        barrier: &Barrier,
        orders: &std::sync::mpsc::Sender<candle_profiler::Handle>,
    ) {
        let _span = span(format!("asks {whose}"));
        orders.send(current()).expect("a receiver");
        barrier.wait();
        barrier.wait();
    }
    let barrier = &Barrier::new(3);
    let ((), traces) = captures(|| {
        let (orders, handles) = std::sync::mpsc::channel();
        thread::scope(|scope| {
            for whose in 1..=2 {
                let orders = orders.clone();
                scope.spawn(move || served(whose, barrier, &orders));
            }
            let handles: Vec<_> = handles.iter().take(2).collect();
            barrier.wait();
            for _ in 0..3 {
                let _first = handles[0].enter();
                let _outer = span("outer");
                {
                    let _second = handles[1].enter();
                    let _inner = span("inner");
                    let _first = handles[0].enter();
                    span("innermost").end();
                }
                span("again").end();
            }
            barrier.wait();
        });
    });
    assert_eq!(traces.len(), 2);
    let (outer, inner): (Vec<&Trace>, Vec<&Trace>) = traces
        .iter()
        .partition(|trace| !trace.named("outer").is_empty());
    let asks = |trace: &Trace| trace.spans[2].name.clone();
    let tree = outer[0].tree();
    let head = format!("{}*\n  {}\n", outer[0].measured().name, asks(outer[0]));
    assert!(tree.starts_with(&head), "{tree}");
    let count = |needle: &str| tree.matches(needle).count();
    assert_eq!(
        (count("    outer\n      again\n"), count("    innermost\n")),
        (3, 3),
        "{tree}"
    );
    assert_eq!(
        inner[0].tree(),
        format!(
            "{}*\n  {}\n{}",
            inner[0].measured().name,
            asks(inner[0]),
            "    inner\n".repeat(3)
        )
    );
}

#[test]
fn eight_threads_in_one_measured_function_at_once_are_eight_captures() {
    #[measured(name = "rank step")]
    fn step(rank: usize, barrier: &Barrier) {
        // None goes on before all are captured.
        barrier.wait();
        let handle = &current();
        thread::scope(|scope| {
            scope.spawn(move || handle.run(|| work(rank)));
        });
        work(rank);
        barrier.wait();
    }
    let barrier = &Barrier::new(8);
    let ((), traces) = captures(|| {
        thread::scope(|scope| {
            for rank in 0..8 {
                scope.spawn(move || (0..3).for_each(|_| step(rank, barrier)));
            }
        });
    });
    assert_eq!(traces.len(), 24);
    let mut seen = Vec::new();
    let mut steps = BTreeSet::new();
    for trace in &traces {
        let rank: usize = trace.spans[2].name[8..].parse().expect("a rank");
        let work = format!("  work of {rank}\n    part of {rank}\n");
        assert_eq!(trace.tree(), format!("rank step*\n{work}{work}"));
        assert_eq!(trace.reason(), None);
        seen.push(rank);
        steps.extend(trace.meta()["capture_step"].as_u64());
    }
    seen.sort_unstable();
    let expected: Vec<usize> = (0..24).map(|index| index / 3).collect();
    assert_eq!(seen, expected);
    assert_eq!(steps, (1..=24).collect());
}

#[test]
fn a_measured_call_on_a_thread_without_a_handle_is_a_call_of_its_own() {
    #[measured(name = "stranger")]
    fn stranger() {
        work(2);
    }
    #[measured(name = "host")]
    fn host() {
        work(1);
        thread::spawn(|| {
            work(3);
            stranger();
            work(3);
        })
        .join()
        .expect("no panic");
        work(1);
    }
    let ((), traces) = captures(host);
    assert_eq!(traces.len(), 2);
    let work = |whose| format!("  work of {whose}\n    part of {whose}\n");
    let (one, two) = (work(1), work(2));
    assert_eq!(of(&traces, "host").tree(), format!("host*\n{one}{one}"));
    assert_eq!(of(&traces, "stranger").tree(), format!("stranger*\n{two}"));
}
