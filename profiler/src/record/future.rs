//! The span of a future: current only while the future is polled, ended by its completion or its drop.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread::panicking;

use super::cold::{DetachedEnd, MeasuredStart};
use super::detached::SpanCell;
use super::guard::{Elsewhere, Ended, Place};
use super::handle::join;
use super::recorder::Recorder;
use super::session::Session;
use super::site::SpanSource;
use super::stream::clock;
use crate::capture::{Active, Call, Capture, panic_reason};
use crate::instrument::{Shared as ByHand, SpanId};

/// The span of an `async fn`'s call, made at its first poll.
pub struct AsyncSpan(Option<Box<FutureSpan>>);

/// What a future takes part in: a capture, a measured call, or both.
struct FutureSpan {
    part: Option<Part>,
    by_hand: Option<HandPart>,
    /// The measured call that the future is.
    call: Option<Arc<Call>>,
    /// The capture that this call opened.
    capture: Option<Box<Capture>>,
    /// The number in the span's own name.
    ordinal: Option<u64>,
    polls: u64,
    busy: u64,
    /// A poll panicked.
    panicked: bool,
}

/// A future's span in a capture.
struct Part {
    session: Arc<Session>,
    cell: Arc<SpanCell>,
}

/// A future's span in a session by hand.
struct HandPart {
    session: Arc<ByHand>,
    span: SpanId,
}

impl AsyncSpan {
    #[inline(always)]
    pub(crate) fn none() -> Self {
        Self(None)
    }

    fn of(part: Option<Part>, call: Option<Arc<Call>>, capture: Option<Box<Capture>>) -> Self {
        Self(Some(Box::new(FutureSpan {
            part,
            by_hand: None,
            call,
            capture,
            ordinal: None,
            polls: 0,
            busy: 0,
            panicked: false,
        })))
    }

    /// A span that begins now, child of what is current.
    #[cold]
    #[inline(never)]
    pub(crate) fn begin(recorder: &'static Recorder, source: SpanSource) -> Self {
        Self::begin_as(recorder, source, false)
    }

    /// The same for a measured call: the measured region of a session by hand that has none.
    #[cold]
    pub(crate) fn begin_measured(recorder: &'static Recorder, source: SpanSource) -> Self {
        Self::begin_as(recorder, source, true)
    }

    fn begin_as(recorder: &'static Recorder, source: SpanSource, measured: bool) -> Self {
        let Some(session) = recorder.session() else {
            return Self::begin_by_hand(recorder, &source, measured);
        };
        let _own = crate::allocator::uncounted();
        let cell = SpanCell::begin(recorder.give(), source, None);
        recorder.open_detached(&cell);
        Self::of(Some(Part { session, cell }), None, None)
    }

    /// The span has this number in its name.
    pub(crate) fn numbered(mut self, ordinal: u64) -> Self {
        if let Some(span) = &mut self.0 {
            span.ordinal = Some(ordinal);
        }
        self
    }

    fn begin_by_hand(recorder: &'static Recorder, source: &SpanSource, measured: bool) -> Self {
        let Some(session) = recorder.by_hand() else {
            return Self(None);
        };
        let span = session.begin_detached(
            source.name().into_owned(),
            source.kind(),
            source.step(),
            measured && !session.has_measured(),
            recorder.elsewhere(),
        );
        let mut this = Self::of(None, None, None);
        if let Some(future) = &mut this.0 {
            future.by_hand = Some(HandPart { session, span });
        }
        this
    }

    /// A measured call that is counted, not captured.
    pub(crate) fn counted(call: Arc<Call>) -> Self {
        Self::of(None, Some(call), None)
    }

    /// A measured call that opened a capture.
    pub(crate) fn measured(
        capture: Box<Capture>,
        call: Arc<Call>,
        source: SpanSource,
        start: MeasuredStart,
    ) -> Self {
        let session = capture.session();
        let recorder = session.attach();
        let _own = crate::allocator::uncounted();
        capture.synchronize();
        let cell = SpanCell::begin(None, source, Some(start));
        recorder.open_detached(&cell);
        recorder.leave();
        Self::of(Some(Part { session, cell }), Some(call), Some(capture))
    }
}

impl FutureSpan {
    /// The future is done or dropped: ends its span.
    fn end(&mut self, cancelled: bool) -> Option<Elsewhere> {
        if let Some(call) = self.call.take() {
            call.over();
        }
        if let Some(HandPart { session, span }) = self.by_hand.take() {
            session.end(span);
            return Some(Elsewhere::ByHand(session, span));
        }
        let part = self.part.take()?;
        if !crate::capture::is_owner() {
            // A forked child has its parent's captures in memory, but may not touch them.
            return None;
        }
        if let Some(capture) = &self.capture {
            capture.synchronize();
        }
        if let Some((end, parent)) = part.cell.close(0) {
            let panicked = self.panicked;
            let (recorder, lent) = join(&part.session);
            recorder.close_detached(DetachedEnd {
                cell: Arc::clone(&part.cell),
                end,
                parent,
                cut: false,
                panicked,
                cancelled: cancelled && !panicked,
                polled: Some((self.busy, self.polls)),
                memory: None,
            });
            if lent {
                recorder.leave();
            }
        }
        let capture = self.capture.take();
        Some(Elsewhere::Future(part.session, part.cell, capture))
    }
}

impl Drop for FutureSpan {
    fn drop(&mut self) {
        if let Some(Elsewhere::Future(_, _, Some(capture))) = self.end(true) {
            let reason = "the measured future was dropped before it was done";
            capture.finish(Some(reason.to_owned()));
        }
    }
}

/// Polls `future` inside `span`; gives its output and where the evidence about it belongs.
#[inline]
pub fn instrument<F: Future>(span: AsyncSpan, future: F) -> Instrumented<F> {
    Instrumented {
        future: Some(future),
        span: span.0,
    }
}

/// A future whose polls happen inside a span. See [`instrument`].
pub struct Instrumented<F> {
    /// `None` once it has been dropped, which happens inside the span too.
    future: Option<F>,
    span: Option<Box<FutureSpan>>,
}

impl<F: Future> Future for Instrumented<F> {
    type Output = (F::Output, Ended);

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: `future` is never moved: it is polled in place and dropped in place. `span` is not pinned.
        let this = unsafe { self.get_unchecked_mut() };
        let Some(future) = this.future.as_mut() else {
            return Poll::Pending;
        };
        // SAFETY: as above.
        let future = unsafe { Pin::new_unchecked(future) };
        let Some(span) = this.span.as_mut() else {
            return match future.poll(context) {
                Poll::Ready(output) => Poll::Ready((output, Ended::here())),
                Poll::Pending => Poll::Pending,
            };
        };
        let polled = {
            let _inside = Inside::new(span, Why::Poll);
            let polled = future.poll(context);
            if polled.is_ready() {
                // What the future still owns goes inside its span.
                this.future = None;
            }
            polled
        };
        let Poll::Ready(output) = polled else {
            return Poll::Pending;
        };
        let _own = crate::allocator::uncounted();
        let over = this.span.take().and_then(|mut span| span.end(false));
        let place = over.map_or(Place::Here, |over| Place::Elsewhere(Box::new(over)));
        Poll::Ready((output, Ended::at(place)))
    }
}

impl<F> Drop for Instrumented<F> {
    fn drop(&mut self) {
        // What the destructors of a future that is dropped midway do belongs to its span.
        if let Some(span) = self.span.as_mut() {
            let inside = Inside::new(span, Why::Drop);
            self.future = None;
            drop(inside);
            let _own = crate::allocator::uncounted();
            self.span = None;
        }
    }
}

/// What is done with the future.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Why {
    Poll,
    /// It is dropped midway, which is not counted as a poll.
    Drop,
}

/// The span is current on this thread while this lives.
struct Inside<'a> {
    span: &'a mut FutureSpan,
    why: Why,
    entered: Option<(&'static Recorder, u64, bool)>,
    /// The same in a session by hand.
    by_hand: Option<&'static Recorder>,
    since: u64,
    /// The thread unwound already when the poll began.
    unwinding: bool,
    #[allow(dead_code, reason = "held for its drop")]
    active: Option<Active>,
}

impl<'a> Inside<'a> {
    fn new(span: &'a mut FutureSpan, why: Why) -> Self {
        let active = span.call.as_ref().map(Active::new);
        // A capture that has ended takes nothing more, and must not keep the calls made here from being captured.
        let open = span.part.as_ref().filter(|part| !part.session.has_ended());
        let entered = open.map(|part| {
            let (recorder, lent) = join(&part.session);
            let token = recorder.enter_frame(Some(Arc::clone(&part.cell)), false);
            if let Some(ordinal) = span.ordinal {
                recorder.set_own_ordinal(ordinal);
            }
            (recorder, token, lent)
        });
        let by_hand = span.by_hand.as_ref().filter(|hand| hand.session.is_open());
        let by_hand = by_hand.map(|hand| {
            let recorder = Recorder::attach_by_hand(&hand.session, Some(hand.span));
            if let Some(ordinal) = span.ordinal {
                recorder.set_own_ordinal(ordinal);
            }
            recorder
        });
        Self {
            span,
            why,
            by_hand,
            since: if entered.is_some() { clock().raw() } else { 0 },
            entered,
            unwinding: panicking(),
            active,
        }
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        if let Some(recorder) = self.by_hand.take() {
            recorder.leave();
        }
        let Some((recorder, token, lent)) = self.entered.take() else {
            return;
        };
        recorder.close_cold(token);
        let now = clock().raw();
        if self.why == Why::Poll {
            self.span.busy += now.saturating_sub(self.since);
            self.span.polls += 1;
        }
        if let Some(part) = &self.span.part {
            part.cell.at_least(now);
        }
        if lent {
            recorder.leave();
        }
        if panicking() && !self.unwinding {
            // Whoever polls may catch the panic and drop the future later: by then nobody knows of it.
            self.span.panicked = true;
            if let Some(Elsewhere::Future(_, _, Some(capture))) = self.span.end(false) {
                capture.finish(Some(panic_reason()));
            }
        }
    }
}
