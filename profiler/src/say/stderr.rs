//! Stderr itself, written without the standard library's lock, which a program may hold for as long as it likes, and
//! without waiting for somebody who never reads.

#[cfg(unix)]
use std::fs::File;
#[cfg(unix)]
use std::io::{ErrorKind, Write};
#[cfg(unix)]
use std::mem::ManuallyDrop;
use std::time::Duration;
#[cfg(unix)]
use std::time::Instant;

/// How long somebody who does not read is waited for.
const PATIENCE: Duration = Duration::from_secs(1);

/// Writes a piece; `false`: nobody reads.
#[cfg(unix)]
pub(super) fn write(piece: &[u8]) -> bool {
    use std::os::fd::{AsRawFd, FromRawFd};

    // Not a copy of it either: there may be no descriptor left, which would be what is to be said.
    let descriptor = std::io::stderr().as_raw_fd();
    // SAFETY: the descriptor stays the program's; the file is never dropped, and so never closes it.
    let mut stderr = ManuallyDrop::new(unsafe { File::from_raw_fd(descriptor) });
    match that_never_waits(&stderr) {
        Some(mut own) => write_in_time(&mut own, piece),
        None => {
            // Nobody is left to tell where it cannot be written.
            let _ = stderr.write_all(piece);
            true
        }
    }
}

/// Another way to the terminal or pipe that stderr is: one that gives an error where it would wait, which is not a change
/// that may be made to stderr, since others share it. A terminal says that it has room when it has some.
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
fn that_never_waits(stderr: &File) -> Option<File> {
    use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};

    const O_NOCTTY: i32 = 0o400;
    const O_NONBLOCK: i32 = 0o4000;
    let kind = stderr.metadata().ok()?.file_type();
    if !kind.is_char_device() && !kind.is_fifo() {
        return None;
    }
    let mut options = File::options();
    options.write(true).custom_flags(O_NONBLOCK | O_NOCTTY);
    options.open("/proc/self/fd/2").ok()
}

/// Not known here.
#[cfg(all(
    unix,
    not(all(
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64")
    ))
))]
fn that_never_waits(_: &File) -> Option<File> {
    None
}

#[cfg(unix)]
fn write_in_time(to: &mut File, mut piece: &[u8]) -> bool {
    let since = Instant::now();
    while !piece.is_empty() {
        match to.write(piece) {
            Ok(written) => piece = &piece[written..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if since.elapsed() > PATIENCE {
                    return false;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(_) => return false,
        }
    }
    true
}

#[cfg(not(unix))]
pub(super) fn write(piece: &[u8]) -> bool {
    let _ = std::io::Write::write_all(&mut std::io::stderr().lock(), piece);
    true
}

/// Whether stderr takes something now, or within a second, and there is somebody who could read it. A full pipe that
/// nobody reads would hold the caller, and the writer of the traces, for ever; one whose reader has gone sends a signal,
/// which a program may have set to end it.
#[cfg(all(unix, not(miri)))]
pub(super) fn has_room() -> bool {
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
    const POLLERR: c_short = 8;
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
    let patience = c_int::try_from(PATIENCE.as_millis()).unwrap_or(c_int::MAX);
    // SAFETY: one structure as POSIX has it, which lives until the call returns.
    let ready = unsafe { poll(&raw mut stderr, 1, patience) };
    // An error, an interruption by a signal for example, is no reason to be silent.
    ready < 0 || ready > 0 && stderr.revents & POLLERR == 0
}

#[cfg(not(all(unix, not(miri))))]
pub(super) fn has_room() -> bool {
    true
}
