//! What a thread records and the writer reads, in the orders in which the two may run and see each other's writes. loom
//! tries them, and finds fault where a slot is read before its writing is seen, or written over before its reading is.
//!
//! The streams are the real ones, with chunks of two records and one chunk to share.

use std::sync::Arc;

use super::reading::Reading;
use super::recorder::Recorder;
use super::replay::{Limits, Replay};
use super::session::{Manner, Session};
use super::site::{CallSite, Name};
use crate::view::summary::Digest;

static SITE: CallSite = CallSite(Name::Text("work"), "here.rs", 1, 0);

/// Tries all orders with so many switches besides those that waiting makes, or as many of them as three minutes allow.
fn in_all_orders(switches: usize, work: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(switches);
    model.max_branches = 10_000;
    model.max_duration = Some(std::time::Duration::from_secs(180));
    model.check(work);
}

fn session() -> Arc<Session> {
    Session::new(Manner::default())
}

fn recorder() -> &'static Recorder {
    Box::leak(Box::new(Recorder::new()))
}

fn record(recorder: &'static Recorder, spans: usize) {
    for _ in 0..spans {
        let token = recorder.open(&SITE);
        recorder.close(token);
    }
}

/// The writer, with nothing but streams to read.
struct Writer {
    session: Arc<Session>,
    replay: Replay,
    lanes: Vec<Reading>,
    /// Streams that have been read to their ends.
    over: usize,
}

impl Writer {
    fn new(session: &Arc<Session>) -> Self {
        let limits = Limits {
            records_spans: true,
            budget: u64::MAX,
        };
        let meta = crate::ProfileRun::training("work", 1, "cpu").into_meta();
        Self {
            replay: Replay::new(session.origin, &meta, limits, Digest::new()),
            session: Arc::clone(session),
            lanes: Vec::new(),
            over: 0,
        }
    }

    /// Reads until so many streams have ended.
    fn read(&mut self, streams: usize) {
        while self.over < streams {
            let arrivals = self.session.take_arrivals();
            self.lanes.extend(arrivals.into_iter().map(Reading::new));
            for lane in &mut self.lanes {
                let published = lane.published();
                while lane
                    .read(&mut self.replay, published, None)
                    .is_some_and(|progress| progress.more)
                {}
            }
            let before = self.lanes.len();
            self.lanes.retain(|lane| !lane.is_over());
            self.over += before - self.lanes.len();
            loom::thread::yield_now();
        }
    }

    /// How many spans have both lines.
    fn spans(&self) -> usize {
        let lines = String::from_utf8_lossy(self.replay.lines());
        let ends = lines.matches("\"kind\":\"span_end\"").count();
        assert_eq!(lines.matches("\"name\":\"work\",\"start").count(), ends + 1);
        ends
    }
}

#[test]
fn a_stream_goes_through_chunks_of_every_kind() {
    in_all_orders(1, || {
        let session = session();
        let mut writer = Writer::new(&session);
        let thread = loom::thread::spawn(move || {
            let recorder = recorder();
            session.lend(recorder);
            // The first chunk, the shared one, one of its own, the shared one again.
            record(recorder, 4);
            recorder.retire();
        });
        writer.read(1);
        assert_eq!(writer.spans(), 4);
        thread.join().expect("no panic");
    });
}

#[test]
fn threads_share_the_chunks() {
    in_all_orders(1, || {
        let session = session();
        let mut writer = Writer::new(&session);
        let threads = [(), ()].map(|()| {
            let session = Arc::clone(&session);
            loom::thread::spawn(move || {
                let recorder = recorder();
                session.lend(recorder);
                record(recorder, 2);
                recorder.retire();
            })
        });
        writer.read(2);
        assert_eq!(writer.spans(), 4);
        for thread in threads {
            thread.join().expect("no panic");
        }
    });
}

#[test]
fn a_recorder_goes_on_to_the_next_thread() {
    in_all_orders(3, || {
        let session = session();
        let mut writer = Writer::new(&session);
        let recorder = recorder();
        let lender = Arc::clone(&session);
        let thread = loom::thread::spawn(move || {
            lender.lend(recorder);
            record(recorder, 1);
            recorder.retire();
        });
        writer.read(1);
        // Into the same chunk, while nothing but the stream's end says that the other thread is through with it.
        session.lend(recorder);
        record(recorder, 1);
        recorder.retire();
        writer.read(2);
        assert_eq!(writer.spans(), 2);
        thread.join().expect("no panic");
    });
}
