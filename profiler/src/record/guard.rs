//! The guard of a span, and where the evidence about a returned value belongs.

use std::marker::PhantomData;
use std::sync::Arc;

use super::cold::{Evidence, Owner};
use super::detached::SpanCell;
use super::handle::join;
use super::recorder::{self, Recorder};
use super::session::Session;
use super::site::{CallSite, SpanSource};
use crate::capture::{Capture, Plane};
use crate::instrument::{Shared as ByHand, SpanId};

/// An open span on this thread; it ends when the guard is dropped.
///
/// Nothing happens where no capture is open. Guards may be dropped in any order: ending a span ends what is open
/// above it on its thread, and the guards of those do nothing later.
#[must_use = "the span ends when this is dropped"]
pub struct Span {
    /// Who records it, and the token that closes it; one option, so that nothing is set where nothing is recorded.
    open: Option<(&'static Recorder, u64)>,
    /// A span belongs to its thread's stack.
    thread: PhantomData<*const ()>,
}

impl Span {
    #[inline(always)]
    pub(crate) fn enter(site: &'static CallSite) -> Self {
        match recorder::current() {
            None => Self::none(),
            Some(recorder) => Self::on(recorder, recorder.open(site)),
        }
    }

    /// Opens a span whose name is built only now that it is known to be needed.
    #[cold]
    #[inline(never)]
    pub(crate) fn enter_as(recorder: &'static Recorder, source: SpanSource) -> Self {
        Self::on(recorder, recorder.open_cold(source, None))
    }

    #[inline(always)]
    pub(crate) fn none() -> Self {
        Self {
            open: None,
            thread: PhantomData,
        }
    }

    #[inline(always)]
    pub(crate) fn on(recorder: &'static Recorder, token: u64) -> Self {
        Self {
            open: Some((recorder, token)),
            thread: PhantomData,
        }
    }

    /// Ends the span now. What is recorded `at` the result belongs to it.
    #[inline(always)]
    pub fn end(self) -> Ended {
        match self.open {
            None => Ended::here(),
            Some(_) => Ended::at(Place::LastEnded),
        }
    }
}

impl Drop for Span {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some((recorder, token)) = self.open {
            recorder.close(token);
        }
    }
}

/// Where evidence belongs: to the innermost open span, or to one that has just ended.
///
/// It stays on the thread of its call, whose recorder the capture in it leaves.
pub struct Ended(pub(crate) Place, PhantomData<*const ()>);

/// See [`Ended`].
pub(crate) enum Place {
    /// The innermost open span.
    Here,
    /// The span that ended last on this level of the stack.
    LastEnded,
    /// Boxed, so that every call passes two words on and has next to nothing to drop.
    Elsewhere(Box<Elsewhere>),
}

/// A span that is not on this thread's stack.
pub(crate) enum Elsewhere {
    /// A future's span, whether this thread takes part in its capture now or not; and the capture that its call
    /// opened, if it did.
    Future(Arc<Session>, Arc<SpanCell>, Option<Box<Capture>>),
    /// The measured span of a capture that is still open.
    Capture(Box<Capture>),
    /// A future's span in a session by hand.
    ByHand(Arc<ByHand>, SpanId),
}

impl Ended {
    #[inline(always)]
    pub(crate) const fn at(place: Place) -> Self {
        Self(place, PhantomData)
    }

    /// No span of this call has ended: evidence belongs to the innermost open span.
    #[inline(always)]
    pub const fn here() -> Self {
        Self::at(Place::Here)
    }

    /// The span that ended last on this level.
    #[cfg(feature = "candle")]
    pub(crate) const fn last() -> Self {
        Self::at(Place::LastEnded)
    }

    /// Closes the capture that the call opened, if it did. `failure` says why the call failed, and is asked only then.
    #[inline(always)]
    pub fn finish(self, failure: impl FnOnce() -> Option<String>) {
        if let Place::Elsewhere(place) = self.0
            && let Some(capture) = place.into_capture()
        {
            capture.finish(failure());
        }
    }

    /// Whether a capture is open that evidence could go to.
    #[inline(always)]
    pub(crate) fn is_recording(&self) -> bool {
        match &self.0 {
            Place::Here | Place::LastEnded => recorder::current().is_some(),
            Place::Elsewhere(_) => true,
        }
    }

    /// The capture that evidence would go to, if it streams.
    pub(crate) fn session(&self) -> Option<Arc<Session>> {
        match &self.0 {
            Place::Here | Place::LastEnded => recorder::current()?.session(),
            Place::Elsewhere(place) => match &**place {
                Elsewhere::Future(session, ..) => Some(Arc::clone(session)),
                Elsewhere::Capture(capture) => Some(capture.session()),
                Elsewhere::ByHand(..) => None,
            },
        }
    }

    /// Whether this kind of evidence is asked for. A session by hand takes all.
    pub(crate) fn wants(&self, plane: Plane) -> bool {
        let by_hand = match &self.0 {
            Place::Here | Place::LastEnded => {
                recorder::current().is_some_and(|recorder| recorder.by_hand().is_some())
            }
            Place::Elsewhere(place) => matches!(**place, Elsewhere::ByHand(..)),
        };
        by_hand || crate::capture::records(plane)
    }

    /// Records `evidence`, made only where a capture is open.
    pub(crate) fn record(&self, make: impl FnOnce(&mut dyn FnMut(Evidence))) {
        match &self.0 {
            Place::Here => {
                if let Some(recorder) = recorder::current() {
                    observe(recorder, || Owner::Innermost, make);
                }
            }
            Place::LastEnded => {
                if let Some(recorder) = recorder::current() {
                    observe(recorder, || Owner::LastEnded, make);
                }
            }
            Place::Elsewhere(place) => place.record(make),
        }
    }
}

impl Elsewhere {
    /// The capture that the call opened, if it did.
    #[cold]
    fn into_capture(self) -> Option<Box<Capture>> {
        match self {
            Self::Future(_, _, capture) => capture,
            Self::Capture(capture) => Some(capture),
            Self::ByHand(..) => None,
        }
    }

    fn record(&self, make: impl FnOnce(&mut dyn FnMut(Evidence))) {
        match self {
            Self::Future(session, cell, _) => {
                let (recorder, lent) = join(session);
                observe(recorder, || Owner::Cell(Arc::clone(cell)), make);
                if lent {
                    recorder.leave();
                }
            }
            Self::Capture(capture) => capture.record(make),
            Self::ByHand(session, span) => {
                make(&mut |evidence| session.observe(Some(*span), evidence));
            }
        }
    }
}

/// What observing took beyond its evidence is told where it is more than telling takes.
const TOLD_NS: u64 = 200;

/// Runs `make` and books what it observes, and the time that takes.
pub(crate) fn observe(
    recorder: &'static Recorder,
    owner: impl Fn() -> Owner,
    make: impl FnOnce(&mut dyn FnMut(Evidence)),
) {
    let _own = crate::allocator::uncounted();
    let mut since = super::clock().raw();
    make(&mut |evidence| {
        let now = super::clock().raw();
        recorder.observe(owner(), evidence, now.saturating_sub(since));
        since = super::clock().raw();
    });
    let now = super::clock().raw();
    if super::clock().delta_as_nanos(since, now) > TOLD_NS {
        recorder.spent(now.saturating_sub(since));
    }
}

#[cfg(test)]
mod tests {
    use super::{Ended, Span};
    use crate::capture::Measured;

    /// Two ways to have it where a type is `Send`: then it is not known which is meant, and this does not compile.
    trait StaysHere<Way> {
        fn stays_here() {}
    }
    struct Sent;
    impl<T> StaysHere<()> for T {}
    impl<T: Send> StaysHere<Sent> for T {}

    /// On another thread the capture in them would take this one's recorder while it is written to.
    #[test]
    fn guards_stay_on_their_thread() {
        <Span as StaysHere<_>>::stays_here();
        <Ended as StaysHere<_>>::stays_here();
        <Measured as StaysHere<_>>::stays_here();
    }
}
