//! The end of the program: captures that are still open are closed, and what was not reached is said.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, Once, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::counter;
use super::fork::is_owner;
use super::schedule::{Seen, some_of};
use super::state;
use crate::instrument::Shared;
use crate::record::{End, Session, start_writer};
use crate::say::say;
use crate::thread::lock_until;

/// Captures that may be open; `None`: the program has come to its end, and none is opened any more.
static OPEN: Mutex<Option<Vec<Weak<Session>>>> = Mutex::new(Some(Vec::new()));

unsafe extern "C" {
    /// C standard, `stdlib.h`: calls `callback` when the process ends by `exit` or by a return from `main`.
    safe fn atexit(callback: extern "C" fn()) -> std::ffi::c_int;
}

/// Sessions by hand that may be open.
static BY_HAND: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

/// How long a lock is waited for that another thread may never give back.
const PATIENCE: Duration = Duration::from_secs(1);

/// Asks to be called at the end of the program.
pub(super) fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Where there is no room for another handler, the program ends without a notice.
        let _ = atexit(at_exit);
    });
}

/// Remembers a capture that the end of the program must close, or closes it where that has come: other threads may go
/// on for a while.
pub(super) fn remember(session: &Arc<Session>) {
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    match &mut *open {
        Some(open) => {
            open.retain(|session| session.strong_count() > 0);
            open.push(Arc::downgrade(session));
        }
        None => {
            session.end(End::Failed(EXITED.to_owned()));
        }
    }
}

/// Whether the program has come to its end.
pub(super) fn has_begun() -> bool {
    OPEN.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .is_none()
}

const EXITED: &str = "the process exited inside the measured region";

/// The same for a session by hand.
pub(crate) fn remember_by_hand(session: &Arc<Shared>) {
    register();
    if let Some(mut open) = lock_until(&BY_HAND, Instant::now() + PATIENCE) {
        open.retain(|session| session.strong_count() > 0);
        open.push(Arc::downgrade(session));
    }
}

extern "C" fn at_exit() {
    // A panic must not leave a function that C calls.
    let _ = std::panic::catch_unwind(|| {
        end_by_hand();
        if is_owner() {
            finish_all();
            tell();
        }
    });
}

fn end_by_hand() {
    let until = Instant::now() + PATIENCE;
    let Some(mut open) = lock_until(&BY_HAND, until) else {
        return;
    };
    let open = std::mem::take(&mut *open);
    for session in open.iter().filter_map(Weak::upgrade) {
        session.exited(until);
    }
}

fn finish_all() {
    let open = OPEN.lock().unwrap_or_else(PoisonError::into_inner).take();
    let open = open.unwrap_or_default();
    let mut open: Vec<Arc<Session>> = open.iter().filter_map(Weak::upgrade).collect();
    open.retain(|session| session.end(End::Failed(EXITED.to_owned())));
    // Where the writer hangs, it is waited for once.
    if open.iter().all(|session| session.wait().is_some()) {
        publish_kept();
    }
}

/// Gives the captures that were kept aside their names: by the writer, which has made them, so that a disk that does not
/// answer holds nobody.
fn publish_kept() {
    for counter in counter::all() {
        let kept = counter.kept().take();
        let Some(kept) = kept.filter(|_| counter.pick().publish_kept()) else {
            continue;
        };
        let published = start_writer().and_then(|writer| writer.ask(|| kept.commit(), drop));
        match published {
            Ok(Some(path)) => {
                say!(
                    "{} ran nothing annotated; its trace is {}",
                    counter.name,
                    path.display()
                );
            }
            Ok(None) => return state::writer_hangs(),
            Err(error) => say!("{error}"),
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
    if state.broken.load(Ordering::Relaxed) {
        // It was said why there are not all captures.
    } else if let Some(line) = state.settings.schedule.unreached(&seen) {
        say!("{line}");
    } else if !state.captured.load(Ordering::Relaxed) {
        let calls = seen
            .iter()
            .map(|seen| format!("{} {}", seen.name, seen.calls));
        match calls.collect::<Vec<_>>().as_slice() {
            [] => say!(
                "nothing was captured: annotated code ran, but no function or loop with #[measured]"
            ),
            calls => say!(
                "nothing was captured (calls seen: {}): by default it is the 2nd call of a training step; \
                 CANDLE_PROFILE_STEPS=1 takes the first",
                some_of(calls)
            ),
        }
    }
}

#[cfg(all(test, unix, not(miri)))]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::record::tests::capture;
    use crate::record::{CallSite, Manner, Name};

    /// Set in the child, whose writer is to hang.
    const CHILD: &str = "CANDLE_PROFILER_TEST_HANGS_AT_EXIT";

    #[test]
    fn at_the_end_of_the_program_a_writer_that_hangs_is_waited_for_once() {
        if std::env::var_os(CHILD).is_some() {
            return hang();
        }
        let output = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "--nocapture"])
            .arg("capture::exit::tests::at_the_end_of_the_program_a_writer_that_hangs_is_waited_for_once")
            .env(CHILD, "1")
            .output()
            .expect("a child");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
    }

    /// Pipes that nobody reads stand for a disk that does not answer.
    fn hang() {
        static SITE: CallSite = CallSite(Name::Text("work"), file!(), line!(), 0);

        let mut readers = Vec::new();
        for _ in 0..4 {
            let (reader, writer) = std::io::pipe().expect("a pipe");
            readers.push(reader);
            let file = std::fs::File::from(std::os::fd::OwnedFd::from(writer));
            let session = capture(file, Manner::default());
            let recorder = session.attach();
            // More than the pipe holds.
            for _ in 0..2000 {
                let token = recorder.open(&SITE);
                recorder.close(token);
            }
            recorder.leave();
            remember(&session);
            // Nobody but the list may keep it from the end of the test.
            std::mem::forget(session);
        }
        let before = Instant::now();
        finish_all();
        // One wait of 5 s, not four.
        assert!(before.elapsed() < Duration::from_secs(10));
    }
}
