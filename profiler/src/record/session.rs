//! A capture that streams to the writer: what its threads share, and how it ends.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Instant;

use super::lane::Sink;
use super::parked;
use super::recorder::{self, Recorder};
use super::stream::clock;
use super::sync::{self, AtomicBool, MutexGuard};
use super::writer::{self, Patience};
use crate::allocator::Counting;
#[cfg(feature = "candle")]
use crate::tensor::Later;
use crate::thread::thread_key;

/// Why a capture ends whose writer makes none.
pub(super) const STUCK: &str = "the trace's writer made no progress for 5 s";

/// A capture, shared by the threads that take part.
pub(crate) struct Session {
    /// The reading that is time 0.
    pub(super) origin: u64,
    /// The thread that opened it: its spans carry no thread.
    opener: u64,
    /// What watching the graph needs to know; `None`: the region does not train.
    #[cfg(feature = "candle")]
    pub(crate) watch: Option<crate::tensor::Watch>,
    /// The gradients that the region promises.
    #[cfg(feature = "candle")]
    pub(crate) plan: Option<crate::tensor::Plan>,
    ended: AtomicBool,
    /// A value that is not finite ends the program.
    stopped: AtomicBool,
    lanes: sync::Mutex<Lanes>,
    result: Mutex<Option<Finished>>,
    done: Condvar,
    synchronize: Option<Wait>,
    /// What devices still have to give.
    #[cfg(feature = "candle")]
    later: Mutex<Vec<Arc<Later>>>,
    /// Memory is counted until the end.
    counting: Mutex<Option<Counting>>,
    counts: bool,
}

/// Waits for the device.
pub(crate) type Wait = Box<dyn Fn() + Send + Sync>;

/// What a capture does at each begin and end of a span besides reading the clock.
#[derive(Default)]
pub(crate) struct Manner {
    /// Waits for the device.
    pub(crate) synchronize: Option<Wait>,
    /// Reads what the thread has allocated.
    pub(crate) memory: Option<Counting>,
}

/// The streams of a session.
#[derive(Default)]
struct Lanes {
    /// Not yet seen by the writer.
    arrivals: Vec<Arc<Ticket>>,
    /// The writer has read all streams to their end.
    closed: bool,
}

/// One thread's part in a session.
pub(crate) struct Ticket {
    pub(super) recorder: &'static Recorder,
    /// `None`: the opening thread.
    pub(super) thread: Option<Thread>,
    /// The thread has left; what it recorded may still have to be read.
    pub(super) left: AtomicBool,
}

/// A thread as the trace names it.
#[derive(Clone, Debug)]
pub(super) struct Thread {
    pub(super) number: u64,
    pub(super) name: Option<Box<str>>,
}

/// The writer is through with a capture.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finished;

/// What waiting for room came to.
pub(super) enum Room {
    /// The writer made progress.
    Moving,
    /// It has not, for a moment.
    Soon,
    /// It has not for 5 s.
    Stuck,
}

/// How a capture ends.
#[derive(Clone, Debug)]
pub(crate) enum End {
    Complete,
    Failed(String),
}

impl Session {
    /// A capture that begins now on this thread.
    pub(crate) fn new(
        #[cfg(feature = "candle")] watch: Option<crate::tensor::Watch>,
        #[cfg(feature = "candle")] plan: Option<crate::tensor::Plan>,
        manner: Manner,
    ) -> Arc<Self> {
        Arc::new(Self {
            opener: thread_key(),
            #[cfg(feature = "candle")]
            watch,
            #[cfg(feature = "candle")]
            plan,
            origin: clock().raw(),
            ended: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            lanes: sync::Mutex::default(),
            result: Mutex::new(None),
            done: Condvar::new(),
            synchronize: manner.synchronize,
            #[cfg(feature = "candle")]
            later: Mutex::default(),
            counts: manner.memory.is_some(),
            counting: Mutex::new(manner.memory),
        })
    }

    /// A device will give these when it is asked at the end.
    #[cfg(feature = "candle")]
    pub(super) fn await_statistics(&self, later: &Arc<Later>) {
        let mut all = self.later.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(Arc::clone(later));
    }

    /// Reads back what devices still have to give; the first value that is not finite.
    #[cfg(feature = "candle")]
    pub(crate) fn read_back(&self) -> Option<crate::nonfinite::Found> {
        // Devices are not asked under the lock, which threads that still record take.
        let all = {
            let mut later = self.later.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *later)
        };
        crate::tensor::read_back(&all)
    }

    /// Whether each begin and end of a span takes the long way.
    pub(super) fn asks(&self) -> bool {
        self.counts || self.synchronize.is_some()
    }

    /// Whether spans tell what their thread has allocated.
    pub(super) fn counts_memory(&self) -> bool {
        self.counts
    }

    /// Waits for the device, where each span does.
    pub(super) fn synchronize(&self) {
        if let Some(wait) = &self.synchronize {
            wait();
        }
    }

    fn lanes(&self) -> MutexGuard<'_, Lanes> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is over; in a forked child it always is, being the parent's.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire) || !crate::capture::is_owner()
    }

    /// Ends the capture as failed because the program is about to be stopped: that spans are still left on the way out is
    /// no loss to tell of.
    pub(crate) fn stop(self: &Arc<Self>, message: &str) -> bool {
        self.stopped.store(true, Ordering::Relaxed);
        self.end(End::Failed(message.to_owned()))
    }

    pub(super) fn count_late(&self, records: u64) {
        if self.stopped.load(Ordering::Relaxed) {
            return;
        }
        writer::count_late(records);
    }

    /// Ends the capture at this reading; the writer does the rest. `false`: it had ended.
    pub(crate) fn end(self: &Arc<Self>, end: End) -> bool {
        if !crate::capture::is_owner() || self.ended.swap(true, Ordering::AcqRel) {
            return false;
        }
        writer::finish(self, clock().raw(), end);
        let counting = self.counting.lock().map(|mut counting| counting.take());
        drop(counting);
        true
    }

    /// Ends a capture without waiting for anybody.
    pub(super) fn abandon(self: &Arc<Self>, reason: &str) {
        if self.end(End::Failed(reason.to_owned())) {
            crate::capture::writer_hangs();
        }
    }

    /// What became of the capture once the writer is through with it; `None`: it made no progress for 5 s.
    pub(crate) fn wait(&self) -> Option<Finished> {
        if !crate::capture::is_owner() {
            return Some(Finished);
        }
        let mut patience = Patience::new();
        let mut result = self.result.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(finished) = &*result {
                return Some(*finished);
            }
            let moment = patience.left()?;
            (result, _) = self
                .done
                .wait_timeout(result, moment)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(super) fn set_result(&self, finished: Finished) {
        *self.result.lock().unwrap_or_else(PoisonError::into_inner) = Some(finished);
        self.done.notify_all();
    }

    /// Waits a moment for the writer to empty a chunk. `since`: when it last made progress.
    pub(super) fn wait_for_room(&self, since: Instant) -> Room {
        #[cfg(all(test, loom))]
        {
            // Its time stands still while it tries the next order.
            loom::thread::yield_now();
            let _ = since;
            return Room::Soon;
        }
        #[cfg(not(all(test, loom)))]
        if writer::wait_for_room() {
            Room::Moving
        } else if since.elapsed() < writer::PATIENCE {
            Room::Soon
        } else {
            Room::Stuck
        }
    }

    /// The streams that have come since the writer asked last.
    pub(super) fn take_arrivals(&self) -> Vec<Arc<Ticket>> {
        std::mem::take(&mut self.lanes().arrivals)
    }

    /// No stream is read after this. Each one whose thread has left by then is given back; the others are left to
    /// their threads. The second time nothing is done: the recorders may be others' by then.
    pub(super) fn close_lanes(&self, mut lanes: Vec<Arc<Ticket>>) {
        let mut shared = self.lanes();
        if std::mem::replace(&mut shared.closed, true) {
            return;
        }
        lanes.append(&mut shared.arrivals);
        let mut late = 0;
        for ticket in lanes {
            if ticket.left.load(Ordering::Acquire) {
                ticket.recorder.recycle(&mut |_| late += 1);
            }
        }
        self.count_late(late);
    }

    /// Makes the session current on this thread, with a stream of its own.
    pub(crate) fn attach(self: &Arc<Self>) -> &'static Recorder {
        if let Some(recorder) = parked::take(self) {
            recorder.make_current();
            return recorder;
        }
        let recorder = recorder::borrow();
        self.lend(recorder);
        recorder.make_current();
        if std::thread::panicking() {
            // That panic went through none of the spans that are to come.
            recorder.panic_begins();
        }
        recorder
    }

    /// Lends the recorder to this thread, with a stream of its own that the writer hears of.
    pub(super) fn lend(self: &Arc<Self>, recorder: &'static Recorder) {
        let number = thread_key();
        let thread = (number != self.opener).then(|| Thread {
            number,
            name: std::thread::current().name().map(Box::from),
        });
        let ticket = Arc::new(Ticket {
            recorder,
            thread,
            left: AtomicBool::new(false),
        });
        recorder.lend(Sink::Stream(Arc::clone(self), Arc::clone(&ticket)));
        self.lanes().arrivals.push(ticket);
    }

    /// The thread has left; whoever comes last gives the recorder back.
    pub(super) fn leave(&self, ticket: &Ticket) {
        if !crate::capture::is_owner() {
            // The lock may be held by a thread that this forked child does not have.
            return;
        }
        let shared = self.lanes();
        if shared.closed {
            drop(shared);
            let mut late = 0;
            ticket.recorder.recycle(&mut |_| late += 1);
            self.count_late(late);
        } else {
            ticket.left.store(true, Ordering::Release);
        }
    }
}
