//! A session by hand as the attributes and free functions see it: made current on a thread.

use super::records::SpanId;
use super::session::TraceSession;
use super::shared::Shared;
use crate::record::{Entered, Evidence, Recorder};
use crate::trace::TraceEvent;

impl TraceSession {
    /// Makes this session current on this thread until the guard is dropped: annotated functions and the free
    /// functions record into it. The first measured one becomes the measured region, if none was begun by hand.
    #[must_use = "the session is current until this is dropped"]
    pub fn enter(&self) -> Entered {
        if cfg!(feature = "off") {
            return Entered::nothing();
        }
        Entered::on(Recorder::attach_by_hand(self.shared(), None), None, true)
    }
}

impl Shared {
    /// Records what an attribute observed, in `span`, or the innermost span of this thread. A fault is the session's: it shows
    /// when the session is finished.
    pub(crate) fn observe(&self, span: Option<SpanId>, evidence: Evidence) {
        let span = span.unwrap_or_else(|| self.top());
        let span_id = super::records::span_name(span.raw());
        let event = match evidence {
            Evidence::Statistics { mut event, .. } => {
                event.span_id = span_id;
                TraceEvent::TensorStats(*event)
            }
            #[cfg(feature = "candle")]
            Evidence::Later(later) => {
                // A session by hand has no region whose end could be waited for.
                let _ = crate::tensor::read_back(std::slice::from_ref(&later));
                return self.observe(Some(span), later.take());
            }
            Evidence::Scalar { mut event, .. } => {
                event.span_id = span_id;
                event.extra = None;
                TraceEvent::TensorStats(*event)
            }
            Evidence::Tensor(mut event) => {
                event.span_id = span_id;
                event.extra = None;
                TraceEvent::Tensor(*event)
            }
            Evidence::DeviceMemory(mut event) => {
                event.timestamp_ns = self.elapsed_ns();
                TraceEvent::DeviceMemory(*event)
            }
            Evidence::Op {
                mut event,
                from,
                to,
            } => {
                event.span_id = span_id;
                event.duration_ns = crate::record::clock().delta_as_nanos(from, to);
                event.timestamp_ns = self.elapsed_ns().saturating_sub(event.duration_ns);
                TraceEvent::Op(*event)
            }
            Evidence::Gradient { event, .. } => {
                let _ = self.record_gradient(event.root, event.key, event.state, event.norm);
                return;
            }
            // Who opens a session by hand says where it ends; what cuts a graph is judged at the end of a region.
            Evidence::Crossing { .. }
            | Evidence::Built { .. }
            | Evidence::Backward(_)
            | Evidence::Detaches(_) => return,
            Evidence::Note(problem) => return crate::say::once(&problem),
        };
        if let Ok(mut state) = self.state() {
            // A failed write makes the session fail, and is told by `finish`.
            let _ = state.output.write(&event);
        }
    }
}
