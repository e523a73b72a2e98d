//! What a capture does at each begin and end of a span.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Span;
use super::session::{End, Manner};
use super::site::{CallSite, Name};
use super::tests::capture;

static SITE: CallSite = CallSite(Name::Text("work"), "here.rs", 1, 0);

/// Runs `work` in a capture of this manner; gives the lines.
fn captured(manner: Manner, work: impl FnOnce()) -> Vec<serde_json::Value> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace.jsonl");
    let file = std::fs::File::create(&path).expect("a file");
    let session = capture(file, manner);
    let recorder = session.attach();
    work();
    assert!(session.end(End::Complete));
    session.wait().expect("the writer is done");
    recorder.leave();
    let text = std::fs::read_to_string(&path).expect("a trace");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

#[test]
fn each_begin_and_end_of_a_span_waits_where_that_was_asked_for() {
    let waits = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&waits);
    let manner = Manner {
        synchronize: Some(Box::new(move || {
            counted.fetch_add(1, Ordering::Relaxed);
        })),
        memory: None,
    };
    let count = || waits.load(Ordering::Relaxed);
    let lines = captured(manner, || {
        let outer = Span::enter(&SITE);
        assert_eq!(count(), 1);
        let inner = Span::enter(&SITE);
        assert_eq!(count(), 2);
        drop(inner);
        assert_eq!(count(), 3);
        drop(outer);
        assert_eq!(count(), 4);
    });
    let ends = lines.iter().filter(|line| line["kind"] == "span_end");
    assert_eq!(ends.count(), 3, "both and the root");
    let mut plain = 0;
    let lines = captured(Manner::default(), || {
        for _ in 0..1000 {
            drop(Span::enter(&SITE));
            plain += 1;
        }
    });
    assert_eq!(count(), 4);
    let ends = lines.iter().filter(|line| line["kind"] == "span_end");
    assert_eq!(ends.count(), plain + 1);
}
