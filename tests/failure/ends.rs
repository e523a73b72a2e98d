//! Whatever way a program ends: its trace is whole, or `repair` makes it whole, with all that was recorded more than
//! 100 ms before.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use candle_profiler::view::{RepairOptions, repair};
use tests::program::files;
use tests::trace::Trace;

use crate::train;

const RUNS: u32 = 20;
/// Children at once: they sleep most of the time.
const TOGETHER: u32 = 5;

/// What the trace of an end must be.
enum Left {
    Complete,
    /// Failed, with this in its reason.
    Failed(&'static str),
    /// Not finished: to be repaired.
    Broken,
}

fn all_runs(how: &str, code: Option<i32>, left: &Left) {
    let (next, late) = (AtomicU32::new(0), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for _ in 0..TOGETHER {
            scope.spawn(|| {
                while next.fetch_add(1, Ordering::Relaxed) < RUNS {
                    let was_late = one_run(how, code, left);
                    late.fetch_add(u32::from(was_late), Ordering::Relaxed);
                }
            });
        }
    });
    let late = late.into_inner();
    assert!(late <= RUNS / 2, "{how}: the writer is late in {late} runs");
}

/// Whether the writer needed more than 150 ms, and the rest of the program had its turns.
fn one_run(how: &str, code: Option<i32>, left: &Left) -> bool {
    let folder = tempfile::tempdir().expect("a folder");
    let ran = train(folder.path(), &format!("end-{how}"));
    assert_eq!(ran.code, code, "{how}: {}", ran.stderr);
    // What the other thread records until the process is gone is late.
    let said = ran
        .stderr
        .lines()
        .filter(|line| line.starts_with("candle-profiler: "));
    let said: Vec<_> = said
        .filter(|line| !line.contains("records came after"))
        .collect();
    assert!(said.is_empty(), "{how}: {said:?}");
    // A future's spans are open during its polls only.
    let outer = if how == "dropped" { "" } else { " > outer" };
    match left {
        Left::Complete => {
            let trace = only_trace(folder.path());
            assert_eq!(trace.reason(), None, "{how}");
            holds_all(&trace, false, outer);
        }
        Left::Failed(reason) => {
            let trace = only_trace(folder.path());
            let said = trace.reason().expect("a reason");
            assert!(said.contains(reason), "{how}: {said}");
            holds_all(&trace, false, outer);
        }
        Left::Broken => holds_all(&repaired(folder.path()), true, outer),
    }
    ran.stdout == "late\n"
}

fn only_trace(folder: &Path) -> Trace {
    let files = files(folder);
    assert_eq!(files, ["traces/train-ends-step-step2.jsonl"]);
    Trace::read(&folder.join(&files[0]))
}

/// Repairs the one broken trace, and looks at what that says of itself.
fn repaired(folder: &Path) -> Trace {
    let partial = "traces/train-ends-step-step2.jsonl.partial";
    let list = "traces/train-ends-step-step2.jsonl.open";
    assert_eq!(files(folder), [list, partial]);
    let before = std::fs::read(folder.join(partial)).expect("the file");
    let repaired = repair(folder.join(partial), &RepairOptions::default()).expect("a repair");
    assert!(repaired.removed, "{repaired:?}");
    assert!(repaired.left_out <= 1, "{repaired:?}");
    let trace = only_trace(folder);
    assert_eq!(
        trace.reason(),
        Some("the trace broke off before its end, and was repaired")
    );
    let open = trace.spans.iter().filter(|span| span.end.is_null()).count();
    assert_eq!(open as u64, repaired.open_spans);
    // The root, the measured region, `outer`, the future, the other thread's; it may have been in one more, and `last`
    // came too late to be sure of.
    assert!((5..=7).contains(&open), "{open} spans are open");
    let after = std::fs::read(&repaired.path).expect("the file");
    let whole = before
        .iter()
        .rposition(|byte| *byte == b'\n')
        .expect("a line")
        + 1;
    assert!(
        after.starts_with(&before[..whole]),
        "a good line was changed"
    );
    trace
}

/// What was recorded 150 ms before the end, or had to be waited for.
fn holds_all(trace: &Trace, broken: bool, outer: &str) {
    let ended = |name: &str| {
        let spans = trace.named(name);
        spans.iter().filter(|span| !span.end.is_null()).count()
    };
    for number in 0..100 {
        assert_eq!(ended(&format!("work {number}")), 1);
    }
    assert_eq!(ended("train::ends::loaded"), 50);
    assert_eq!(ended("inside"), 1);
    let path = |name: &str| trace.path(trace.named(name)[0]).join(" > ");
    let step = format!("train::ends::step > train::ends::step{outer}");
    assert_eq!(path("inside"), format!("{step} > train::ends::held"));
    let worker = path("worker");
    assert_eq!(path("train::ends::loaded"), format!("{worker} > worker"));
    // Where it outlived the spans that it was begun in, it is the root's.
    let outlived = !broken && worker == "train::ends::step";
    assert!(outlived || worker == step, "{worker}");
    for name in ["outer", "worker", "train::ends::held", "train::ends::step"] {
        assert_eq!(trace.named(name)[0].end.is_null(), broken, "{name}");
    }
}

#[test]
fn a_return_or_a_thread_that_never_ends() {
    all_runs("return", Some(0), &Left::Complete);
    all_runs("thread", Some(0), &Left::Complete);
}

#[test]
fn an_error_and_a_panic() {
    all_runs("err", Some(1), &Left::Failed("no more data"));
    all_runs("panic", Some(101), &Left::Failed("a weight is lost"));
}

#[test]
fn a_future_that_is_dropped() {
    let reason = "the measured future was dropped before it was done";
    all_runs("dropped", Some(0), &Left::Failed(reason));
}

#[test]
fn a_panic_in_another_thread() {
    all_runs("panic-elsewhere", Some(0), &Left::Complete);
}

#[test]
fn an_exit() {
    all_runs("exit", Some(3), &Left::Failed("the process exited"));
}

#[cfg(unix)]
#[test]
fn aborts() {
    for how in ["abort", "panic-abort", "allocation"] {
        all_runs(how, None, &Left::Broken);
    }
}

#[cfg(unix)]
#[test]
fn signals() {
    for how in ["SIGTERM", "SIGINT", "SIGKILL"] {
        all_runs(how, None, &Left::Broken);
    }
}
