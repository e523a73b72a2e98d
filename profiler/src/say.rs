//! The profiler's own words on stderr: one line each, and never a panic where stderr is closed, nor a wait without end
//! where nobody reads it.

use std::collections::HashSet;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::view::text::printable;

/// So many different lines are remembered as said.
const REMEMBERED: usize = 1024;

/// A pipe that has room takes this much at once.
const PIECE: usize = 4096;

/// Nobody reads stderr: nothing more is said.
static MUTE: AtomicBool = AtomicBool::new(false);

/// Characters of a line; a name in it may be a megabyte.
const MOST: usize = 16 * 1024;

/// Writes one line. Names in it come from the program, and paths from the disk: nothing in them moves the cursor.
pub(crate) fn line(arguments: std::fmt::Arguments<'_>) {
    let line = printable(&arguments.to_string(), MOST);
    text(&format!("candle-profiler: {line}\n"));
}

/// Writes a text of whole lines.
pub(crate) fn text(text: &str) {
    if !crate::capture::is_owner() {
        return;
    }
    for piece in text.as_bytes().chunks(PIECE) {
        if MUTE.load(Ordering::Relaxed) {
            return;
        }
        if !has_room() {
            MUTE.store(true, Ordering::Relaxed);
            return;
        }
        // Nobody is left to tell where stderr cannot be written.
        let _ = write(piece);
    }
}

/// Not through the standard library's own lock: a program may hold it for as long as it likes, and the writer of the
/// traces would stand still.
#[cfg(unix)]
fn write(piece: &[u8]) -> std::io::Result<()> {
    use std::mem::ManuallyDrop;
    use std::os::fd::{AsRawFd, FromRawFd};
    // Not a copy of it either: there may be no descriptor left, which would be what is to be said.
    let stderr = std::io::stderr().as_raw_fd();
    // SAFETY: the descriptor stays the program's; the file is never dropped, and so never closes it.
    let mut stderr = ManuallyDrop::new(unsafe { std::fs::File::from_raw_fd(stderr) });
    stderr.write_all(piece)
}

#[cfg(not(unix))]
fn write(piece: &[u8]) -> std::io::Result<()> {
    std::io::stderr().lock().write_all(piece)
}

/// Whether stderr takes a [`PIECE`] now, or within a second. A full pipe that nobody reads would hold the caller, and
/// the writer of the traces, for ever.
#[cfg(all(unix, not(miri)))]
fn has_room() -> bool {
    use std::ffi::{c_int, c_short};

    /// POSIX, `poll.h`.
    #[repr(C)]
    struct PollFd {
        fd: c_int,
        events: c_short,
        revents: c_short,
    }
    const STDERR: c_int = 2;
    const POLLOUT: c_short = 4;
    const PATIENCE_MS: c_int = 1000;
    #[cfg(any(target_os = "linux", target_os = "android"))]
    type Count = std::ffi::c_ulong;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    type Count = std::ffi::c_uint;
    unsafe extern "C" {
        fn poll(fds: *mut PollFd, count: Count, milliseconds: c_int) -> c_int;
    }

    let mut stderr = PollFd {
        fd: STDERR,
        events: POLLOUT,
        revents: 0,
    };
    // SAFETY: one structure as POSIX has it, which lives until the call returns.
    let ready = unsafe { poll(&raw mut stderr, 1, PATIENCE_MS) };
    // An error, an interruption by a signal for example, is no reason to be silent.
    ready != 0
}

#[cfg(not(all(unix, not(miri))))]
fn has_room() -> bool {
    true
}

/// Writes a line that has not been written before.
pub(crate) fn once(text: &str) {
    if !crate::capture::is_owner() {
        // The lock may be held by a thread that this forked child does not have.
        return;
    }
    static SAID: Mutex<Option<HashSet<String>>> = Mutex::new(None);
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    let all = said.get_or_insert_default();
    let is_new = all.len() < REMEMBERED && all.insert(text.to_owned());
    // Nobody else waits for the line to be out.
    drop(said);
    if is_new {
        line(format_args!("{text}"));
    }
}

/// `say!("…")`: one line on stderr.
macro_rules! say {
    ($($argument:tt)*) => { $crate::say::line(format_args!($($argument)*)) };
}
pub(crate) use say;
