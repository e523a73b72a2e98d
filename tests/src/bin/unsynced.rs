//! A program on a file system that takes every line; asked to keep them, it finds that it has no room, or with the
//! argument `hang` it never answers.

use candle_profiler::{measure_with, span};

#[cfg(target_os = "linux")]
mod disk {
    use std::ffi::c_int;

    const NO_SPACE: c_int = 28;

    unsafe extern "C" {
        safe fn __errno_location() -> *mut c_int;
    }

    /// Stands before the C library's own.
    #[unsafe(no_mangle)]
    extern "C" fn fdatasync(_: c_int) -> c_int {
        while std::env::args().any(|argument| argument == "hang") {
            std::thread::sleep(std::time::Duration::from_secs(1));
        }
        // SAFETY: this thread's own `errno`.
        unsafe { *__errno_location() = NO_SPACE };
        -1
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
