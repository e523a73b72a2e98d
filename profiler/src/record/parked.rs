//! The recorder that a thread used last, kept for its next visit to the same capture.
//!
//! A future may be polled a million times, a handle entered for every item of a loop: each visit would otherwise take
//! a recorder that the writer gives back only at its next round.

use std::cell::Cell;
use std::sync::Arc;

use super::recorder::Recorder;
use super::session::Session;

/// Ends the loan when its thread ends.
struct Parked(Cell<Option<&'static Recorder>>);

thread_local! {
    static PARKED: Parked = const { Parked(Cell::new(None)) };
}

impl Drop for Parked {
    fn drop(&mut self) {
        if let Some(recorder) = self.0.take() {
            recorder.retire();
        }
    }
}

/// Keeps a recorder that its thread has left. A thread that is being taken down keeps none.
pub(super) fn keep(recorder: &'static Recorder) {
    match PARKED.try_with(|parked| parked.0.replace(Some(recorder))) {
        Ok(Some(before)) => before.retire(),
        Ok(None) => {}
        Err(_) => recorder.retire(),
    }
}

/// The kept recorder, if it is of this session.
pub(super) fn take(session: &Arc<Session>) -> Option<&'static Recorder> {
    let recorder = PARKED.try_with(|parked| parked.0.take()).ok().flatten()?;
    if recorder.is_of(session) && !session.has_ended() {
        return Some(recorder);
    }
    recorder.retire();
    None
}
