//! Many captures and many threads.

use candle_profiler::instrument::SpanKind;
use candle_profiler::{ProfileRun, TraceSession, parse_trace};
use tests::{folder, judge};

use crate::session::training;

#[test]
fn the_judge_rejects_none_of_two_thousand_captures() {
    let folder = folder();
    let path = folder.path().join("trace.jsonl");
    for step in 1..=2000 {
        let run = ProfileRun::training("train::step", step, "cpu");
        let session = TraceSession::open(&path, run).unwrap();
        {
            let _measured = session.begin_measurement("step");
            for _ in 0..50 {
                let _outer = session.begin_span("outer", SpanKind::Module);
                let _middle = session.begin_span("middle", SpanKind::Function);
                let _inner = session.begin_span("inner", SpanKind::Op);
            }
        }
        session.finish().unwrap();
        let document = candle_graph::parse_trace(&path).unwrap();
        let health = candle_graph::trace::analyze_health(&document);
        assert!(
            health.structurally_valid && health.capture_complete,
            "{:?}",
            health.issues
        );
        assert_eq!(document.spans.len(), 152);
    }
}

fn shared<T: Send + Sync>() {}

#[test]
fn a_session_may_be_shared() {
    shared::<TraceSession>();
}

#[test]
fn each_thread_has_its_own_stack() {
    let folder = folder();
    let path = folder.path().join("trace.jsonl");
    let session = TraceSession::open(&path, training().strict()).unwrap();
    {
        let _measured = session.begin_measurement("step");
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let session = &session;
                scope.spawn(move || {
                    for turn in 0..200 {
                        let outer = session.begin_span(format!("outer {thread}"), SpanKind::Module);
                        let inner = session.begin_span(format!("inner {thread}"), SpanKind::Op);
                        session
                            .record_scalar(inner.id(), "turn", f64::from(turn))
                            .unwrap();
                        if turn % 7 == 0 {
                            drop(outer);
                            drop(inner);
                        }
                    }
                });
            }
        });
    }
    session.finish().unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(judge(&text).is_complete(), "{:?}", judge(&text));
    let document = parse_trace(&path).unwrap();
    assert_eq!(document.spans.len(), 2 + 4 * 400);
    let name_of = |id: &str| {
        let span = document.spans.iter().find(|span| span.id == id);
        span.unwrap().name.clone()
    };
    for span in &document.spans {
        let parent = span.parent_id.as_deref().map(name_of);
        match span.name.split_once(' ') {
            Some(("outer", _)) => assert_eq!(parent.as_deref(), Some("train::update")),
            Some(("inner", thread)) => assert_eq!(parent, Some(format!("outer {thread}"))),
            _ => {}
        }
    }
}

#[test]
fn what_another_thread_left_open_ends_with_the_session() {
    let folder = folder();
    let path = folder.path().join("trace.jsonl");
    let session = TraceSession::open(&path, training()).unwrap();
    drop(session.begin_measurement("step"));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::mem::forget(session.begin_span("left", SpanKind::Function));
            std::mem::forget(session.begin_span("open", SpanKind::Function));
        });
    });
    session.finish().unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(judge(&text).is_complete());
    let document = parse_trace(&path).unwrap();
    let end = document.terminal.timestamp_ns;
    for span in &document.spans {
        assert_eq!(span.end_ns() == end, span.name != "step", "{span:?}");
    }
}

#[test]
fn a_guard_may_be_dropped_on_another_thread() {
    let folder = folder();
    let path = folder.path().join("trace.jsonl");
    let session = TraceSession::open(&path, training()).unwrap();
    let guard = session.begin_measurement("step");
    let _above = session.begin_span("above", SpanKind::Function);
    std::thread::scope(|scope| {
        scope.spawn(move || drop(guard));
    });
    drop(session.begin_span("after", SpanKind::Function));
    drop(_above);
    session.finish().unwrap();
    assert!(judge(&std::fs::read_to_string(&path).unwrap()).is_complete());
}
