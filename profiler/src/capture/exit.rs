//! The end of the program: captures that are still open are closed, and what was not reached is said.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::counter;
use super::fork::is_owner;
use super::schedule::Seen;
use super::state;
use crate::record::{End, Session};
use crate::say::say;

/// Captures that may be open.
static OPEN: Mutex<Vec<Weak<Session>>> = Mutex::new(Vec::new());

unsafe extern "C" {
    /// C standard, `stdlib.h`: calls `callback` when the process ends by `exit` or by a return from `main`.
    safe fn atexit(callback: extern "C" fn()) -> std::ffi::c_int;
}

/// Asks to be called at the end of the program.
pub(super) fn register() {
    // Where there is no room for another handler, the program ends without a notice.
    let _ = atexit(at_exit);
}

/// Remembers a capture that the end of the program must close.
pub(super) fn remember(session: &Arc<Session>) {
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    open.retain(|session| session.strong_count() > 0);
    open.push(Arc::downgrade(session));
}

extern "C" fn at_exit() {
    // A panic must not leave a function that C calls.
    let _ = std::panic::catch_unwind(|| {
        if is_owner() {
            finish_all();
            tell();
        }
    });
}

fn finish_all() {
    let open = std::mem::take(&mut *OPEN.lock().unwrap_or_else(PoisonError::into_inner));
    for session in open.iter().filter_map(Weak::upgrade) {
        let reason = "the process exited inside the measured region";
        if session.end(End::Failed(reason.to_owned())) {
            let _ = session.wait();
        }
    }
    for counter in counter::all() {
        let kept = counter.kept().take();
        if let Some(kept) = kept.filter(|_| counter.pick().publish_kept()) {
            match kept.commit() {
                Ok(path) => {
                    say!(
                        "{} ran nothing annotated; its trace is {}",
                        counter.name,
                        path.display()
                    );
                }
                Err(error) => say!("{error}"),
            }
        }
    }
}

fn tell() {
    let Some(state) = state::known() else {
        return;
    };
    let counters = counter::all();
    let seen: Vec<Seen<'_>> = counters
        .iter()
        .map(|counter| Seen {
            name: &counter.name,
            calls: counter.calls(),
            last_step: counter.last_step(),
        })
        .collect();
    for counter in &counters {
        if let Some(growth) = counter.resident().growth() {
            say!("{}: {growth}", counter.name);
        }
    }
    let late = crate::record::late();
    if late > 0 {
        say!("{late} records came after the end of their capture and were dropped");
    }
    if let Some(line) = state.settings.schedule.unreached(&seen) {
        say!("{line}");
    } else if !state.captured.load(Ordering::Relaxed) {
        match seen
            .iter()
            .map(|seen| format!("{} {}", seen.name, seen.calls))
            .reduce(|a, b| format!("{a}, {b}"))
        {
            Some(calls) => say!("nothing was captured (calls seen: {calls})"),
            None => say!(
                "nothing was captured: annotated code ran, but no function or loop with #[measured]"
            ),
        }
    }
}
