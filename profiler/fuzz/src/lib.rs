//! What the targets share: memory that is counted, since bad input must not take more than its size explains, and a
//! folder.

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::Path;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

struct Counting;

// SAFETY: all is the system's allocator; what is added only counts.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(live, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// So many times the input's bytes may be allocated at once.
const TIMES: usize = 20;

/// Buffers that are there for any input, empty or not.
const FIXED: usize = 256 * 1024;

/// Runs `work` on `input`; panics where it takes too much memory.
pub fn bounded<T>(input: &[u8], work: impl FnOnce() -> T) -> T {
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let result = work();
    let taken = PEAK.load(Ordering::Relaxed).saturating_sub(before);
    let allowed = TIMES * input.len() + FIXED;
    assert!(
        taken <= allowed,
        "{taken} bytes for an input of {}",
        input.len()
    );
    result
}

/// A folder of this run, in memory where that can be had: the disk is not what is tried.
pub static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    let shared = Path::new("/dev/shm");
    let at = if shared.is_dir() {
        shared.to_owned()
    } else {
        std::env::temp_dir()
    };
    tempfile::tempdir_in(at).expect("a folder")
});
