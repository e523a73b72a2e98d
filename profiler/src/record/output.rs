//! A capture as the writer sees it: its streams, its file, and what is done with the file at the end.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::open_list::OpenList;
use super::reading::Reading;
use super::replay::{Limits, Replay};
use super::session::{End, Finished, Session, Ticket};
use super::writer;
use crate::trace::TraceRunMeta;
use crate::view::summary::Digest;

/// The buffer is written when it has grown to this.
const BATCH: usize = 256 * 1024;

/// A capture that is being written.
pub(crate) struct Output {
    session: Arc<Session>,
    written: Written,
    lanes: Vec<Reading>,
    replay: Replay,
    ending: Ending,
}

/// What is on the disk.
struct Written {
    file: File,
    open_list: OpenList,
    /// The first error of the file; nothing is written after it.
    broken: Option<String>,
}

/// Where a capture is written.
pub(crate) struct Place {
    /// The trace while it grows.
    pub(crate) file: File,
    /// The list of what is open and has no lines in the trace yet.
    pub(crate) open_list: PathBuf,
}

/// What whoever asked for the capture does at its end.
pub(crate) struct Ending {
    /// Adds what is known of the whole process, before the last line is written.
    pub(crate) last_word: Box<dyn FnOnce(&mut Digest) + Send>,
    /// Once all is written: the file gets its name, or not, and the person is told.
    pub(crate) done: Box<dyn FnOnce(Closing) -> Finished + Send>,
}

/// A capture whose last line is written.
pub(crate) struct Closing {
    /// The first error of the file.
    pub(crate) broken: Option<String>,
    pub(crate) inner: u64,
    pub(crate) failed: bool,
    pub(crate) digest: Digest,
}

impl Output {
    pub(crate) fn new(
        session: Arc<Session>,
        place: Place,
        meta: &TraceRunMeta,
        limits: Limits,
        digest: Digest,
        ending: Ending,
    ) -> Self {
        let replay = Replay::new(session.origin, meta, limits, digest);
        Self {
            session,
            written: Written {
                file: place.file,
                open_list: OpenList::new(place.open_list, meta.run_id.clone()),
                broken: None,
            },
            lanes: Vec::new(),
            replay,
            ending,
        }
    }

    pub(super) fn is_of(&self, session: &Arc<Session>) -> bool {
        Arc::ptr_eq(&self.session, session)
    }

    pub(super) fn session(&self) -> Arc<Session> {
        Arc::clone(&self.session)
    }

    /// The streams that are being read.
    pub(super) fn tickets(&self) -> Vec<Arc<Ticket>> {
        let lanes = self.lanes.iter().filter(|lane| !lane.is_over());
        lanes.map(Reading::ticket).collect()
    }

    /// Reads what the threads have recorded and writes it.
    pub(super) fn drain(&mut self) {
        self.read(None);
        self.lanes.retain(|lane| !lane.is_over());
        self.written.write(&mut self.replay);
    }

    /// Reads what stands in all streams now, up to `until`, as often as one of them waits for what another says: at
    /// most once for each, should all wait in a row. What threads record meanwhile is for the next round, since one
    /// that is faster than this would keep the others from being read, and the capture from its end.
    fn read(&mut self, until: Option<u64>) {
        for _ in 0..=self.lanes.len() {
            let arrivals = self.session.take_arrivals();
            self.lanes.extend(arrivals.into_iter().map(Reading::new));
            let mut moved = false;
            let mut waiting = false;
            for index in 0..self.lanes.len() {
                let lane = &mut self.lanes[index];
                let published = lane.published();
                while let Some(progress) = lane.read(&mut self.replay, published, until) {
                    // A long round is work, too, where nothing is to be written.
                    writer::count_progress();
                    moved |= progress.moved;
                    waiting |= progress.waits;
                    if !progress.more {
                        break;
                    }
                    if self.replay.lines().len() >= BATCH {
                        self.written.write(&mut self.replay);
                    }
                }
            }
            if !waiting || !moved {
                return;
            }
        }
    }

    /// Ends the trace at the reading `at`.
    pub(super) fn finish(mut self, at: u64, end: End) -> Finished {
        self.read(Some(at));
        for lane in &mut self.lanes {
            lane.end_open(&mut self.replay, at);
        }
        self.session.close_lanes(self.tickets());
        let Ending { last_word, done } = self.ending;
        last_word(self.replay.digest_mut());
        let failed = self.replay.end(at, end);
        self.written.write(&mut self.replay);
        done(Closing {
            broken: self.written.close(),
            inner: self.replay.inner(),
            failed,
            digest: self.replay.into_digest(),
        })
    }
}

impl Written {
    /// Writes and empties the buffer. After the first error lines are dropped: a gap would make the trace a lie.
    fn write(&mut self, replay: &mut Replay) {
        // First, since lines may tell of what happened in a span that has none yet.
        self.open_list.add(&replay.newly_open());
        if !replay.lines().is_empty() && self.broken.is_none() {
            match self.file.write_all(replay.lines()) {
                Ok(()) => writer::count_progress(),
                Err(error) => self.broken = Some(error.to_string()),
            }
        }
        replay.clear_lines();
    }

    /// Closes the file; gives the first error. The list of what is open is of no use beside a whole trace.
    fn close(mut self) -> Option<String> {
        if self.broken.is_none() {
            self.broken = self.file.flush().err().map(|error| error.to_string());
        }
        drop(self.file);
        if self.broken.is_none() {
            self.open_list.remove();
        }
        self.broken
    }
}

impl Ticket {
    /// Whether the thread has left, asked before its stream is read for the last time.
    pub(super) fn has_left(&self) -> bool {
        self.left.load(Ordering::Acquire)
    }
}
