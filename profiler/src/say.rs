//! The profiler's own words on stderr: one line each, and never a panic where stderr is closed.

use std::collections::HashSet;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

/// So many different lines are remembered as said.
const REMEMBERED: usize = 1024;

/// Writes one line.
pub(crate) fn line(arguments: std::fmt::Arguments<'_>) {
    // Nobody is left to tell where stderr cannot be written.
    let _ = writeln!(std::io::stderr().lock(), "candle-profiler: {arguments}");
}

/// Writes a line that has not been written before.
pub(crate) fn once(text: &str) {
    static SAID: Mutex<Option<HashSet<String>>> = Mutex::new(None);
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    let said = said.get_or_insert_default();
    if said.len() < REMEMBERED && said.insert(text.to_owned()) {
        line(format_args!("{text}"));
    }
}

/// `say!("…")`: one line on stderr.
macro_rules! say {
    ($($argument:tt)*) => { $crate::say::line(format_args!($($argument)*)) };
}
pub(crate) use say;
