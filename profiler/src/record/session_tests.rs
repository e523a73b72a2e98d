//! What a capture does at each begin and end of a span.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::output::{Output, Place};
use super::replay::Limits;
use super::session::{End, Finished, Manner, Session};
use super::site::{CallSite, Name};
use super::{Span, open_output, prepare};
use crate::capability::CaptureContract;
use crate::phase::ExecutionPhase;
use crate::trace::{TimingMode, TraceRunMeta};
use crate::view::summary::Digest;

static SITE: CallSite = CallSite(Name::Text("work"), "here.rs", 1, 0);

/// Runs `work` in a capture of this manner; gives the lines.
fn captured(manner: Manner, work: impl FnOnce()) -> Vec<serde_json::Value> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace.jsonl");
    let file = std::fs::File::create(&path).expect("a file");
    prepare();
    let session = Session::new(
        #[cfg(feature = "candle")]
        None,
        #[cfg(feature = "candle")]
        None,
        manner,
    );
    let limits = Limits {
        records_spans: true,
        budget: 1 << 20,
    };
    let place = Place {
        file,
        open_list: folder.path().join("open"),
    };
    let ending = Box::new(|_| Finished);
    let output = Output::new(
        Arc::clone(&session),
        place,
        &meta(),
        limits,
        Digest::new(),
        ending,
    );
    open_output(output).expect("a writer");
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

fn meta() -> TraceRunMeta {
    TraceRunMeta {
        run_id: "r".to_owned(),
        correlation_id: "c".to_owned(),
        entrypoint: "e".to_owned(),
        phase: ExecutionPhase::Train,
        timestamp: "2026-01-01T00:00:00.000Z".to_owned(),
        capture_step: 1,
        warmup_steps: 0,
        device: "cuda:0".to_owned(),
        measured_region_device_synchronized: true,
        timing_mode: TimingMode::DeviceSynchronized,
        capture_contract: CaptureContract::default(),
        comparison_identity: None,
        tags: BTreeMap::new(),
        candle_version: None,
    }
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
