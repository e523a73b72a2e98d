//! Who writes a trace that is not finished.
//!
//! The number of a process says nothing on another machine, or in another container, that shares the folder. So a
//! writer holds a lock on its file, which the system takes back whatever way the process ends.

use std::fs::File;
use std::path::Path;

/// What the lock on a file says.
#[derive(Debug)]
pub(crate) enum Lock {
    /// Nobody writes it; and nobody is taken for its writer while this is held.
    Free(#[allow(dead_code, reason = "held for its drop")] File),
    /// Somebody does.
    Held,
    /// The file system has no locks, or the platform does not say.
    Unknown,
}

/// Locks a file that was just created, until what is returned and the file are both dropped. Where that cannot be,
/// nobody is told anything about the file.
pub(super) fn hold(file: &File) -> Option<File> {
    // Elsewhere a lock would keep others from reading.
    if cfg!(unix) && file.try_lock().is_ok() {
        file.try_clone().ok()
    } else {
        None
    }
}

/// Whether somebody writes the file.
#[cfg(unix)]
pub(crate) fn look(path: &Path) -> Lock {
    use std::fs::TryLockError;

    let Ok(file) = File::open(path) else {
        return Lock::Unknown;
    };
    match file.try_lock_shared() {
        Ok(()) => Lock::Free(file),
        Err(TryLockError::WouldBlock) => Lock::Held,
        Err(TryLockError::Error(_)) => Lock::Unknown,
    }
}

/// Whether somebody writes the file: not known here.
#[cfg(not(unix))]
pub(crate) fn look(_: &Path) -> Lock {
    Lock::Unknown
}
