//! Handing the current span to another thread.

use std::marker::PhantomData;
use std::sync::Arc;

use super::detached::SpanCell;
use super::recorder::{self, Recorder};
use super::session::Session;

/// The span that is current where [`current`] was called, to be entered on another thread.
///
/// A span begun through it is a child of the nearest span that is still open when it ends: the one the handle was
/// taken in, one of those around it, or else the capture's root. The handle keeps no capture open.
#[derive(Clone)]
pub struct Handle(Option<Target>);

#[derive(Clone)]
enum Target {
    Stream(Arc<Session>, Option<Arc<SpanCell>>),
    ByHand(Arc<crate::instrument::Shared>),
}

/// A handle to the span that is current on this thread; one that does nothing where no capture is open.
///
/// ```
/// let handle = candle_profiler::current();
/// std::thread::scope(|scope| {
///     scope.spawn(|| {
///         let _entered = handle.enter();
///         let _span = candle_profiler::span("load batch");
///     });
/// });
/// ```
#[must_use]
#[inline]
pub fn current() -> Handle {
    if cfg!(feature = "off") {
        return Handle(None);
    }
    Handle(recorder::current().and_then(|recorder| {
        if let Some(session) = recorder.by_hand() {
            return Some(Target::ByHand(session));
        }
        let session = recorder.session()?;
        Some(Target::Stream(session, recorder.give()))
    }))
}

impl Handle {
    /// Makes the handle's capture current on this thread until the guard is dropped.
    #[must_use = "the thread leaves the capture when this is dropped"]
    pub fn enter(&self) -> Entered {
        let Some(target) = &self.0 else {
            return Entered::nothing();
        };
        match target {
            Target::Stream(session, cell) => {
                if session.has_ended() {
                    return Entered::nothing();
                }
                let (recorder, lent) = join(session);
                let token = recorder.enter_frame(cell.clone(), true);
                Entered::on(recorder, Some(token), lent)
            }
            Target::ByHand(session) => Entered::on(Recorder::attach_by_hand(session), None, true),
        }
    }

    /// Runs `work` with the handle's capture current on this thread.
    pub fn run<R>(&self, work: impl FnOnce() -> R) -> R {
        let _entered = self.enter();
        work()
    }
}

/// A recorder of this thread for the session: the current one if it is of that session, else a new one (`true`).
pub(super) fn join(session: &Arc<Session>) -> (&'static Recorder, bool) {
    match recorder::current() {
        Some(recorder) if recorder.is_of(session) => (recorder, false),
        _ => (session.attach(), true),
    }
}

/// A capture made current on this thread by [`Handle::enter`] or a session's `enter`.
#[must_use = "the thread leaves the capture when this is dropped"]
pub struct Entered {
    entered: Option<(&'static Recorder, Option<u64>, bool)>,
    /// The guard belongs to the thread it was made on.
    thread: PhantomData<*const ()>,
}

impl Entered {
    pub(crate) fn nothing() -> Self {
        Self {
            entered: None,
            thread: PhantomData,
        }
    }

    /// `token`: the frame to end. `lent`: the recorder was made current for this guard.
    pub(crate) fn on(recorder: &'static Recorder, token: Option<u64>, lent: bool) -> Self {
        Self {
            entered: Some((recorder, token, lent)),
            thread: PhantomData,
        }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        if let Some((recorder, token, lent)) = self.entered.take() {
            if let Some(token) = token {
                recorder.close_cold(token);
            }
            if lent {
                recorder.leave();
            }
        }
    }
}
