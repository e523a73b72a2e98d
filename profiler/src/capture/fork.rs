//! Forked children: they have their parent's captures in memory, but neither its files nor its writer's thread, and
//! locks that other threads of the parent held stay held for ever. So nothing is recorded in them, and nothing waited for.

use std::sync::atomic::{AtomicBool, Ordering};

/// This process is a forked child of the one that switched profiling on.
static FORKED: AtomicBool = AtomicBool::new(false);

#[cfg(unix)]
unsafe extern "C" {
    /// POSIX, `pthread.h`: calls `child` in the child of each fork.
    safe fn pthread_atfork(
        prepare: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
    ) -> std::ffi::c_int;
}

/// Asks to be called in each child.
#[cfg(unix)]
pub(super) fn register() {
    // Where there is no room for another handler, a child is taken for its parent, as it is where none can be had.
    let _ = pthread_atfork(None, None, Some(in_child));
}

#[cfg(not(unix))]
pub(super) fn register() {}

/// Only what may be done between a fork and an exec is done here: a few stores.
#[cfg(unix)]
extern "C" fn in_child() {
    FORKED.store(true, Ordering::Relaxed);
    super::state::switch_off();
    crate::record::forget_all();
}

/// Whether this process is the one that switched profiling on. Asked before any lock is taken that a thread of the
/// parent may have held.
pub(crate) fn is_owner() -> bool {
    !FORKED.load(Ordering::Relaxed)
}
