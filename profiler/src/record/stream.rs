//! A thread's stream of records: chunks that one thread fills and the writer empties, without a lock between them.
//!
//! A chunk's last slot holds a link to the next chunk, so the consumer follows the same path as the producer. The
//! cursor is published with a release store after each record; all that lies before it belongs to the consumer.

use std::cell::Cell;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::cold::Cold;
use super::site::CallSite;
use super::sync::{AtomicPtr, AtomicU64, Slot};

/// 16 bytes: the time, and what happened (see [`Word`]).
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Record {
    pub(crate) ticks: u64,
    pub(crate) word: *mut (),
}

const COLD: usize = 1;
const LINK: usize = 2;
/// A link to a chunk that is freed when it has been read.
const LINK_EXTRA: usize = 3;
const TAGS: usize = 3;

/// What a record's second half says.
pub(crate) enum Word {
    /// The innermost span ends.
    Close,
    /// A span of this call site begins.
    Open(&'static CallSite),
    /// Anything else; the consumer owns it now.
    Cold(Box<Cold>),
    /// The stream goes on in another chunk; `extra`: one of its own, to be freed.
    Link { next: *mut Slot, extra: bool },
}

impl Record {
    #[inline(always)]
    pub(crate) fn open(ticks: u64, site: &'static CallSite) -> Self {
        Self {
            ticks,
            word: ptr::from_ref(site).cast_mut().cast(),
        }
    }

    #[inline(always)]
    pub(crate) fn close(ticks: u64) -> Self {
        Self {
            ticks,
            word: ptr::null_mut(),
        }
    }

    pub(crate) fn cold(ticks: u64, cold: Cold) -> Self {
        BACKLOG.fetch_add(cold.weight(), Ordering::Relaxed);
        let boxed: *mut () = Box::into_raw(Box::new(cold)).cast();
        Self {
            ticks,
            word: boxed.map_addr(|address| address | COLD),
        }
    }

    fn link(next: *mut Slot, extra: bool) -> Self {
        let tag = if extra { LINK_EXTRA } else { LINK };
        let next: *mut () = next.cast();
        Self {
            ticks: 0,
            word: next.map_addr(|address| address | tag),
        }
    }

    /// Frees what the record owns.
    pub(crate) fn discard(self) {
        // SAFETY: the record was never put into a stream, so nobody else decodes it.
        drop(unsafe { self.decode() });
    }

    /// # Safety
    /// The record was made by the functions above and is decoded once only (a cold one changes its owner).
    pub(crate) unsafe fn decode(self) -> Word {
        let untagged = self.word.map_addr(|address| address & !TAGS);
        match self.word.addr() & TAGS {
            COLD => {
                // SAFETY: `cold` made this pointer from a `Box<Cold>`, and the caller decodes it once.
                let cold: Box<Cold> = unsafe { Box::from_raw(untagged.cast()) };
                BACKLOG.fetch_sub(cold.weight(), Ordering::Relaxed);
                Word::Cold(cold)
            }
            tag @ (LINK | LINK_EXTRA) => Word::Link {
                next: untagged.cast(),
                extra: tag == LINK_EXTRA,
            },
            _ if self.word.is_null() => Word::Close,
            _ => {
                // SAFETY: `open` made this pointer from a `&'static CallSite`.
                Word::Open(unsafe { &*untagged.cast::<CallSite>().cast_const() })
            }
        }
    }
}

/// Bytes of the boxed records that wait for the writer.
static BACKLOG: AtomicUsize = AtomicUsize::new(0);

/// Beyond this a thread that adds a boxed record lets the writer get on first: 16 bytes in a chunk may stand for a
/// megabyte of text.
const MOST_BACKLOG: usize = 64 << 20;

/// Whether the writer is so far behind that boxed records take too much memory.
pub(super) fn is_crowded() -> bool {
    BACKLOG.load(Ordering::Relaxed) > MOST_BACKLOG
}

/// Miri takes its time and loom tries many orders; both have to see many chunks.
const SMALL: bool = cfg!(any(miri, all(test, loom)));
/// Records in a chunk of the pool, the link included: 256 KiB.
const CHUNK: usize = match SMALL {
    true if cfg!(miri) => 8,
    true => 3,
    false => 16 * 1024,
};
/// Chunks in the pool: 40 MiB, room for a burst of 1.3 Mi spans.
const CHUNKS: usize = match SMALL {
    true if cfg!(miri) => 4,
    true => 1,
    false => 160,
};
/// Records in a thread's own first chunk, the link included: 4 KiB.
const FIRST: usize = match SMALL {
    true if cfg!(miri) => 8,
    true => 3,
    false => 256,
};

/// Memory for records, all fields of which are initialised before the consumer may see them.
struct Slots(Box<[Slot]>);

impl Slots {
    fn new(records: usize) -> Self {
        #[allow(unused_mut, reason = "loom's slots are not touched")]
        let mut slots: Box<[Slot]> = (0..records).map(|_| Slot::new(Record::close(0))).collect();
        #[cfg(not(all(test, loom)))]
        touch(&mut slots);
        Self(slots)
    }

    fn range(&self, first: usize, records: usize) -> Chunk {
        let all: *mut Slot = self.0.as_ptr().cast_mut();
        debug_assert!(records >= 2 && first + records <= self.0.len());
        let start = all.wrapping_add(first);
        Chunk {
            start,
            link: start.wrapping_add(records - 1),
        }
    }
}

/// All zeros: the system may hand out pages that exist only when something is written to them. That happens here, and
/// not when the first spans come.
#[cfg(not(all(test, loom)))]
fn touch(slots: &mut [Slot]) {
    /// The smallest page of memory that systems hand out.
    const PAGE: usize = 4096;
    for first in slots.iter_mut().step_by(PAGE / size_of::<Slot>()) {
        let first: *mut Record = ptr::from_mut(first).cast();
        // SAFETY: the pointer comes from a reference that nothing else uses meanwhile; a slot is a record.
        unsafe { first.write_volatile(Record::close(0)) };
    }
}

/// A chunk: from its first slot to the slot kept for the link.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Chunk {
    start: *mut Slot,
    link: *mut Slot,
}

/// The chunks that all threads share. A set bit is a free chunk.
struct Pool {
    slots: Slots,
    free: [AtomicU64; CHUNKS.div_ceil(64)],
}

#[cfg(not(all(test, loom)))]
static POOL: std::sync::LazyLock<Pool> = std::sync::LazyLock::new(Pool::new);
#[cfg(all(test, loom))]
loom::lazy_static! {
    static ref POOL: Pool = Pool::new();
}

/// Allocates and touches the pool, once; called when a capture opens, not while it runs.
pub(crate) fn prepare() {
    let _: &Pool = &POOL;
}

impl Pool {
    fn new() -> Self {
        Self {
            slots: Slots::new(CHUNK * CHUNKS),
            free: std::array::from_fn(|word| {
                AtomicU64::new(match CHUNKS - word * 64 {
                    64.. => u64::MAX,
                    rest => (1 << rest) - 1,
                })
            }),
        }
    }

    fn take(&self) -> Option<Chunk> {
        for (index, word) in self.free.iter().enumerate() {
            let mut bits = word.load(Ordering::Relaxed);
            while bits != 0 {
                let bit = bits.trailing_zeros() as usize;
                // Acquire: the consumer's reads of this chunk came before it set the bit.
                let before = word.fetch_and(!(1 << bit), Ordering::Acquire);
                if before & (1 << bit) != 0 {
                    return Some(self.slots.range((index * 64 + bit) * CHUNK, CHUNK));
                }
                bits = before & !(1 << bit);
            }
        }
        None
    }

    /// Takes a chunk back, known by its first slot; a thread's own first chunk is not ours and left alone.
    fn give(&self, start: *mut Slot) {
        let base = self.slots.range(0, CHUNK).start.addr();
        let Some(offset) = start.addr().checked_sub(base) else {
            return;
        };
        let chunk = offset / (CHUNK * size_of::<Slot>());
        if chunk < CHUNKS {
            self.free[chunk / 64].fetch_or(1 << (chunk % 64), Ordering::Release);
        }
    }
}

/// A chunk outside of the pool.
fn extra_chunk() -> Chunk {
    let slots = Box::into_raw(Slots::new(FIRST).0);
    let start: *mut Slot = slots.cast();
    Chunk {
        start,
        link: start.wrapping_add(FIRST - 1),
    }
}

/// # Safety
/// `start` is that of an [`extra_chunk`], which nobody uses any more.
unsafe fn free_extra(start: *mut Slot) {
    let slots = ptr::slice_from_raw_parts_mut(start, FIRST);
    // SAFETY: `extra_chunk` made it from a box of as many slots.
    drop(unsafe { Box::from_raw(slots) });
}

/// The producer's side of a stream; used by one thread at a time.
pub(crate) struct Producer {
    first: Slots,
    /// The chunk being filled.
    chunk: Cell<Chunk>,
}

// SAFETY: the pointers lead into chunks that are not freed while a stream is in them; the thread that holds the producer
// fills them.
unsafe impl Send for Producer {}

/// Where a stream's consumer stands.
pub(crate) struct Consumer {
    read: *mut Slot,
    chunk: *mut Slot,
    /// The chunk is not of the pool, nor the thread's first.
    extra: bool,
}

// SAFETY: the pointers lead into chunks that are not freed before their consumer has left them; only it reads through them.
unsafe impl Send for Consumer {}

impl Producer {
    pub(crate) fn new() -> Self {
        let first = Slots::new(FIRST);
        let chunk = first.range(0, FIRST);
        Self {
            first,
            chunk: Cell::new(chunk),
        }
    }

    /// Starts a new stream in the thread's own chunk, which no consumer reads any more.
    pub(crate) fn restart(&self) -> (*mut Slot, Consumer) {
        let chunk = self.first.range(0, FIRST);
        self.chunk.set(chunk);
        let consumer = Consumer {
            read: chunk.start,
            chunk: chunk.start,
            extra: false,
        };
        (chunk.start, consumer)
    }

    /// Links the full chunk to one with room; `consumed` is where the consumer stands. `None`: there is no room.
    /// Gives the new cursor.
    ///
    /// # Safety
    /// Called by the stream's one producer, whose cursor is at the chunk's link slot.
    pub(crate) unsafe fn extend(&self, consumed: *mut Slot) -> Option<*mut Slot> {
        let full = self.chunk.get();
        let (next, extra) = match POOL.take() {
            Some(next) => (next, false),
            // More threads than chunks, and this one's records have been read: it goes on in a small chunk of its own.
            // (Filling the full chunk again would leave the consumer unable to tell its end from where it stands.)
            None if consumed == full.link => (extra_chunk(), true),
            None => return None,
        };
        // SAFETY: the link slot is inside the chunk, was never published, and the caller is the only producer.
        unsafe { Slot::write(full.link, Record::link(next.start, extra)) };
        self.chunk.set(next);
        Some(next.start)
    }

    /// The slot kept for the link: where the chunk is full.
    pub(crate) fn link(&self) -> *mut Slot {
        self.chunk.get().link
    }
}

impl Consumer {
    /// Takes the next record before `published`, the producer's cursor read with acquire.
    pub(crate) fn take(&mut self, published: *mut Slot) -> Option<(u64, Word)> {
        loop {
            if self.read == published {
                return None;
            }
            // SAFETY: slots before the published cursor are initialised and no longer written by the producer; this
            // consumer is the only one and passes each slot once.
            let (ticks, word) = unsafe {
                let record = Slot::read(self.read);
                (record.ticks, record.decode())
            };
            match word {
                Word::Link { next, extra } => {
                    self.leave_chunk();
                    (self.chunk, self.extra) = (next, extra);
                    self.read = next;
                }
                word => {
                    self.read = self.read.wrapping_add(1);
                    return Some((ticks, word));
                }
            }
        }
    }

    pub(crate) fn position(&self) -> *mut Slot {
        self.read
    }

    /// The stream has ended and been read: its last chunk goes back.
    pub(crate) fn release(self) {
        self.leave_chunk();
    }

    fn leave_chunk(&self) {
        if self.extra {
            // SAFETY: the chunk is an extra one, all of it has been read, and its producer fills another.
            unsafe { free_extra(self.chunk) };
        } else {
            POOL.give(self.chunk);
        }
    }
}

/// A published position that never is one: what a consumer reports before it has read anything.
pub(crate) fn nowhere() -> AtomicPtr<Slot> {
    AtomicPtr::new(ptr::null_mut())
}

/// The process's one clock for captures: the TSC where it is invariant, calibrated when first used.
pub(crate) fn clock() -> &'static quanta::Clock {
    static CLOCK: OnceLock<quanta::Clock> = OnceLock::new();
    #[cfg(miri)]
    return CLOCK.get_or_init(|| quanta::Clock::mock().0);
    #[cfg(not(miri))]
    CLOCK.get_or_init(quanta::Clock::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(cursor: &mut *mut Slot, link: *mut Slot, next: &mut u64) {
        while *cursor != link {
            // SAFETY: the cursor is below the link slot of a chunk that this test alone fills.
            unsafe { Slot::write(*cursor, Record::close(*next)) };
            *cursor = cursor.wrapping_add(1);
            *next += 1;
        }
    }

    #[test]
    fn a_stream_goes_on_when_the_pool_is_empty() {
        let taken: Vec<Chunk> = std::iter::from_fn(|| POOL.take()).collect();
        assert!(taken.len() <= CHUNKS);
        let producer = Producer::new();
        let (mut cursor, mut consumer) = producer.restart();
        let (mut written, mut read) = (0, 0);
        for round in 0..5 {
            fill(&mut cursor, producer.link(), &mut written);
            // SAFETY: this test is the producer, and its cursor is at the link slot.
            let refused = unsafe { producer.extend(consumer.position()) };
            assert!(
                refused.is_none(),
                "unread records, and no chunk: round {round}"
            );
            while let Some((ticks, Word::Close)) = consumer.take(cursor) {
                assert_eq!(ticks, read);
                read += 1;
            }
            assert_eq!(read, written);
            // SAFETY: as above.
            cursor = unsafe { producer.extend(consumer.position()) }.expect("a chunk of its own");
        }
        while consumer.take(cursor).is_some() {}
        consumer.release();
        for chunk in taken {
            POOL.give(chunk.start);
        }
    }
}
