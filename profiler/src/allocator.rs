//! How much memory each thread takes, counted while a capture is open.
//!
//! The counts are a thread's own and nobody else's: plain cells that need no destructor, so that memory may be taken and
//! given back while a thread is being taken down.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An allocator that counts: its spans then say how many bytes their thread took on balance (`mem_net`), and the most
/// above their start (`mem_peak`).
///
/// While no capture is open it costs one load and a branch; with the feature `off` it is its inner allocator.
///
/// ```
/// use std::alloc::System;
/// use candle_profiler::TrackingAllocator;
///
/// #[global_allocator]
/// static ALLOCATOR: TrackingAllocator = TrackingAllocator::new(System);
/// ```
#[derive(Debug, Default, Clone, Copy)]
#[repr(transparent)]
pub struct TrackingAllocator<A = System>(A);

impl<A> TrackingAllocator<A> {
    /// Counts what goes through `inner`, such as `System` or another crate's allocator.
    pub const fn new(inner: A) -> Self {
        Self(inner)
    }
}

/// Captures that are open and count memory.
static COUNTING: AtomicUsize = AtomicUsize::new(0);

/// What a thread has taken since it was first counted.
struct Counts {
    /// Bytes taken less bytes given back.
    level: Cell<i64>,
    /// The highest level since the innermost span began.
    peak: Cell<i64>,
    /// The profiler itself is at work, so many times over.
    paused: Cell<u32>,
}

thread_local! {
    static COUNTS: Counts = const {
        Counts {
            level: Cell::new(0),
            peak: Cell::new(0),
            paused: Cell::new(0),
        }
    };
}

/// Whether the thread's memory has to be counted now.
#[inline(always)]
fn is_counting() -> bool {
    !cfg!(feature = "off") && COUNTING.load(Ordering::Relaxed) != 0
}

#[cold]
#[inline(never)]
fn count(bytes: i64) {
    // `Counts` has no destructor, so it is there as long as the thread runs any code.
    let _ = COUNTS.try_with(|counts| {
        if counts.paused.get() == 0 {
            let level = counts.level.get().wrapping_add(bytes);
            counts.level.set(level);
            counts.peak.set(counts.peak.get().max(level));
        }
    });
}

/// No object is larger than `isize::MAX`.
#[inline(always)]
fn signed(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

// SAFETY: every call goes to the inner allocator with the arguments that came, and gives its answer; counting takes no
// memory and cannot panic.
unsafe impl<A: GlobalAlloc> GlobalAlloc for TrackingAllocator<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc`.
        let memory = unsafe { self.0.alloc(layout) };
        if is_counting() && !memory.is_null() {
            count(signed(layout.size()));
        }
        memory
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        let memory = unsafe { self.0.alloc_zeroed(layout) };
        if is_counting() && !memory.is_null() {
            count(signed(layout.size()));
        }
        memory
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { self.0.dealloc(memory, layout) };
        if is_counting() {
            count(-signed(layout.size()));
        }
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `realloc`.
        let moved = unsafe { self.0.realloc(memory, layout, size) };
        if is_counting() && !moved.is_null() {
            count(signed(size) - signed(layout.size()));
        }
        moved
    }
}

/// A capture counts memory while this lives.
pub(crate) struct Counting(());

impl Counting {
    /// Starts to count; `None` where the program has another allocator.
    pub(crate) fn start() -> Option<Self> {
        static INSTALLED: OnceLock<bool> = OnceLock::new();
        let counting = Self::begin();
        INSTALLED.get_or_init(is_installed).then_some(counting)
    }

    fn begin() -> Self {
        COUNTING.fetch_add(1, Ordering::Relaxed);
        Self(())
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        COUNTING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether this program's memory comes through a [`TrackingAllocator`]: asked while counting.
fn is_installed() -> bool {
    let before = level();
    let probe = black_box(Box::new(0u64));
    let is = level() != before;
    drop(probe);
    is
}

fn level() -> i64 {
    COUNTS.try_with(|counts| counts.level.get()).unwrap_or(0)
}

/// What this thread takes and gives back while this lives is the profiler's own, and not counted.
#[must_use]
pub(crate) struct Uncounted(());

/// See [`Uncounted`].
#[inline]
pub(crate) fn uncounted() -> Uncounted {
    let _ = COUNTS.try_with(|counts| counts.paused.set(counts.paused.get() + 1));
    Uncounted(())
}

impl Drop for Uncounted {
    #[inline]
    fn drop(&mut self) {
        let _ = COUNTS.try_with(|counts| counts.paused.set(counts.paused.get().saturating_sub(1)));
    }
}

/// Where a span began.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mark {
    level: i64,
    /// The peak of the span around it so far.
    outer_peak: i64,
}

/// What a span's thread took in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    /// Bytes taken less bytes given back.
    pub(crate) net: i64,
    /// The most above the start.
    pub(crate) peak: u64,
}

/// A span begins.
pub(crate) fn mark() -> Mark {
    let marked = COUNTS.try_with(|counts| {
        let level = counts.level.get();
        Mark {
            level,
            outer_peak: counts.peak.replace(level),
        }
    });
    marked.unwrap_or_default()
}

/// The innermost span, which began at `mark`, ends.
pub(crate) fn taken(mark: Mark) -> Taken {
    let taken = COUNTS.try_with(|counts| {
        let peak = counts.peak.get();
        counts.peak.set(peak.max(mark.outer_peak));
        Taken {
            net: counts.level.get().wrapping_sub(mark.level),
            peak: u64::try_from(peak.wrapping_sub(mark.level)).unwrap_or(0),
        }
    });
    taken.unwrap_or_default()
}

#[cfg(test)]
#[cfg(not(feature = "off"))]
mod tests {
    use super::*;

    const TRACKING: TrackingAllocator = TrackingAllocator::new(System);

    fn layout(size: usize) -> Layout {
        Layout::from_size_align(size, 8).unwrap()
    }

    #[test]
    fn a_span_has_its_balance_and_its_peak_and_so_has_the_one_around_it() {
        let _counting = Counting::begin();
        let outer = mark();
        // SAFETY: each block is given back with the layout that it has by then, once.
        unsafe {
            let kept = TRACKING.alloc(layout(100));
            let inner = mark();
            let a = TRACKING.alloc_zeroed(layout(1000));
            assert!((0..1000).all(|at| a.add(at).read() == 0));
            let a = TRACKING.realloc(a, layout(1000), 400);
            let b = TRACKING.alloc(layout(50));
            TRACKING.dealloc(a, layout(400));
            assert_eq!(
                taken(inner),
                Taken {
                    net: 50,
                    peak: 1000
                }
            );
            let later = mark();
            TRACKING.dealloc(b, layout(50));
            let c = TRACKING.realloc(kept, layout(100), 10);
            assert_eq!(taken(later), Taken { net: -140, peak: 0 });
            TRACKING.dealloc(c, layout(10));
        }
        assert_eq!(taken(outer), Taken { net: 0, peak: 1100 });
    }

    #[test]
    fn nothing_of_the_profiler_s_own_is_counted() {
        let _counting = Counting::begin();
        let start = mark();
        // SAFETY: the block is given back with its layout, once.
        unsafe {
            let block = {
                let _outer = uncounted();
                let _inner = uncounted();
                TRACKING.alloc(layout(100))
            };
            let _uncounted = uncounted();
            TRACKING.dealloc(block, layout(100));
        }
        assert_eq!(taken(start), Taken::default());
    }

    #[test]
    fn another_allocator_is_known_by_its_silence() {
        // The library's own tests have the system's.
        assert!(Counting::start().is_none());
    }

    #[test]
    fn memory_given_back_while_a_thread_ends_is_no_fault() {
        struct Last(*mut u8);
        impl Drop for Last {
            fn drop(&mut self) {
                // SAFETY: the block was taken with this layout and is given back once.
                unsafe { TRACKING.dealloc(self.0, layout(64)) };
            }
        }
        thread_local! {
            static LAST: Cell<Option<Last>> = const { Cell::new(None) };
        }
        let _counting = Counting::begin();
        let thread = std::thread::spawn(|| {
            // SAFETY: given back by `Last`.
            LAST.set(Some(Last(unsafe { TRACKING.alloc(layout(64)) })));
        });
        thread.join().unwrap();
    }
}
