//! Scoped threads and a pool: each piece of work is a child of the span its handle was taken in.

use std::collections::BTreeSet;
use std::thread;

use candle_profiler::{Handle, current, measured, profile_span, profile_step, span};
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use tests::capturing::{capture, region};
use tests::trace::{Span, Trace};

fn pool(threads: usize) -> ThreadPool {
    let pool = ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|index| format!("pool {index}"));
    pool.build().expect("a pool")
}

/// The names of a span's parents, without the root.
fn above<'a>(trace: &'a Trace, span: &Span) -> Vec<&'a str> {
    trace.path(span)[1..].to_vec()
}

#[profile_span(name = "split {low} {high}")]
fn split(low: u32, high: u32) {
    let middle = low.midpoint(high);
    if middle == low {
        return;
    }
    let handle = &current();
    thread::scope(|scope| {
        for (low, high) in [(low, middle), (middle, high)] {
            scope.spawn(move || handle.run(|| split(low, high)));
        }
    });
}

#[test]
fn scoped_threads_of_scoped_threads_keep_their_parents() {
    let ((), trace) = region(|| split(0, 8));
    assert_eq!(trace.spans.len(), 2 + 15);
    for (low, high) in [(0, 1), (3, 4), (7, 8)] {
        let mut expected = vec!["region".to_owned(), "split 0 8".to_owned()];
        for width in [4, 2] {
            let from = low / width * width;
            expected.push(format!("split {from} {}", from + width));
        }
        let leaf = trace.span(&format!("split {low} {high}"));
        assert_eq!(above(&trace, leaf), expected);
    }
    let threads: BTreeSet<u64> = trace
        .spans
        .iter()
        .filter_map(|span| span.start["thread"].as_u64())
        .collect();
    assert_eq!(
        threads.len(),
        14,
        "all but the first split had a thread each"
    );
}

#[test]
fn a_thread_may_enter_one_handle_many_times_and_many_handles_in_any_order() {
    let ((), trace) = region(|| {
        let outer = span("outer");
        let of_outer = current();
        let inner = span("inner");
        let of_inner = current();
        thread::scope(|scope| {
            scope.spawn(|| {
                let first = of_outer.enter();
                span("a").end();
                let second = of_inner.enter();
                span("b").end();
                // Left in the order they came, which is not the order of a stack.
                drop(first);
                span("c").end();
                drop(second);
                span("nobody's").end();
                of_inner.run(|| span("d").end());
                of_outer.run(|| span("e").end());
            });
        });
        drop(inner);
        drop(outer);
    });
    let paths: Vec<String> = trace
        .spans
        .iter()
        .filter(|span| span.name.len() == 1)
        .map(|span| format!("{} in {}", span.name, above(&trace, span).join(" ")))
        .collect();
    let of_c = paths.iter().find(|path| path.starts_with('c'));
    assert_eq!(
        of_c, None,
        "the second entry went with the first: {paths:?}"
    );
    assert_eq!(
        paths,
        [
            "a in region outer",
            "b in region outer inner",
            "d in region outer inner",
            "e in region outer"
        ]
    );
}

#[profile_span(name = "item {item}")]
fn item(item: usize) -> usize {
    span("decode").end();
    item * item
}

#[profile_step(forward, name = "batch")]
fn batch(pool: &ThreadPool, items: usize) -> usize {
    let handle = &current();
    pool.install(|| {
        (0..items)
            .into_par_iter()
            .map(|index| handle.run(|| item(index)))
            .sum()
    })
}

#[test]
fn items_of_a_pool_are_children_of_the_batch() {
    let pool = pool(4);
    let (sum, trace) = region(|| batch(&pool, 200) + batch(&pool, 3));
    assert_eq!(sum, (0..200).map(|item| item * item).sum::<usize>() + 5);
    let batches = trace.named("batch");
    assert_eq!(batches.len(), 2);
    for index in 0..200 {
        let items = trace.named(&format!("item {index}"));
        assert_eq!(items.len(), if index < 3 { 2 } else { 1 });
        for (item, batch) in items.iter().zip(&batches) {
            assert_eq!(item.parent.as_ref(), Some(&batch.id));
            assert!(item.start["thread"].is_u64());
        }
    }
    let decodes = trace.named("decode");
    assert_eq!(decodes.len(), 203);
    for decode in decodes {
        assert!(above(&trace, decode)[2].starts_with("item "));
    }
    let names: Vec<&str> = trace
        .spans
        .iter()
        .filter_map(|span| span.start["thread_name"].as_str())
        .collect();
    let different: BTreeSet<&&str> = names.iter().collect();
    assert_eq!(
        names.len(),
        different.len(),
        "said once a thread: {names:?}"
    );
    assert!(names.iter().all(|name| name.starts_with("pool ")));
}

/// Work that a worker steals while it waits in `join` runs on top of the span that waits, but is not its child.
fn joined(handle: &Handle, low: usize, high: usize) {
    let name = format!("part {low} {high}");
    let _entered = handle.enter();
    let _span = span(name);
    if high - low > 1 {
        let (own, middle) = (&current(), low.midpoint(high));
        rayon::join(|| joined(own, low, middle), || joined(own, middle, high));
    }
}

#[test]
fn work_that_a_waiting_worker_steals_keeps_its_parent() {
    let pool = pool(3);
    #[measured(name = "stealing")]
    fn stealing(pool: &ThreadPool) {
        let handle = &current();
        pool.install(|| joined(handle, 0, 64));
    }
    let ((), trace) = capture(|| stealing(&pool));
    assert_eq!(trace.spans.len(), 2 + 127);
    for span in &trace.spans[2..] {
        assert!(!span.is("cut"), "{}", span.name);
        let parent = *above(&trace, span).last().expect("a parent");
        let bounds: Vec<usize> = span.name[5..]
            .split(' ')
            .map(|bound| bound.parse().expect("a number"))
            .collect();
        let width = 2 * (bounds[1] - bounds[0]);
        let low = bounds[0] / width * width;
        let expected = match width {
            128 => "stealing".to_owned(),
            _ => format!("part {low} {}", low + width),
        };
        assert_eq!(parent, expected, "of {}", span.name);
    }
}
