//! The one thread that empties the streams and writes the traces. All that a disk has to answer is its work; a caller
//! waits for the creation of a trace's file, so that it can be told where that cannot be, and for the end of its capture.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::errand::{self, Errand};
use super::limits;
use super::output::Output;
use super::session::{End, Finished, Session};
use crate::say::say;

/// How often the streams are emptied while a capture is open: what a killed process loses is at most twice this.
const TICK: Duration = Duration::from_millis(50);

/// How long a caller without room sleeps before it looks again.
const ROOM: Duration = Duration::from_millis(2);

/// What callers and the writer's thread share. One for each process: a forked child makes its own.
struct Writer {
    inbox: Mutex<Inbox>,
    wake: Condvar,
    /// Rounds and writes completed: stands still only while the writer hangs.
    progress: AtomicU64,
    round: Mutex<()>,
    round_done: Condvar,
    late: AtomicU64,
}

#[derive(Default)]
struct Inbox {
    opened: Vec<Output>,
    ended: Vec<(Arc<Session>, u64, End)>,
    errands: Vec<Errand>,
    /// Somebody waits for room.
    hurry: bool,
    /// Another writer was started at the same time: this one is not needed.
    superfluous: bool,
}

static WRITER: AtomicPtr<Writer> = AtomicPtr::new(ptr::null_mut());

fn existing() -> Option<&'static Writer> {
    let writer = WRITER.load(Ordering::Acquire);
    // SAFETY: the pointer is null or comes from `Box::leak` in `start`.
    (!writer.is_null()).then(|| unsafe { &*writer })
}

/// The writer, whose thread runs.
#[derive(Clone, Copy)]
pub(crate) struct Running(&'static Writer);

/// Starts the writer's thread if it does not run; an error of the system otherwise.
pub(crate) fn start() -> io::Result<Running> {
    if let Some(writer) = existing() {
        return Ok(Running(writer));
    }
    let writer: &'static Writer = Box::leak(Box::new(Writer {
        inbox: Mutex::default(),
        wake: Condvar::new(),
        progress: AtomicU64::new(0),
        round: Mutex::new(()),
        round_done: Condvar::new(),
        late: AtomicU64::new(0),
    }));
    std::thread::Builder::new()
        .name("candle-profiler".to_owned())
        .spawn(|| writer.run())?;
    // Only now: whoever finds a writer may rely on its thread.
    let raced = WRITER.compare_exchange(
        ptr::null_mut(),
        ptr::from_ref(writer).cast_mut(),
        Ordering::AcqRel,
        Ordering::Acquire,
    );
    if raced.is_err() {
        // Another thread came first. What was made here is never freed, some hundred bytes once.
        writer.inbox().superfluous = true;
        writer.wake.notify_one();
        return existing()
            .map(Running)
            .ok_or_else(|| io::Error::other("the writer was taken down"));
    }
    Ok(Running(writer))
}

impl Running {
    /// Hands a new capture to the writer.
    pub(crate) fn open(self, output: Output) {
        self.0.inbox().opened.push(output);
        self.0.wake.notify_one();
    }

    /// Has the writer's thread do this, and waits for it; `None`: it made no progress for 5 s. A result that comes after
    /// that is `unwanted`.
    ///
    /// # Errors
    /// Those of the work.
    pub(crate) fn ask<T: Send + 'static>(
        self,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
        unwanted: impl FnOnce(T) + Send + 'static,
    ) -> io::Result<Option<T>> {
        let (errand, answer) = errand::errand(work, unwanted);
        self.0.inbox().errands.push(errand);
        self.0.wake.notify_one();
        answer.wait().transpose()
    }
}

/// How long the profiler waits for a writer that makes no progress. (Miri is a thousand times as slow.)
pub(super) const PATIENCE: Duration = Duration::from_secs(if cfg!(miri) { 5000 } else { 5 });

/// How often it looks whether the writer made some.
const LOOK: Duration = Duration::from_millis(250);

/// Of somebody who waits for the writer.
pub(super) struct Patience {
    seen: u64,
    since: Instant,
}

impl Patience {
    pub(super) fn new() -> Self {
        Self {
            seen: progress(),
            since: Instant::now(),
        }
    }

    /// How long to wait before asking again; `None`: the writer has made no progress for too long.
    pub(super) fn left(&mut self) -> Option<Duration> {
        let now = progress();
        if now != self.seen {
            *self = Self::new();
        }
        let left = PATIENCE.checked_sub(self.since.elapsed())?;
        Some(left.min(LOOK))
    }
}

/// Asks the writer to end a capture at this reading.
pub(super) fn finish(session: &Arc<Session>, at: u64, end: End) {
    if let Some(writer) = existing() {
        writer.inbox().ended.push((Arc::clone(session), at, end));
        writer.wake.notify_one();
    }
}

/// A number that changes while the writer does its work.
pub(super) fn progress() -> u64 {
    existing().map_or(0, |writer| writer.progress.load(Ordering::Acquire))
}

/// Reports that a piece of work is done.
pub(crate) fn count_progress() {
    if let Some(writer) = existing() {
        writer.progress.fetch_add(1, Ordering::Release);
    }
}

/// Wakes the writer and sleeps until it has been through all streams, a moment at most. Whether it made progress.
pub(super) fn wait_for_room() -> bool {
    let Some(writer) = existing() else {
        return false;
    };
    let before = progress();
    writer.inbox().hurry = true;
    writer.wake.notify_one();
    let round = writer.round.lock().unwrap_or_else(PoisonError::into_inner);
    drop(writer.round_done.wait_timeout(round, ROOM));
    progress() != before
}

/// Counts records that came after their capture's end.
pub(super) fn count_late(records: u64) {
    if let Some(writer) = existing() {
        writer.late.fetch_add(records, Ordering::Relaxed);
    }
}

/// Records of the whole program that came after their capture's end.
pub(crate) fn late() -> u64 {
    existing().map_or(0, |writer| writer.late.load(Ordering::Relaxed))
}

/// In a forked child: the parent's writer does not exist here.
#[cfg(unix)]
pub(super) fn forget() {
    WRITER.store(ptr::null_mut(), Ordering::Release);
}

impl Writer {
    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sleeps until there is something to do.
    fn next(&self, working: bool) -> Inbox {
        let mut inbox = self.inbox();
        let idle = inbox.opened.is_empty() && inbox.ended.is_empty() && inbox.errands.is_empty();
        if idle && !inbox.hurry && !inbox.superfluous {
            inbox = if working {
                let woken = self.wake.wait_timeout(inbox, TICK);
                woken.unwrap_or_else(PoisonError::into_inner).0
            } else {
                let woken = self.wake.wait(inbox);
                woken.unwrap_or_else(PoisonError::into_inner)
            };
        }
        std::mem::take(&mut *inbox)
    }

    fn run(&self) {
        limits::make_errors_of_signals();
        let mut outputs: Vec<Output> = Vec::new();
        loop {
            let inbox = self.next(!outputs.is_empty());
            if inbox.superfluous {
                return;
            }
            for errand in inbox.errands {
                errand();
                self.progress.fetch_add(1, Ordering::Release);
            }
            outputs.extend(inbox.opened);
            for (session, at, end) in inbox.ended {
                let Some(index) = outputs.iter().position(|output| output.is_of(&session)) else {
                    continue;
                };
                let mut output = outputs.swap_remove(index);
                if guarded(|| output.finish(at, end)).is_err() {
                    fail(output);
                }
                self.progress.fetch_add(1, Ordering::Release);
                session.set_result(Finished);
            }
            let mut failed = Vec::new();
            for index in (0..outputs.len()).rev() {
                let drained = outputs
                    .get_mut(index)
                    .map(|output| guarded(|| output.drain()));
                if drained.is_some_and(|drained| drained.is_err()) {
                    failed.push(outputs.swap_remove(index));
                }
            }
            for output in failed {
                let session = output.session();
                session.end(End::Failed(FAULT.to_owned()));
                fail(output);
                session.set_result(Finished);
            }
            self.progress.fetch_add(1, Ordering::Release);
            drop(self.round.lock());
            self.round_done.notify_all();
        }
    }
}

pub(super) const FAULT: &str =
    "a fault of candle-profiler's own ended the capture; please report it";

/// Runs the writer's work; a fault of ours ends one capture, not the writer.
pub(super) fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, ()> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| ())
}

/// Ends a capture in whose midst the writer's work broke off.
fn fail(mut output: Output) {
    output.session().close_lanes(output.tickets());
    if guarded(|| output.fail(FAULT)).is_err() {
        say!("{FAULT}");
    }
}

#[cfg(all(test, unix, not(miri)))]
mod tests {
    use std::io::Read;
    use std::process::Command;
    use std::sync::mpsc;

    use crate::record::tests::{capture, capture_then};
    use crate::record::{Closing, Manner, prepare};

    /// Set in the child, whose writer is to hang.
    const CHILD: &str = "CANDLE_PROFILER_TEST_HANGS";

    /// The writer is one for the process, so the one that hangs has a process of its own.
    #[test]
    fn a_writer_that_hangs_ends_the_capture_and_nobody_waits_for_ever() {
        if std::env::var_os(CHILD).is_some() {
            return hang();
        }
        let output = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "--nocapture"])
            .arg("record::writer::tests::a_writer_that_hangs_ends_the_capture_and_nobody_waits_for_ever")
            .env(CHILD, "1")
            .output()
            .expect("a child");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        assert_eq!(
            said.matches("made no progress for 5 s").count(),
            1,
            "{said}"
        );
    }

    fn faulty() -> &'static str {
        panic!("a name that cannot be had stands for a fault of ours")
    }

    /// Without it each capture would take recorders of its own, and keep them.
    #[test]
    fn a_fault_of_the_writer_ends_its_capture_and_gives_the_recorders_back() {
        use crate::record::{CallSite, End, Name};
        static FAULTY: CallSite = CallSite(Name::Method(faulty, "work"), file!(), line!(), 0);
        const CAPTURES: usize = 16;

        let folder = tempfile::tempdir().expect("a folder");
        let mut used = std::collections::HashSet::new();
        let (send, closings) = mpsc::channel();
        for number in 0..CAPTURES {
            let file = std::fs::File::create(folder.path().join(number.to_string()));
            let send = send.clone();
            let done = move |closing: Closing| send.send(closing).expect("a receiver");
            let session = capture_then(file.expect("a file"), Manner::default(), done);
            let recorder = session.attach();
            used.insert(std::ptr::from_ref(recorder).addr());
            let token = recorder.open(&FAULTY);
            recorder.close(token);
            session.end(End::Complete);
            assert!(
                session.wait().is_some(),
                "nobody waits for a writer that failed"
            );
            recorder.leave();
        }
        assert!(used.len() < CAPTURES, "a recorder is used again");
        let closings: Vec<_> = closings.try_iter().collect();
        assert_eq!(closings.len(), CAPTURES, "whoever asked for it is told");
        for closing in closings {
            let broken = closing.broken.expect("why it broke off");
            assert!(broken.contains("candle-profiler's own"), "{broken}");
            assert!(closing.failed);
        }
        let session = capture(
            std::fs::File::create(folder.path().join("last")).expect("a file"),
            Manner::default(),
        );
        assert!(session.end(End::Complete) && session.wait().is_some());
        let trace = std::fs::read_to_string(folder.path().join("last")).expect("a trace");
        assert!(
            trace.contains("\"outcome\":\"complete\""),
            "the writer goes on"
        );
    }

    /// A pipe that nobody reads stands for a disk that does not answer.
    fn hang() {
        use crate::record::{CallSite, Name};
        static SITE: CallSite = CallSite(Name::Text("work"), file!(), line!(), 0);

        prepare();
        an_errand_that_hangs();
        let (mut reader, writer) = std::io::pipe().expect("a pipe");
        let file = std::fs::File::from(std::os::fd::OwnedFd::from(writer));
        let session = capture(file, Manner::default());
        let recorder = session.attach();
        // More than all chunks hold: the thread has to wait for room, and is let go.
        for _ in 0..2_000_000 {
            let token = recorder.open(&SITE);
            recorder.close(token);
        }
        assert!(session.has_ended(), "it was ended for the want of progress");
        recorder.leave();
        // The writer was let go of in the middle of a write, which is done when somebody reads.
        let mut byte = [0];
        assert_eq!(reader.read(&mut byte).expect("a byte"), 1);
    }

    /// What nobody waits for any more is not lost either.
    fn an_errand_that_hangs() {
        let writer = super::start().expect("a writer");
        let (answer, disk) = mpsc::channel();
        let (unwanted, late) = mpsc::channel();
        let work = move || disk.recv().map_err(std::io::Error::other);
        let result = writer.ask(work, move |result: u32| {
            unwanted.send(result).expect("a receiver");
        });
        assert!(matches!(result, Ok(None)), "{result:?}");
        answer.send(5).expect("the errand");
        assert_eq!(late.recv(), Ok(5));
    }

    #[test]
    fn errands_give_their_results_and_their_faults() {
        let writer = super::start().expect("a writer");
        let never = |_: u32| panic!("it was waited for");
        assert_eq!(writer.ask(|| Ok(3), never).expect("no error"), Some(3));
        let denied = || Err(std::io::ErrorKind::PermissionDenied.into());
        let error = writer.ask(denied, never).expect_err("an error");
        assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied);
        let error = writer
            .ask(|| panic!("a fault"), never)
            .expect_err("an error");
        assert!(
            error.to_string().contains("candle-profiler's own"),
            "{error}"
        );
        assert_eq!(writer.ask(|| Ok(4), never).expect("it goes on"), Some(4));
    }
}
