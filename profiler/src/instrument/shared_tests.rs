use super::*;
use crate::instrument::TraceSession;
use crate::trace::TraceDocument;

/// Runs a strict session with a measured region and gives what the judge accepted.
fn session(record: impl FnOnce(&Shared)) -> TraceDocument {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.jsonl");
    let run = ProfileRun::inference("root", 1, "cpu").strict();
    let session = TraceSession::open(&path, run).unwrap();
    drop(session.begin_measurement("measured"));
    record(session.shared());
    session.finish().unwrap();
    let document = candle_graph::parse_trace(&path).unwrap();
    let health = candle_graph::trace::analyze_health(&document);
    assert!(health.structurally_valid, "{:?}", health.issues);
    crate::parse_trace(&path).unwrap()
}

fn begin(shared: &Shared, name: &str, parent: Option<SpanId>) -> SpanId {
    shared.begin(name.to_owned(), SpanKind::Function, None, false, parent)
}

fn parent_of(document: &TraceDocument, name: &str) -> String {
    let span = document.spans.iter().find(|span| span.name == name);
    let parent = span.unwrap().parent_id.clone().unwrap();
    let parent = document.spans.iter().find(|span| span.id == parent);
    parent.unwrap().name.clone()
}

#[test]
fn a_child_on_another_thread_belongs_to_the_nearest_that_outlives_it() {
    let document = session(|shared| {
        let outer = begin(shared, "outer", None);
        let inner = begin(shared, "inner", None);
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let quick = begin(shared, "quick", Some(inner));
                let below = begin(shared, "below", None);
                shared.end(below);
                shared.end(quick);
                begin(shared, "slow", Some(inner))
            });
            let slow = thread.join().unwrap();
            shared.end(inner);
            shared.end(slow);
            let thread = scope.spawn(|| begin(shared, "slowest", Some(inner)));
            let slowest = thread.join().unwrap();
            shared.end(outer);
            shared.end(slowest);
        });
    });
    assert_eq!(parent_of(&document, "quick"), "inner");
    assert_eq!(parent_of(&document, "below"), "quick");
    assert_eq!(parent_of(&document, "slow"), "outer");
    assert_eq!(parent_of(&document, "slowest"), "root");
}

#[test]
fn what_is_open_at_the_end_keeps_the_parent_that_is_open_too() {
    let document = session(|shared| {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| begin(shared, "parent", None));
            let parent = thread.join().unwrap();
            scope.spawn(move || begin(shared, "child", Some(parent)));
        });
    });
    assert_eq!(parent_of(&document, "child"), "parent");
    let end = document.terminal.timestamp_ns;
    let open_at_end = |name: &str| {
        let span = document.spans.iter().find(|span| span.name == name);
        span.unwrap().end_ns() == end
    };
    assert!(open_at_end("child") && open_at_end("parent"));
}

#[test]
fn a_closed_span_hangs_on_the_nearest_that_holds_it() {
    let document = session(|shared| {
        let early = shared.elapsed_ns();
        let outer = begin(shared, "outer", None);
        let start = shared.elapsed_ns();
        let inner = begin(shared, "inner", None);
        assert_eq!(shared.top(), inner);
        shared.end(inner);
        let closed = |name: &str, from, to, parent| {
            shared
                .record_closed(name.to_owned(), SpanKind::Op, None, from, to, parent)
                .unwrap()
        };
        closed("beyond inner", start, shared.elapsed_ns(), inner);
        closed("beyond outer", early, shared.elapsed_ns(), inner);
        closed("too late", start, u64::MAX, outer);
        assert_eq!(shared.top(), outer);
        shared.end(outer);
        assert_eq!(shared.top(), SpanId(ROOT));
        assert!(shared.has_measured());
    });
    assert_eq!(parent_of(&document, "beyond inner"), "outer");
    assert_eq!(parent_of(&document, "beyond outer"), "root");
    assert_eq!(parent_of(&document, "too late"), "outer");
}

#[test]
fn after_the_end_nothing_is_recorded_and_nothing_breaks() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.jsonl");
    let session = TraceSession::open(&path, ProfileRun::inference("root", 1, "cpu")).unwrap();
    let shared = std::sync::Arc::clone(session.shared());
    let left = std::thread::scope(|scope| {
        let thread = scope.spawn(|| begin(&shared, "left", None));
        thread.join().unwrap()
    });
    session.finish().unwrap();
    let before = std::fs::read_to_string(&path).unwrap();
    shared.end(left);
    assert_eq!(begin(&shared, "late", Some(left)), SpanId(0));
    shared.end(SpanId(0));
    assert!(shared.record_scalar(left, "late", 1.0).is_err());
    assert!(!shared.has_measured());
    assert_eq!(shared.top(), SpanId(ROOT));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), before);
}
