//! The whole way of a record, from the thread that makes it to the line in the file, in small: also for Miri, which
//! looks at each access to memory that threads share.

use std::fs::File;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::replay::Limits;
use super::{
    AsyncSpan, CallSite, End, Finished, Manner, Name, Output, OutputPlace, Session, Span,
    SpanSource, current, instrument, prepare, recorder,
};
use crate::trace::{TraceDocument, parse_trace};
use crate::view::summary::Digest;

/// A capture into a file, as a measured call opens it.
pub(super) fn capture(into: File, manner: Manner) -> Arc<Session> {
    prepare();
    let session = Session::new(
        #[cfg(feature = "candle")]
        None,
        #[cfg(feature = "candle")]
        None,
        manner,
    );
    let place = OutputPlace {
        file: into,
        open_list: std::env::temp_dir().join("candle-profiler-never-made.open"),
    };
    let limits = Limits {
        records_spans: true,
        budget: u64::MAX,
    };
    let meta = crate::ProfileRun::training("work", 1, "cpu").into_meta();
    let ending = super::Ending {
        last_word: Box::new(|_| {}),
        done: Box::new(|_| Finished),
    };
    let session_of_output = Arc::clone(&session);
    let output = Output::new(
        session_of_output,
        place,
        &meta,
        limits,
        Digest::new(),
        ending,
    );
    super::open_output(output).expect("the writer's thread");
    session
}

static OUTER: CallSite = CallSite(Name::Text("outer"), file!(), line!(), 0);
static INNER: CallSite = CallSite(Name::Text("inner"), file!(), line!(), 0);

/// Records what `work` does in a capture of its own, and reads the trace.
fn recorded(work: impl FnOnce()) -> TraceDocument {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t.jsonl");
    let session = capture(File::create(&path).expect("a file"), Manner::default());
    let recorder = session.attach();
    work();
    assert!(session.end(End::Complete) && session.wait().is_some());
    recorder.leave();
    read(&path)
}

fn read(path: &Path) -> TraceDocument {
    parse_trace(path).expect("a trace")
}

fn count(trace: &TraceDocument, name: &str) -> usize {
    let closed = trace.spans.iter().filter(|span| span.closed);
    closed.filter(|span| span.name == name).count()
}

#[test]
fn spans_fill_many_chunks_while_the_writer_empties_them() {
    // Miri's chunks are small, too, and so is its patience.
    let outers = if cfg!(miri) { 5 } else { 40 };
    let trace = recorded(|| {
        for _ in 0..outers {
            let _outer = Span::enter(&OUTER);
            for _ in 0..5 {
                drop(Span::enter(&INNER));
            }
        }
    });
    assert_eq!(
        (count(&trace, "outer"), count(&trace, "inner")),
        (outers, 5 * outers)
    );
}

#[test]
fn where_a_name_is_shared_each_span_tells_of_which_call_site_it_is() {
    static TWIN: CallSite = CallSite(Name::Text("outer"), "twin.rs", 7, 0);
    let trace = recorded(|| {
        for site in [&OUTER, &OUTER, &TWIN, &OUTER, &TWIN] {
            drop(Span::enter(site));
        }
    });
    let mut spans: Vec<_> = trace
        .spans
        .iter()
        .filter(|span| span.name == "outer")
        .collect();
    spans.sort_by_key(|span| span.start_ns);
    let file = |span: &&crate::trace::SpanRecord| {
        let extra = span.start_extra.as_deref();
        extra.and_then(|extra| extra.file.clone())
    };
    let files: Vec<Option<String>> = spans.iter().map(file).collect();
    let (own, twin) = (Some(file!().to_owned()), Some("twin.rs".to_owned()));
    assert_eq!(files, [own, None, twin.clone(), None, twin]);
}

#[test]
fn guards_end_in_any_order_and_after_their_capture() {
    let mut late = None;
    let trace = recorded(|| {
        let outer = Span::enter(&OUTER);
        let inner = Span::enter(&INNER);
        drop(outer);
        drop(inner);
        late = Some(Span::enter(&INNER));
    });
    drop(late);
    assert_eq!((count(&trace, "outer"), count(&trace, "inner")), (1, 2));
    // The recorder that the late guard refers to is another capture's by now.
    let next = recorded(|| drop(Span::enter(&OUTER)));
    assert_eq!((count(&next, "outer"), count(&next, "inner")), (1, 0));
}

#[test]
fn threads_record_through_handles() {
    let turns = if cfg!(miri) { 2 } else { 10 };
    let trace = recorded(|| {
        let _outer = Span::enter(&OUTER);
        let handle = current();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                let handle = handle.clone();
                scope.spawn(move || {
                    let _entered = handle.enter();
                    for _ in 0..turns {
                        let _inner = Span::enter(&INNER);
                        drop(Span::enter(&OUTER));
                    }
                });
            }
        });
    });
    assert_eq!(
        (count(&trace, "outer"), count(&trace, "inner")),
        (3 * turns + 1, 3 * turns)
    );
}

/// Pending once.
struct Yield(bool);

impl Future for Yield {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        drop(Span::enter(&INNER));
        if std::mem::replace(&mut self.0, true) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

#[allow(clippy::manual_async_fn, reason = "its `Send` is a promise")]
fn future() -> impl Future<Output = ()> + Send {
    async {
        let span = match recorder() {
            None => AsyncSpan::none(),
            Some(recorder) => AsyncSpan::begin(recorder, SpanSource::Site(&OUTER)),
        };
        let ((), _ended) = instrument(span, Yield(false)).await;
    }
}

#[test]
fn futures_move_between_threads_and_are_dropped_midway() {
    let trace = recorded(|| {
        let mut context = Context::from_waker(Waker::noop());
        let mut moved = Box::pin(future());
        let mut dropped = Box::pin(future());
        assert!(moved.as_mut().poll(&mut context).is_pending());
        assert!(dropped.as_mut().poll(&mut context).is_pending());
        drop(dropped);
        let done = std::thread::spawn(move || {
            let mut context = Context::from_waker(Waker::noop());
            moved.as_mut().poll(&mut context).is_ready()
        });
        assert!(done.join().expect("no panic"));
    });
    assert_eq!((count(&trace, "outer"), count(&trace, "inner")), (2, 3));
}
