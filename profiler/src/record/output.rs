//! A capture as the writer sees it: its streams, its file, and what is done with the file at the end.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::open_list::OpenList;
use super::reading::Reading;
use super::replay::{BATCH, Limits, Replay};
use super::session::{End, Session, Ticket};
use super::writer;
use crate::trace::TraceRunMeta;
use crate::view::summary::Digest;

/// A capture that is being written.
pub(crate) struct Output {
    session: Arc<Session>,
    written: Written,
    lanes: Vec<Reading>,
    replay: Replay,
    /// `None`: it is being carried out.
    ending: Option<Ending>,
}

/// What is on the disk.
struct Written {
    /// `None`: it is closed.
    file: Option<File>,
    open_list: OpenList,
    /// Nothing had got into the file when it was closed.
    empty: bool,
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
    pub(crate) done: Box<dyn FnOnce(Closing) + Send>,
}

/// A capture whose last line is written.
pub(crate) struct Closing {
    /// What broke the trace off, if something did.
    pub(crate) broken: Option<String>,
    /// Nothing of it is in the file.
    pub(crate) empty: bool,
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
                file: Some(place.file),
                open_list: OpenList::new(place.open_list, meta.run_id.clone()),
                empty: false,
                broken: None,
            },
            lanes: Vec::new(),
            replay,
            ending: Some(ending),
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

    /// Reads what stands in all streams now, up to `until`, as often as one of them waits for what another says. What
    /// threads record meanwhile is for the next round, since one that is faster than this would keep the others from
    /// being read, and the capture from its end.
    fn read(&mut self, until: Option<u64>) {
        let mut published: Vec<_> = self.lanes.iter().map(Reading::published).collect();
        loop {
            for ticket in self.session.take_arrivals() {
                let lane = Reading::new(ticket);
                published.push(lane.published());
                self.lanes.push(lane);
            }
            let mut moved = false;
            let mut waiting = false;
            for (lane, published) in self.lanes.iter_mut().zip(&published) {
                while let Some(progress) = lane.read(&mut self.replay, *published, until) {
                    // A long round is work, too, where nothing is to be written.
                    writer::count_progress();
                    moved |= progress.moved;
                    waiting |= progress.waits;
                    if self.replay.is_full() {
                        self.written.write(&mut self.replay);
                    }
                    if !progress.more {
                        break;
                    }
                }
            }
            if !waiting || !moved {
                return;
            }
        }
    }

    /// Ends the trace at the reading `at`.
    pub(super) fn finish(&mut self, at: u64, end: End) {
        self.read(Some(at));
        let written = &mut self.written;
        let write = &mut |replay: &mut Replay| written.write(replay);
        for lane in &mut self.lanes {
            lane.end_open(&mut self.replay, at, write);
        }
        self.session.close_lanes(self.tickets());
        let Some(Ending { last_word, done }) = self.ending.take() else {
            return;
        };
        last_word(self.replay.digest_mut());
        let written = &mut self.written;
        let write = &mut |replay: &mut Replay| written.write(replay);
        let failed = self.replay.end(at, end, write);
        self.written.write(&mut self.replay);
        self.written.close();
        done(self.closing(failed));
    }

    /// Ends the capture where the writer's own work broke off: what is in the file stays there.
    pub(super) fn fail(&mut self, reason: &str) {
        let Some(Ending { done, .. }) = self.ending.take() else {
            return;
        };
        self.written.broken.get_or_insert(reason.to_owned());
        self.written.close();
        done(self.closing(true));
    }

    fn closing(&mut self, failed: bool) -> Closing {
        Closing {
            broken: self.written.broken.take(),
            empty: self.written.empty,
            inner: self.replay.inner(),
            failed,
            digest: std::mem::replace(self.replay.digest_mut(), Digest::new()),
        }
    }
}

impl Written {
    /// Writes and empties the buffer. After the first error lines are dropped: a gap would make the trace a lie.
    fn write(&mut self, replay: &mut Replay) {
        // First, since lines may tell of what happened in a span that has none yet.
        loop {
            let open = replay.newly_open();
            if open.is_empty() {
                break;
            }
            self.open_list.add(&open);
            writer::count_progress();
        }
        if let Some(file) = self.file.as_mut().filter(|_| self.broken.is_none()) {
            let written = in_pieces(file, replay.lines(), writer::count_progress);
            self.broken = written.err().map(|error| error.to_string());
        }
        replay.clear_lines();
    }

    /// Closes the file. The list of what is open is of no use beside a whole trace.
    fn close(&mut self) {
        let Some(file) = self.file.take() else {
            return;
        };
        // A write that failed may have come half way.
        self.empty = file.metadata().is_ok_and(|data| data.len() == 0);
        let closed = close(file);
        if self.broken.is_none() {
            self.broken = closed.err().map(|error| error.to_string());
        }
        if self.broken.is_none() {
            self.open_list.remove();
        }
    }
}

/// Writes lines in pieces, and tells of each: a slow disk is not one that hangs.
fn in_pieces(file: &mut impl Write, lines: &[u8], mut done: impl FnMut()) -> std::io::Result<()> {
    for piece in lines.chunks(BATCH) {
        file.write_all(piece)?;
        done();
    }
    Ok(())
}

/// Closes a file, which is when a file system over the network, or one with a quota, may find that it has no room. To
/// have the disk take it first would find more, and hold the program at the end of each captured step: 4 ms for the
/// smallest trace, a second for 64 MiB.
#[cfg(unix)]
fn close(file: File) -> std::io::Result<()> {
    use std::ffi::c_int;
    use std::os::fd::IntoRawFd;
    unsafe extern "C" {
        /// POSIX, `unistd.h`.
        fn close(fd: c_int) -> c_int;
    }
    // SAFETY: the descriptor is ours, and given up here.
    match unsafe { close(file.into_raw_fd()) } {
        0 => Ok(()),
        _ => match std::io::Error::last_os_error() {
            // It is closed all the same.
            error if error.kind() == std::io::ErrorKind::Interrupted => Ok(()),
            error => Err(error),
        },
    }
}

#[cfg(not(unix))]
fn close(file: File) -> std::io::Result<()> {
    drop(file);
    Ok(())
}

impl Ticket {
    /// Whether the thread has left, asked before its stream is read for the last time.
    pub(super) fn has_left(&self) -> bool {
        self.left.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_buffer_is_written_in_pieces_that_each_count() {
        let lines = vec![b'x'; 3 * BATCH + 1];
        let (mut file, mut pieces) = (Vec::new(), 0);
        in_pieces(&mut file, &lines, || pieces += 1).expect("memory");
        assert_eq!(pieces, 4);
        assert_eq!(file, lines);
    }
}
