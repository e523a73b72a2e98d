//! Work that the writer's thread does for a caller, who waits for it, but not for ever: a disk may not answer.

use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use super::writer::{FAULT, Patience, guarded};

/// What came of it.
enum State<T> {
    Waiting,
    Done(io::Result<T>),
    /// The caller has gone on without it.
    GivenUp,
}

struct Shared<T> {
    state: Mutex<State<T>>,
    done: Condvar,
}

/// A piece of work, as the writer takes it.
pub(super) type Errand = Box<dyn FnOnce() + Send>;

/// The caller's side.
pub(super) struct Answer<T>(Arc<Shared<T>>);

/// `unwanted`: what is done with a result that comes when nobody waits any more.
pub(super) fn errand<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
    unwanted: impl FnOnce(T) + Send + 'static,
) -> (Errand, Answer<T>) {
    let shared = Arc::new(Shared {
        state: Mutex::new(State::Waiting),
        done: Condvar::new(),
    });
    let writers = Arc::clone(&shared);
    let errand = move || {
        let given_up = || {
            let state = writers.state.lock().unwrap_or_else(PoisonError::into_inner);
            matches!(*state, State::GivenUp)
        };
        if given_up() {
            return;
        }
        let result = guarded(work).unwrap_or_else(|()| Err(io::Error::other(FAULT)));
        let mut state = writers.state.lock().unwrap_or_else(PoisonError::into_inner);
        match (&*state, result) {
            (State::GivenUp, Ok(result)) => {
                drop(state);
                // A fault of it is nobody's news any more.
                let _ = guarded(|| unwanted(result));
            }
            (State::GivenUp, Err(_)) => {}
            (_, result) => {
                *state = State::Done(result);
                writers.done.notify_one();
            }
        }
    };
    (Box::new(errand), Answer(shared))
}

impl<T> Answer<T> {
    /// Waits; `None`: the writer made no progress for 5 s.
    pub(super) fn wait(self) -> Option<io::Result<T>> {
        let Shared { state, done } = &*self.0;
        let mut patience = Patience::new();
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let State::Done(result) = std::mem::replace(&mut *state, State::Waiting) {
                return Some(result);
            }
            let Some(moment) = patience.left() else {
                *state = State::GivenUp;
                return None;
            };
            (state, _) = done
                .wait_timeout(state, moment)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}
