//! A trace session as its user sees it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::records::{
    DeviceIntervalRecord, DeviceMemoryRecord, MemoryRecord, OpRecord, SpanId, TensorRecord,
};
use super::run::ProfileRun;
use super::shared::{ROOT, Shared};
use crate::phase::ExecutionStep;
use crate::trace::{GradientState, MemoryAction, SpanKind};

/// Writes one trace, by hand.
///
/// It may be used from several threads at once: each has its own stack of open spans, and a
/// thread's first span is a child of the root. Dropped without [`Self::finish`] or
/// [`Self::finish_failed`], it ends its trace as failed; so it does where the process exits. Of a process that is
/// killed the file has what was recorded before the last 50 ms with a record.
///
/// Every trace parses, whatever was recorded. What would make it contradict itself is said on
/// stderr by `finish`, or refused by a session of [`ProfileRun::strict`].
pub struct TraceSession {
    shared: Arc<Shared>,
}

impl TraceSession {
    /// Creates the file at `path` (and its folders), or empties the one that is there, writes `meta`
    /// and begins the root span, which is named after the entrypoint.
    ///
    /// # Errors
    /// A run or capture contract that is not valid, named by field and value; a file that cannot
    /// be created, named by path.
    pub fn open(path: impl AsRef<Path>, run: ProfileRun) -> Result<Self> {
        let shared = Arc::new(Shared::open(path.as_ref(), run)?);
        crate::capture::remember_by_hand(&shared);
        if cfg!(feature = "off") {
            crate::say::once(
                "the feature `off` is on: attributes and free functions are compiled out, and only what is recorded by hand gets into the trace",
            );
        }
        Ok(Self { shared })
    }

    /// The state, for others that record into this session.
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Begins a span inside the innermost open span of this thread.
    pub fn begin_span(&self, name: impl Into<String>, kind: SpanKind) -> SpanGuard<'_> {
        self.guard(name.into(), kind, None, false)
    }

    /// Begins the measured region, of which a complete trace has exactly one.
    pub fn begin_measurement(&self, name: impl Into<String>) -> SpanGuard<'_> {
        self.guard(name.into(), SpanKind::Function, None, true)
    }

    /// Begins a span that does a part of a training step.
    pub fn begin_step_span(
        &self,
        name: impl Into<String>,
        step: ExecutionStep,
        kind: SpanKind,
    ) -> SpanGuard<'_> {
        self.guard(name.into(), kind, Some(step), false)
    }

    fn guard(
        &self,
        name: String,
        kind: SpanKind,
        step: Option<ExecutionStep>,
        measured: bool,
    ) -> SpanGuard<'_> {
        SpanGuard {
            id: self.shared.begin(name, kind, step, measured, None),
            shared: &self.shared,
        }
    }

    /// Records work that is over already, for example of another thread, as a child of the root.
    /// It may overlap any other span.
    ///
    /// # Errors
    /// A `duration_ns` of 0, an end that does not fit into 64 bits or is still to come, and an
    /// earlier fault.
    pub fn record_completed_host_span(
        &self,
        name: impl Into<String>,
        kind: SpanKind,
        start_ns: u64,
        duration_ns: u64,
    ) -> Result<SpanId> {
        ensure!(
            duration_ns > 0,
            "completed host span: duration_ns is 0, it must be above"
        );
        let end_ns = start_ns.checked_add(duration_ns).with_context(|| {
            format!(
                "completed host span: start_ns {start_ns} and duration_ns {duration_ns} together overflow 64 bits"
            )
        })?;
        let now = self.shared.elapsed_ns();
        ensure!(
            end_ns <= now,
            "completed host span: it ends at {end_ns} ns, in the future; the session's time is {now} ns"
        );
        self.shared
            .record_closed(name.into(), kind, None, start_ns, end_ns, SpanId(ROOT))
    }

    /// Nanoseconds since the session was opened: the clock of all times in the trace.
    pub fn elapsed_ns(&self) -> u64 {
        self.shared.elapsed_ns()
    }

    /// A moment on the session's clock.
    ///
    /// # Errors
    /// A moment before the session was opened.
    pub fn host_timestamp_ns(&self, instant: Instant) -> Result<u64> {
        self.shared.timestamp_ns(instant)
    }

    /// Records an operation that ran inside a span.
    ///
    /// # Errors
    /// An earlier fault; in a strict session also a span that is not of this session, or a time
    /// outside it.
    pub fn record_op(&self, span_id: SpanId, op: OpRecord<'_>) -> Result<()> {
        self.shared.record_op(span_id, op)
    }

    /// Records a tensor that was seen in a span.
    ///
    /// # Errors
    /// An earlier fault; in a strict session also a span that is not of this session.
    pub fn record_tensor(&self, span_id: SpanId, tensor: TensorRecord<'_>) -> Result<()> {
        self.shared.record_tensor(span_id, tensor)
    }

    /// Records one number, for example a loss. A value that is not finite is counted as such.
    ///
    /// # Errors
    /// A blank label, an earlier fault; in a strict session also a span that is not of this
    /// session.
    pub fn record_scalar(&self, span_id: SpanId, label: &str, value: f64) -> Result<()> {
        self.shared.record_scalar(span_id, label, value)
    }

    /// Records the statistics of a tensor's finite elements.
    ///
    /// # Errors
    /// A blank label, a tensor that cannot be read, an earlier fault; in a strict session also a
    /// span that is not of this session.
    #[cfg(feature = "candle")]
    pub fn record_tensor_stats(
        &self,
        span_id: SpanId,
        label: &str,
        tensor: &candle_core::Tensor,
    ) -> Result<()> {
        self.shared.record_tensor_stats(span_id, label, tensor)
    }

    /// Records that a storage came to life, or that another tensor shares it.
    ///
    /// # Errors
    /// An earlier fault; in a strict session also a span that is not of this session, a time
    /// outside it, another size than before, or the same tensor again.
    pub fn record_memory_alloc(&self, span_id: SpanId, mem: MemoryRecord<'_>) -> Result<()> {
        self.shared.record_memory(span_id, mem, MemoryAction::Alloc)
    }

    /// Records that a storage ended.
    ///
    /// # Errors
    /// An earlier fault; in a strict session also a span that is not of this session, a time
    /// outside it, another size than before, or a storage that was not live.
    pub fn record_memory_free(&self, span_id: SpanId, mem: MemoryRecord<'_>) -> Result<()> {
        self.shared.record_memory(span_id, mem, MemoryAction::Free)
    }

    /// Records the state of a device's memory.
    ///
    /// # Errors
    /// A sample without any figure, and an earlier fault.
    pub fn record_device_memory(&self, sample: DeviceMemoryRecord<'_>) -> Result<()> {
        self.shared.record_device_memory(sample)
    }

    /// Records time measured by a device.
    ///
    /// # Errors
    /// A `duration_ns` of 0, an earlier fault; in a strict session also a span that is not of this
    /// session.
    pub fn record_device_interval(
        &self,
        span_id: SpanId,
        interval: DeviceIntervalRecord<'_>,
    ) -> Result<()> {
        self.shared.record_device_interval(span_id, interval)
    }

    /// Records that `from` called `to`, which took `duration_ns`.
    ///
    /// # Errors
    /// An earlier fault; in a strict session also spans that are not of this session, a `to` that
    /// is still open or no child of `from`, or another duration than its own.
    pub fn record_call_edge(&self, from: SpanId, to: SpanId, duration_ns: u64) -> Result<()> {
        self.shared.record_call_edge(from, to, duration_ns)
    }

    /// Records that one tensor was made from another.
    ///
    /// # Errors
    /// An empty id, and an earlier fault.
    pub fn record_data_edge(&self, from_tensor: &str, to_tensor: &str) -> Result<()> {
        self.shared.record_data_edge(from_tensor, to_tensor)
    }

    /// Records a parameter's gradient. The norm is finite and above 0 for a present one, exactly
    /// 0.0 for a zero one, and absent otherwise.
    ///
    /// # Errors
    /// A blank root or key, a norm that the state cannot have, an earlier fault; in a strict
    /// session with a gradient contract also a parameter that is not in it or was recorded, and a
    /// state that breaks the rule of its family.
    pub fn record_gradient(
        &self,
        root: impl Into<String>,
        key: impl Into<String>,
        state: GradientState,
        norm: Option<f64>,
    ) -> Result<()> {
        self.shared
            .record_gradient(root.into(), key.into(), state, norm)
    }

    /// Hands everything recorded so far to the system.
    ///
    /// # Errors
    /// What the system says, now or before.
    pub fn flush(&self) -> Result<()> {
        self.shared.state()?.output.flush()
    }

    /// Ends the root span and the trace as complete, and gives its path. Spans that other threads
    /// still have open end at the same time.
    ///
    /// # Errors
    /// An earlier fault, or spans of this thread that are open; in a strict session also whatever
    /// makes the trace contradict itself. The trace then ends as failed, with the reason.
    pub fn finish(self) -> Result<PathBuf> {
        self.shared.finish()?;
        Ok(self.shared.path().to_owned())
    }

    /// Ends the trace as failed and gives its path. What is open stays open.
    ///
    /// # Errors
    /// A blank reason (the trace still ends as failed), and an earlier fault.
    pub fn finish_failed(self, reason: impl Into<String>) -> Result<PathBuf> {
        let reason = reason.into();
        if reason.trim().is_empty() {
            self.shared
                .finish_failed("the program gave a blank reason for the failure".to_owned())?;
            anyhow::bail!("finish_failed: reason is {reason:?}, it must say why");
        }
        self.shared.finish_failed(reason)?;
        Ok(self.shared.path().to_owned())
    }
}

impl Drop for TraceSession {
    fn drop(&mut self) {
        // Refused where it has ended, which is the usual case.
        let _ = self
            .shared
            .finish_failed("the session was dropped without finish".to_owned());
    }
}

/// An open span of a [`TraceSession`]; dropping it ends the span.
///
/// Ending a span also ends what was begun inside it on the same thread and is still open; the
/// guards of those then do nothing.
#[must_use = "the span ends where its guard is dropped; give it a name, such as `_span`"]
pub struct SpanGuard<'a> {
    id: SpanId,
    shared: &'a Shared,
}

impl SpanGuard<'_> {
    /// Names the span for evidence.
    pub fn id(&self) -> SpanId {
        self.id
    }

    /// Nanoseconds since it began.
    pub fn elapsed_ns(&self) -> u64 {
        let start_ns = self.shared.start_of(self.id);
        self.shared.elapsed_ns().saturating_sub(start_ns)
    }
}

impl Drop for SpanGuard<'_> {
    fn drop(&mut self) {
        self.shared.end(self.id);
    }
}
