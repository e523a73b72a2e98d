//! What the targets share: memory that is counted, since bad input must not take more than its size explains, and a
//! folder.

mod counting;

use std::path::Path;
use std::sync::LazyLock;

/// So many times the input's bytes may be allocated at once.
const TIMES: usize = 20;

/// Buffers that are there for any input, empty or not.
const FIXED: usize = 256 * 1024;

/// Runs `work` on `input`; panics where it takes too much memory.
pub fn bounded<T>(input: &[u8], work: impl FnOnce() -> T) -> T {
    let (result, taken) = counting::peak(work);
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
