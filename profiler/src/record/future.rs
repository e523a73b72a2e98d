//! The span of a future: current only while the future is polled, ended by its completion or its drop.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread::panicking;

use super::cold::{DetachedEnd, MeasuredStart};
use super::detached::SpanCell;
use super::guard::{Ended, Place};
use super::handle::join;
use super::recorder::Recorder;
use super::session::Session;
use super::site::SpanSource;
use super::stream::clock;
use crate::capture::{Active, Call, Capture, panic_reason};

/// The span of an `async fn`'s call, made at its first poll.
pub struct AsyncSpan(Option<Box<FutureSpan>>);

/// What a future takes part in: a capture, a measured call, or both.
struct FutureSpan {
    part: Option<Part>,
    /// The measured call that the future is.
    call: Option<Arc<Call>>,
    /// The capture that this call opened.
    capture: Option<Box<Capture>>,
    polls: u64,
    busy: u64,
}

/// A future's span in a capture.
struct Part {
    session: Arc<Session>,
    cell: Arc<SpanCell>,
}

impl AsyncSpan {
    #[inline(always)]
    pub(crate) fn none() -> Self {
        Self(None)
    }

    fn of(part: Option<Part>, call: Option<Arc<Call>>, capture: Option<Box<Capture>>) -> Self {
        Self(Some(Box::new(FutureSpan {
            part,
            call,
            capture,
            polls: 0,
            busy: 0,
        })))
    }

    /// A span that begins now, child of what is current.
    #[cold]
    #[inline(never)]
    pub(crate) fn begin(recorder: &'static Recorder, source: SpanSource) -> Self {
        let Some(session) = recorder.session() else {
            return Self(None);
        };
        let cell = SpanCell::begin(recorder.give(), source, None);
        recorder.open_detached(&cell);
        Self::of(Some(Part { session, cell }), None, None)
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
        let cell = SpanCell::begin(None, source, Some(start));
        recorder.open_detached(&cell);
        recorder.leave();
        Self::of(Some(Part { session, cell }), Some(call), Some(capture))
    }
}

impl FutureSpan {
    /// The future is done or dropped: ends its span.
    fn end(&mut self, cancelled: bool) -> Place {
        if let Some(call) = self.call.take() {
            call.over();
        }
        let Some(part) = self.part.take() else {
            return Place::Here;
        };
        if let Some((end, parent)) = part.cell.close(0) {
            let panicked = panicking();
            let (recorder, lent) = join(&part.session);
            recorder.close_detached(DetachedEnd {
                cell: Arc::clone(&part.cell),
                end,
                parent,
                cut: false,
                panicked,
                cancelled: cancelled && !panicked,
                polled: Some((self.busy, self.polls)),
            });
            if lent {
                recorder.leave();
            }
        }
        Place::Future(part.session, part.cell, self.capture.take())
    }
}

impl Drop for FutureSpan {
    fn drop(&mut self) {
        if let Place::Future(_, _, Some(capture)) = self.end(true) {
            let reason = if panicking() {
                panic_reason()
            } else {
                "the measured future was dropped before it was done".to_owned()
            };
            capture.finish(Some(reason));
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
            let _inside = Inside::new(span);
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
        let place = match this.span.take() {
            Some(mut span) => span.end(false),
            None => Place::Here,
        };
        Poll::Ready((output, Ended(place)))
    }
}

impl<F> Drop for Instrumented<F> {
    fn drop(&mut self) {
        // What the destructors of a future that is dropped midway do belongs to its span.
        if let Some(span) = self.span.as_mut() {
            let _inside = Inside::new(span);
            self.future = None;
        }
    }
}

/// The span is current on this thread while this lives.
struct Inside<'a> {
    span: &'a mut FutureSpan,
    entered: Option<(&'static Recorder, u64, bool)>,
    since: u64,
    #[allow(dead_code, reason = "held for its drop")]
    active: Option<Active>,
}

impl<'a> Inside<'a> {
    fn new(span: &'a mut FutureSpan) -> Self {
        let active = span.call.as_ref().map(Active::new);
        let entered = span.part.as_ref().map(|part| {
            let (recorder, lent) = join(&part.session);
            let token = recorder.enter_frame(Some(Arc::clone(&part.cell)), false);
            (recorder, token, lent)
        });
        Self {
            span,
            since: if entered.is_some() { clock().raw() } else { 0 },
            entered,
            active,
        }
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        let Some((recorder, token, lent)) = self.entered.take() else {
            return;
        };
        recorder.close_cold(token);
        let now = clock().raw();
        self.span.busy += now.saturating_sub(self.since);
        self.span.polls += 1;
        if let Some(part) = &self.span.part {
            part.cell.at_least(now);
        }
        if lent {
            recorder.leave();
        }
    }
}
