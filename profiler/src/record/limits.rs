//! Limits that the system sets to the files of a process (`ulimit -f`): who goes beyond them is sent a signal that ends
//! the program. A write of the writer's thread is to fail instead, as on a full disk.

/// Holds the signal off this thread; the write then gives an error. The program's own threads are not touched.
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(miri)
))]
pub(super) fn make_errors_of_signals() {
    use std::ffi::c_int;

    /// As large as that of glibc and musl.
    #[repr(C)]
    struct SignalSet([u64; 16]);

    unsafe extern "C" {
        /// POSIX, `signal.h`.
        fn sigaddset(set: *mut SignalSet, signal: c_int) -> c_int;
        /// The same; `how` is 0 for `SIG_BLOCK` on Linux.
        fn pthread_sigmask(how: c_int, set: *const SignalSet, before: *mut SignalSet) -> c_int;
    }
    const SIG_BLOCK: c_int = 0;
    const SIGXFSZ: c_int = 25;

    // All zeros is the empty set.
    let mut set = SignalSet([0; 16]);
    // SAFETY: the set is as large as the C library's and initialised; both functions only read and write it, and the mask
    // is this thread's alone.
    unsafe {
        sigaddset(&raw mut set, SIGXFSZ);
        pthread_sigmask(SIG_BLOCK, &raw const set, std::ptr::null_mut());
    }
}

/// Not known here.
#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(miri)
)))]
pub(super) fn make_errors_of_signals() {}
