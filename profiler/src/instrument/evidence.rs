//! Evidence: from records to events.

use anyhow::{Result, ensure};

use super::checks::{Evidence, MEMORY_OUTSIDE, MemoryMoment, OP_OUTSIDE, hash};
use super::records::{
    DeviceIntervalRecord, DeviceMemoryRecord, MemoryRecord, OpRecord, SpanId, TensorRecord,
    span_name,
};
use super::shared::{Shared, State};
use crate::phase::ExecutionStep;
use crate::trace::memory::resolve_dense_tensor_bytes;
use crate::trace::{
    DeviceIntervalEvent, DeviceMemoryEvent, EdgeEvent, GradientEvent, GradientState, MemoryAction,
    MemoryEvent, OpEvent, SpanKind, SpanStartEvent, TensorEvent, TensorStatsEvent, TraceEvent,
};

impl Shared {
    /// Records a span that is over, below the nearest of `parent` and its parents that holds it.
    pub(crate) fn record_closed(
        &self,
        name: String,
        kind: SpanKind,
        step: Option<ExecutionStep>,
        start_ns: u64,
        end_ns: u64,
        parent: SpanId,
    ) -> Result<SpanId> {
        let mut state = self.state()?;
        // Nothing ends after now, nor before it starts.
        let end_ns = end_ns.min(self.elapsed_ns());
        let start = SpanStartEvent {
            id: String::new(),
            parent_id: None,
            name,
            start_ns: start_ns.min(end_ns),
            kind,
            measured: false,
            step,
            extra: None,
        };
        state.record_closed(start, end_ns, parent.0).map(SpanId)
    }

    /// Whether a measured region was begun.
    pub(crate) fn has_measured(&self) -> bool {
        self.state().is_ok_and(|state| state.checks.has_measured())
    }

    /// The innermost open span of this thread, or the root.
    pub(crate) fn top(&self) -> SpanId {
        SpanId(
            self.state()
                .map_or(super::shared::ROOT, |state| state.top()),
        )
    }

    pub(super) fn record_op(&self, span: SpanId, op: OpRecord<'_>) -> Result<()> {
        let timestamp_ns = match op.timestamp_ns {
            0 => self.elapsed_ns().saturating_sub(op.duration_ns),
            given => given,
        };
        let event = OpEvent {
            span_id: String::new(),
            op_name: op.op_name.to_owned(),
            inputs: op.inputs.to_vec(),
            output: op.output.map(str::to_owned),
            shape: op.shape.to_vec(),
            dtype: op.dtype.to_owned(),
            device: op.device.to_owned(),
            duration_ns: op.duration_ns,
            timestamp_ns,
            output_dense_bytes: resolve_dense_tensor_bytes(
                op.output_dense_bytes,
                op.shape,
                op.dtype,
            ),
            input_dense_bytes: op.input_dense_bytes,
        };
        self.record_op_event(span, event)
    }

    /// The same of an event; its span's name is filled in.
    pub(super) fn record_op_event(&self, span: SpanId, mut event: OpEvent) -> Result<()> {
        let mut state = self.state()?;
        let end_ns = event.timestamp_ns.saturating_add(event.duration_ns);
        let evidence = Evidence {
            code: OP_OUTSIDE,
            what: &event.op_name,
            start_ns: event.timestamp_ns,
            end_ns,
        };
        state.within_span(span, &evidence, self.elapsed_ns())?;
        for tensor in event.inputs.iter().chain(&event.output) {
            state.checks.tensor(tensor);
        }
        state.latest_ns = state.latest_ns.max(end_ns);
        event.span_id = span_name(span.0);
        state.output.write(&TraceEvent::Op(event))
    }

    pub(super) fn record_tensor(&self, span: SpanId, tensor: TensorRecord<'_>) -> Result<()> {
        let event = TensorEvent {
            span_id: String::new(),
            tensor_id: tensor.tensor_id.to_owned(),
            label: tensor.label.map(str::to_owned),
            shape: tensor.shape.to_vec(),
            dtype: tensor.dtype.to_owned(),
            device: tensor.device.to_owned(),
            requires_grad: tensor.requires_grad,
            dense_bytes: resolve_dense_tensor_bytes(tensor.dense_bytes, tensor.shape, tensor.dtype),
            category: tensor.category,
            extra: None,
        };
        self.record_tensor_event(span, event)
    }

    /// The same of an event; its span's name is filled in.
    pub(super) fn record_tensor_event(&self, span: SpanId, mut event: TensorEvent) -> Result<()> {
        let mut state = self.state()?;
        state.known_span(span)?;
        state.checks.tensor(&event.tensor_id);
        event.span_id = span_name(span.0);
        state.output.write(&TraceEvent::Tensor(event))
    }

    pub(super) fn record_scalar(&self, span: SpanId, label: &str, value: f64) -> Result<()> {
        let finite = value.is_finite();
        // JSON has no NaN: the count says what the zeros do not mean.
        let value = if finite { value } else { 0.0 };
        self.record_stats(
            span,
            TensorStatsEvent {
                span_id: String::new(),
                label: label.to_owned(),
                shape: Vec::new(),
                dtype: "f64".to_owned(),
                elements: 1,
                non_finite: u64::from(!finite),
                rms: value.abs(),
                abs_max: value.abs(),
                mean: value,
                extra: None,
            },
        )
    }

    #[cfg(feature = "candle")]
    pub(super) fn record_tensor_stats(
        &self,
        span: SpanId,
        label: &str,
        tensor: &candle_core::Tensor,
    ) -> Result<()> {
        use anyhow::Context;

        check_label(label)?;
        let statistics = crate::tensor::stats::statistics(tensor)
            .with_context(|| format!("statistics of the tensor labelled {label:?}"))?;
        let event =
            crate::tensor::statistics_event(label, tensor.dims(), tensor.dtype(), statistics);
        self.record_stats(span, event)
    }

    /// The statistics that an event holds; its span's name is filled in.
    pub(super) fn record_stats(&self, span: SpanId, mut event: TensorStatsEvent) -> Result<()> {
        check_label(&event.label)?;
        let counted = crate::trace::memory::exact_elem_count(&event.shape);
        ensure!(
            counted == Some(event.elements),
            "statistics of {:?}: shape {:?} is not the shape of {} elements",
            event.label,
            event.shape,
            event.elements
        );
        let mut state = self.state()?;
        state.known_span(span)?;
        event.span_id = span_name(span.0);
        state.output.write(&TraceEvent::TensorStats(event))
    }

    pub(super) fn record_memory(
        &self,
        span: SpanId,
        mem: MemoryRecord<'_>,
        action: MemoryAction,
    ) -> Result<()> {
        let mut state = self.state()?;
        let now = self.elapsed_ns();
        let timestamp_ns = mem.timestamp_ns.unwrap_or(now);
        let evidence = Evidence {
            code: MEMORY_OUTSIDE,
            what: mem.storage_id,
            start_ns: timestamp_ns,
            end_ns: timestamp_ns,
        };
        state.within_span(span, &evidence, now)?;
        let moment = MemoryMoment {
            timestamp_ns,
            storage: hash((mem.device, mem.storage_id)),
            tensor: hash(mem.tensor_id),
            bytes: mem.bytes,
            action,
        };
        state.checks.memory(moment, mem.storage_id)?;
        state.latest_ns = state.latest_ns.max(timestamp_ns);
        state.output.write(&TraceEvent::Memory(MemoryEvent {
            timestamp_ns,
            storage_id: mem.storage_id.to_owned(),
            tensor_id: mem.tensor_id.to_owned(),
            span_id: span_name(span.0),
            op_name: mem.op_name.map(str::to_owned),
            device: mem.device.to_owned(),
            bytes: mem.bytes,
            action,
            shape: mem.shape.to_vec(),
            dtype: mem.dtype.to_owned(),
            category: mem.category,
        }))
    }

    pub(super) fn record_device_memory(&self, sample: DeviceMemoryRecord<'_>) -> Result<()> {
        let figures = [
            sample.used_bytes,
            sample.free_bytes,
            sample.reserved_bytes,
            sample.capacity_bytes,
        ];
        ensure!(
            figures.iter().any(Option::is_some),
            "device memory of {:?}: used_bytes, free_bytes, reserved_bytes and capacity_bytes are all None, at least one must be given",
            sample.device
        );
        let mut state = self.state()?;
        let timestamp_ns = sample.timestamp_ns.unwrap_or_else(|| self.elapsed_ns());
        state.latest_ns = state.latest_ns.max(timestamp_ns);
        let event = DeviceMemoryEvent {
            timestamp_ns,
            device: sample.device.to_owned(),
            used_bytes: sample.used_bytes,
            free_bytes: sample.free_bytes,
            reserved_bytes: sample.reserved_bytes,
            capacity_bytes: sample.capacity_bytes,
        };
        state.output.write(&TraceEvent::DeviceMemory(event))
    }

    pub(super) fn record_device_interval(
        &self,
        span: SpanId,
        interval: DeviceIntervalRecord<'_>,
    ) -> Result<()> {
        ensure!(
            interval.duration_ns > 0,
            "device interval of {:?}: duration_ns is 0, it must be above",
            interval.device
        );
        let mut state = self.state()?;
        state.known_span(span)?;
        let event = DeviceIntervalEvent {
            span_id: span_name(span.0),
            device: interval.device.to_owned(),
            stream_id: interval.stream_id.to_owned(),
            clock_id: interval.clock_id.to_owned(),
            backend: interval.backend.to_owned(),
            start_ns: interval.start_ns,
            duration_ns: interval.duration_ns,
        };
        state.output.write(&TraceEvent::DeviceInterval(event))
    }

    pub(super) fn record_call_edge(&self, from: SpanId, to: SpanId, duration: u64) -> Result<()> {
        let mut state = self.state()?;
        let (caller, child) = (state.facts(from).copied(), state.facts(to).copied());
        state
            .checks
            .call(from, to, caller.as_ref(), child.as_ref(), duration)?;
        state.output.write(&TraceEvent::Edge(EdgeEvent::Call {
            from_span: span_name(from.0),
            to_span: span_name(to.0),
            host_duration_ns: duration,
        }))
    }

    pub(super) fn record_data_edge(&self, from: &str, to: &str) -> Result<()> {
        for (field, value) in [("from_tensor", from), ("to_tensor", to)] {
            ensure!(
                !value.is_empty(),
                "data edge: {field} is {value:?}, it must not be empty"
            );
        }
        let mut state = self.state()?;
        state.output.check()?;
        if !state.checks.data_edge(from, to) {
            return Ok(());
        }
        state.output.write(&TraceEvent::Edge(EdgeEvent::Data {
            from_tensor: from.to_owned(),
            to_tensor: to.to_owned(),
        }))
    }

    pub(super) fn record_gradient(
        &self,
        root: String,
        key: String,
        gradient: GradientState,
        norm: Option<f64>,
    ) -> Result<()> {
        for (field, value) in [("root", &root), ("key", &key)] {
            ensure!(
                !value.trim().is_empty(),
                "gradient: {field} is {value:?}, it must not be empty"
            );
        }
        ensure!(
            gradient.allows(norm),
            "gradient of {key:?}: norm is {norm:?}, a {gradient} one has {}",
            gradient.allowed_norm()
        );
        let mut state = self.state()?;
        state.checks.gradient(&root, &key, gradient)?;
        state.gradients += 1;
        let event = GradientEvent {
            event_id: format!("gradient-{}", state.gradients),
            root,
            key,
            state: gradient,
            norm,
            extra: None,
        };
        state.output.write(&TraceEvent::Gradient(event))
    }
}

impl State {
    fn known_span(&mut self, span: SpanId) -> Result<()> {
        let facts = self.facts(span).copied();
        self.checks.known_span(span, facts.as_ref())
    }

    fn within_span(&mut self, span: SpanId, evidence: &Evidence<'_>, now: u64) -> Result<()> {
        let facts = self.facts(span).copied();
        self.checks.within_span(span, facts.as_ref(), evidence, now)
    }
}

/// A trace with a blank label does not parse.
fn check_label(label: &str) -> Result<()> {
    ensure!(
        !label.trim().is_empty(),
        "label is {label:?}, it must not be empty"
    );
    Ok(())
}
