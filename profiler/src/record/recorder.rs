//! The hot side: what a thread does when a span opens or closes while a capture is open.
//!
//! A recorder is lent to one thread for one session and then used again; it is never freed, so that a guard that
//! outlives its session finds the token changed instead of freed memory.
//!
//! The token holds, from the top, the epoch (one for each loan), a serial and the depth. A guard closes in the fast
//! way when the token is the one it was given. Whatever makes a close unusual (the span gave out a handle, a guard
//! below it was closed before) changes the serial, so that the comparison fails and the cold side decides.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::ptr;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::thread::panicking;

use super::lane::{Lane, Sink};
use super::parked;
use super::site::{CallSite, SpanSource};
use super::stream::{Consumer, Record, clock, nowhere};
use super::sync::{AtomicPtr, AtomicU64, Mutex, MutexGuard, Slot};
use crate::allocator::{Uncounted, uncounted};
use crate::capture::is_owner;

/// A thread's token: see the module's text.
pub(crate) mod token {
    pub(crate) const DEPTH_BITS: u32 = 24;
    pub(crate) const SERIAL_BITS: u32 = 20;
    const DEPTH: u64 = (1 << DEPTH_BITS) - 1;
    const SERIAL: u64 = ((1 << SERIAL_BITS) - 1) << DEPTH_BITS;
    const EPOCH_SHIFT: u32 = DEPTH_BITS + SERIAL_BITS;

    pub(crate) fn depth(token: u64) -> u64 {
        token & DEPTH
    }

    pub(crate) fn epoch(token: u64) -> u64 {
        token >> EPOCH_SHIFT
    }

    pub(crate) fn first(epoch: u64) -> u64 {
        epoch << EPOCH_SHIFT
    }

    pub(crate) fn with_serial(token: u64, serial: u64) -> u64 {
        (token & !SERIAL) | ((serial << DEPTH_BITS) & SERIAL)
    }
}

/// What a thread needs to record, see the module's text.
#[repr(align(64))]
pub(crate) struct Recorder {
    pub(super) token: AtomicU64,
    /// Where the next record goes; all before it belongs to the consumer.
    pub(super) cursor: AtomicPtr<Slot>,
    /// Where the cold side must be asked: the chunk's end, or the cursor itself to be asked every time.
    pub(super) limit: AtomicPtr<Slot>,
    clock: quanta::Clock,
    pub(super) lane: Mutex<Lane>,
    /// The writer's place in the stream. Apart from the lane, since the thread waits for the writer holding that.
    consumer: Mutex<Option<Consumer>>,
    /// How far the consumer has read.
    pub(super) consumed: AtomicPtr<Slot>,
}

thread_local! {
    /// The recorder of the session that is current on this thread; null: none; [`UNREAD`]: not asked yet.
    static CURRENT: Cell<*const Recorder> = const { Cell::new(UNREAD) };
}

/// The thread has not run annotated code yet.
const UNREAD: *const Recorder = ptr::without_provenance(1);

/// This thread's recorder, if a session is current.
#[inline(always)]
pub(crate) fn current() -> Option<&'static Recorder> {
    let recorder = CURRENT.get();
    // First what is so in a normal run.
    if recorder.is_null() {
        return None;
    }
    if recorder == UNREAD {
        first_call();
        return None;
    }
    // SAFETY: besides the two marks the cell only ever holds references to recorders, which are never freed.
    Some(unsafe { &*recorder })
}

/// Makes `recorder` current and gives what was.
pub(super) fn set_current(recorder: Option<&'static Recorder>) -> Option<&'static Recorder> {
    let before = CURRENT.replace(recorder.map_or(ptr::null(), ptr::from_ref));
    // SAFETY: as in `current`.
    (before.addr() > UNREAD.addr()).then(|| unsafe { &*before })
}

#[cold]
fn first_call() {
    CURRENT.set(ptr::null());
    crate::capture::first_call();
}

impl Recorder {
    pub(super) fn new() -> Self {
        Self {
            token: AtomicU64::new(0),
            cursor: nowhere(),
            limit: nowhere(),
            clock: clock().clone(),
            lane: Mutex::new(Lane::new()),
            consumer: Mutex::new(None),
            consumed: nowhere(),
        }
    }

    /// The cold side. What it allocates is the profiler's own.
    pub(super) fn lane(&self) -> LaneGuard<'_> {
        let own = uncounted();
        LaneGuard {
            lane: self.lane.lock().unwrap_or_else(PoisonError::into_inner),
            _own: own,
        }
    }

    /// Tells this thread's innermost span from all others.
    pub(crate) fn place(&self) -> u64 {
        self.token.load(Ordering::Relaxed)
    }

    /// How many levels are open.
    #[cfg(feature = "candle")]
    pub(crate) fn depth(&self) -> u64 {
        token::depth(self.token.load(Ordering::Relaxed))
    }

    /// Opens a span; gives the token that closes it.
    #[inline(always)]
    pub(crate) fn open(&'static self, site: &'static CallSite) -> u64 {
        let cursor = self.cursor.load(Ordering::Relaxed);
        if cursor == self.limit.load(Ordering::Relaxed) {
            return self.open_cold(SpanSource::Site(site), None);
        }
        let token = self.token.load(Ordering::Relaxed) + 1;
        self.token.store(token, Ordering::Relaxed);
        let record = Record::open(self.clock.raw(), site);
        // Loaded anew, so that no register must be kept for it over the call.
        let cursor = self.cursor.load(Ordering::Relaxed);
        // SAFETY: the cursor is below the limit, so it points into the chunk that this thread alone fills.
        unsafe { Slot::write(cursor, record) };
        self.cursor.store(cursor.wrapping_add(1), Ordering::Release);
        token
    }

    /// Closes the span that got this token.
    #[inline(always)]
    pub(crate) fn close(&'static self, token: u64) {
        // In this order no register must be kept over a call.
        if panicking() {
            return self.close_cold(token);
        }
        let ticks = self.clock.raw();
        let cursor = self.cursor.load(Ordering::Relaxed);
        if self.token.load(Ordering::Relaxed) != token
            || cursor == self.limit.load(Ordering::Relaxed)
        {
            return self.close_cold(token);
        }
        // SAFETY: as in `open`.
        unsafe { Slot::write(cursor, Record::close(ticks)) };
        self.cursor.store(cursor.wrapping_add(1), Ordering::Release);
        self.token.store(token - 1, Ordering::Relaxed);
    }
}

/// The lane, locked.
pub(super) struct LaneGuard<'a> {
    lane: MutexGuard<'a, Lane>,
    _own: Uncounted,
}

impl Deref for LaneGuard<'_> {
    type Target = Lane;

    fn deref(&self) -> &Lane {
        &self.lane
    }
}

impl DerefMut for LaneGuard<'_> {
    fn deref_mut(&mut self) -> &mut Lane {
        &mut self.lane
    }
}

/// Recorders that no thread uses.
static IDLE: std::sync::Mutex<Vec<&'static Recorder>> = std::sync::Mutex::new(Vec::new());

/// A recorder for this thread: one used before, or a new one.
pub(super) fn borrow() -> &'static Recorder {
    let idle = is_owner().then(|| IDLE.lock().unwrap_or_else(PoisonError::into_inner).pop());
    let idle = idle.flatten();
    idle.unwrap_or_else(|| Box::leak(Box::new(Recorder::new())))
}

impl Recorder {
    /// Begins a loan to this thread.
    pub(super) fn lend(&self, sink: Sink) {
        let consumer = self.start(sink);
        *self.consumer() = consumer;
    }

    pub(super) fn consumer(&self) -> MutexGuard<'_, Option<Consumer>> {
        self.consumer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes this thread record here.
    pub(super) fn make_current(&'static self) {
        self.lane().previous = set_current(Some(self));
    }

    /// Ends this thread's loan: its spans are the writer's to end, and its guards do nothing from now on.
    pub(crate) fn leave(&'static self) {
        let previous = self.lane().previous.take();
        if current().is_some_and(|current| ptr::eq(current, self)) {
            set_current(previous);
        } else {
            // Sessions were entered and left in another order than the stack's: take this one out of the middle.
            let mut above = current();
            while let Some(recorder) = above {
                let mut lane = recorder.lane();
                if lane.previous.is_some_and(|below| ptr::eq(below, self)) {
                    lane.previous = previous;
                    break;
                }
                above = lane.previous;
            }
        }
        self.close_all();
        match self.session() {
            Some(session) if !session.has_ended() => parked::keep(self),
            _ => self.retire(),
        }
    }

    /// Ends the loan to a thread that has left.
    pub(super) fn retire(&'static self) {
        match self.stop() {
            Sink::Stream(session, ticket) | Sink::Ended(session, ticket) => session.leave(&ticket),
            Sink::ByHand(..) => give_back(self),
            Sink::None => {}
        }
    }

    /// Reads what is left of a stream whose thread has gone, and makes the recorder free for others.
    pub(super) fn recycle(&'static self, each: &mut dyn FnMut(u64)) {
        let consumer = self.consumer().take();
        if let Some(mut consumer) = consumer {
            let published = self.cursor.load(Ordering::Acquire);
            while let Some((ticks, word)) = consumer.take(published) {
                drop(word);
                each(ticks);
            }
            consumer.release();
            give_back(self);
        }
    }
}

fn give_back(recorder: &'static Recorder) {
    if is_owner() {
        IDLE.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(recorder);
    }
}
