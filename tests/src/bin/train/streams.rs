//! Programs that do something with their standard streams.

#![cfg(unix)]

use std::ffi::c_int;
use std::io::Write;
use std::time::Duration;

use anyhow::Result;

use crate::modes;

unsafe extern "C" {
    /// POSIX, `unistd.h`.
    fn close(descriptor: c_int) -> c_int;
    /// C standard, `signal.h`; 0 stands for the default action.
    fn signal(number: c_int, action: usize) -> usize;
}

/// Closes stdout and stderr, whose numbers are given to the next files.
pub(crate) fn closed(steps: u32) -> Result<()> {
    for stream in [1, 2] {
        // SAFETY: nothing here relies on what these streams lead to.
        unsafe { close(stream) };
    }
    modes::plain(steps)
}

/// A pipe that nobody reads ends the program. Waits until nobody reads its stderr.
pub(crate) fn pipe_ends(steps: u32) -> Result<()> {
    while std::io::stderr().write_all(b".").is_ok() {
        std::thread::sleep(Duration::from_millis(10));
    }
    const SIGPIPE: c_int = 13;
    // SAFETY: the default action is a valid one.
    unsafe { signal(SIGPIPE, 0) };
    modes::plain(steps)
}
