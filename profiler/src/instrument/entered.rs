//! A session by hand as the attributes and free functions see it: made current on a thread.

use super::records::{DeviceMemoryRecord, SpanId};
use super::session::TraceSession;
use super::shared::Shared;
use crate::record::{Entered, Evidence, Recorder};

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
    /// Records what an attribute observed, in `span`, or the innermost span of this thread, under the rules for what is
    /// recorded by hand. A failed write makes the session fail, and is told when that is finished.
    pub(crate) fn observe(&self, span: Option<SpanId>, evidence: Evidence) {
        let span = span.unwrap_or_else(|| self.top());
        let _ = match evidence {
            Evidence::Statistics { event, .. } => self.record_stats(span, *event),
            #[cfg(feature = "candle")]
            Evidence::Later(later) => {
                // A session by hand has no region whose end could be waited for.
                let _ = crate::tensor::read_back(std::slice::from_ref(&later));
                return self.observe(Some(span), later.take());
            }
            Evidence::Scalar { mut event, .. } => {
                event.extra = None;
                self.record_stats(span, *event)
            }
            Evidence::Tensor(mut event) => {
                event.extra = None;
                self.record_tensor_event(span, *event)
            }
            Evidence::DeviceMemory(event) => self.record_device_memory(DeviceMemoryRecord {
                device: &event.device,
                used_bytes: event.used_bytes,
                free_bytes: event.free_bytes,
                reserved_bytes: event.reserved_bytes,
                capacity_bytes: event.capacity_bytes,
                timestamp_ns: None,
            }),
            Evidence::Op {
                mut event,
                from,
                to,
            } => {
                let now = self.elapsed_ns();
                let took = crate::record::clock().delta_as_nanos(from, to);
                // A call may leave a span open that began inside it.
                event.timestamp_ns = now.saturating_sub(took).max(self.start_of(span)).min(now);
                event.duration_ns = took.min(now - event.timestamp_ns);
                self.record_op_event(span, *event)
            }
            Evidence::Gradient { event, .. } => {
                self.record_gradient(event.root, event.key, event.state, event.norm)
            }
            // Who opens a session by hand says where it ends; what cuts a graph is judged at the end of a region.
            Evidence::Crossing { .. }
            | Evidence::Built { .. }
            | Evidence::Backward(_)
            | Evidence::Detaches(_) => return,
            Evidence::Note(problem) => return crate::say::once(&problem),
        };
    }
}
