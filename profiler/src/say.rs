//! The profiler's own words on stderr: one line each, and never a panic where stderr is closed, nor a wait without end
//! where nobody reads it.

mod stderr;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::view::text::printable;

/// So many different lines are remembered as said.
const REMEMBERED: usize = 1024;

/// A pipe that has room takes this much at once (POSIX has it at least 512, and the systems we know 4096).
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
        if !stderr::has_room() || !stderr::write(piece) {
            MUTE.store(true, Ordering::Relaxed);
            return;
        }
    }
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
