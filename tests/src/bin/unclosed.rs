//! A program on a file system that takes every line, and finds only when the file is closed that it has no room; with
//! the argument `hang` it never answers then.

use candle_profiler::{measure_with, span};

#[cfg(target_os = "linux")]
mod disk {
    use std::ffi::{c_int, c_uint};

    const NO_SPACE: c_int = 28;

    unsafe extern "C" {
        safe fn __errno_location() -> *mut c_int;
        safe fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int;
    }

    /// Stands before the C library's own.
    #[unsafe(no_mangle)]
    extern "C" fn close(fd: c_int) -> c_int {
        let path = std::fs::read_link(format!("/proc/self/fd/{fd}"));
        let is_trace =
            path.is_ok_and(|path| path.extension().is_some_and(|name| name == "partial"));
        while is_trace && std::env::args().any(|argument| argument == "hang") {
            std::thread::sleep(std::time::Duration::from_secs(1));
        }
        let closed = close_range(fd.cast_unsigned(), fd.cast_unsigned(), 0);
        if is_trace {
            // SAFETY: this thread's own `errno`.
            unsafe { *__errno_location() = NO_SPACE };
            return -1;
        }
        closed
    }
}

fn main() -> Result<(), std::fmt::Error> {
    for _ in 0..3 {
        measure_with("step", || {
            let _span = span("work");
            Ok::<(), std::fmt::Error>(())
        })?;
    }
    println!("done");
    Ok(())
}
