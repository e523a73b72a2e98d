//! The span of a future: current only while the future is polled, ended by its completion or its drop.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread::panicking;

use super::cold::DetachedEnd;
use super::detached::SpanCell;
use super::guard::{Ended, Place};
use super::handle::join;
use super::recorder::Recorder;
use super::session::Session;
use super::site::SpanSource;
use super::stream::clock;
use crate::capture::Capture;

/// The span of an `async fn`'s call, made at its first poll.
pub struct AsyncSpan(Option<FutureSpan>);

/// A future's part in a capture.
pub(crate) struct FutureSpan {
    session: Arc<Session>,
    cell: Arc<SpanCell>,
    busy: u64,
    polls: u64,
    ended: bool,
    /// The capture that the future's call opened.
    capture: Option<Box<Capture>>,
}

impl AsyncSpan {
    #[inline(always)]
    pub(crate) fn none() -> Self {
        Self(None)
    }

    /// A span that begins now, child of what is current.
    #[cold]
    #[inline(never)]
    pub(crate) fn begin(recorder: &'static Recorder, source: SpanSource) -> Self {
        let Some(session) = recorder.session() else {
            return Self(None);
        };
        let cell = SpanCell::begin(recorder.give(), source);
        recorder.open_detached(&cell);
        Self(Some(FutureSpan {
            session,
            cell,
            busy: 0,
            polls: 0,
            ended: false,
            capture: None,
        }))
    }

    /// The measured span of a capture that this future's call opened; the capture's own thread has `recorder`.
    pub(crate) fn measured(capture: Box<Capture>, cell: Arc<SpanCell>) -> Self {
        Self(Some(FutureSpan {
            session: capture.session(),
            cell,
            busy: 0,
            polls: 0,
            ended: false,
            capture: Some(capture),
        }))
    }
}

impl FutureSpan {
    /// Ends the span, once.
    fn end(&mut self, cancelled: bool) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        let Some((end, parent)) = self.cell.close(0) else {
            return;
        };
        let (recorder, lent) = join(&self.session);
        recorder.close_detached(DetachedEnd {
            cell: Arc::clone(&self.cell),
            end,
            parent,
            cut: false,
            panicked: panicking(),
            cancelled: cancelled && !panicking(),
            polled: Some((self.busy, self.polls)),
        });
        if lent {
            recorder.leave();
        }
    }
}

impl Drop for FutureSpan {
    fn drop(&mut self) {
        self.end(true);
        if let Some(capture) = self.capture.take() {
            let reason = if panicking() {
                crate::capture::panic_reason()
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
    span: Option<FutureSpan>,
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
        let Some(mut span) = this.span.take() else {
            return Poll::Ready((output, Ended::here()));
        };
        span.end(false);
        let place = match span.capture.take() {
            Some(capture) => Place::Capture(capture),
            None => Place::Future(Arc::clone(&span.session), Arc::clone(&span.cell)),
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
    recorder: &'static Recorder,
    token: u64,
    lent: bool,
    since: u64,
}

impl<'a> Inside<'a> {
    fn new(span: &'a mut FutureSpan) -> Self {
        let (recorder, lent) = join(&span.session);
        let token = recorder.enter_frame(Some(Arc::clone(&span.cell)), false);
        Self {
            span,
            recorder,
            token,
            lent,
            since: clock().raw(),
        }
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        let now = clock().raw();
        self.span.busy += now.saturating_sub(self.since);
        self.span.polls += 1;
        self.span.cell.at_least(now);
        self.recorder.close_cold(self.token);
        if self.lent {
            self.recorder.leave();
        }
    }
}
