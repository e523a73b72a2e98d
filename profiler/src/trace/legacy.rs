//! The lines of `candle-graph/trace/6`, read as today's events and written from them.
//!
//! What the old schema lacks is left out when it is written: statistics, device intervals, flows of data, the last line
//! and our own keys.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use serde_json::from_str;

use super::events::{
    DeviceMemoryEvent, EdgeEvent, GradientEvent, MemoryEvent, OpEvent, SpanEndEvent,
    SpanStartEvent, TensorEvent, TraceEvent,
};
use super::line::{plain, tag};
use super::list;
use super::memory::{MemoryAction, MemoryCategory};
use super::schema::{LEGACY_SCHEMA, TimingMode, TraceRunMeta};
use crate::capability::CaptureContract;
use crate::phase::ExecutionPhase;

/// Whether a trace whose first line is this, and no event of today, is one of the old schema: that line names it.
pub(super) fn is_meta(line: &str) -> bool {
    line.contains(LEGACY_SCHEMA)
        && tag::<String>(line, "schema").is_ok_and(|schema| schema == LEGACY_SCHEMA)
}

/// Reads one line.
pub(super) fn parse_line(line: &str) -> serde_json::Result<TraceEvent> {
    #[derive(Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Kind {
        Meta,
        SpanStart,
        SpanEnd,
        Op,
        Tensor,
        Memory,
        DeviceMemory,
        Gradient,
        Edge,
    }
    let event = match tag(line, "kind")? {
        Kind::Meta => LegacyEvent::Meta {
            schema: tag(line, "schema")?,
            run: Box::new(plain::<Run>(line)?),
        },
        Kind::SpanStart => LegacyEvent::SpanStart(from_str(line)?),
        Kind::SpanEnd => LegacyEvent::SpanEnd(from_str(line)?),
        Kind::Op => LegacyEvent::Op(plain(line)?),
        Kind::Tensor => LegacyEvent::Tensor(plain(line)?),
        Kind::Memory => LegacyEvent::Memory(plain(line)?),
        Kind::DeviceMemory => LegacyEvent::DeviceMemory(plain(line)?),
        Kind::Gradient => LegacyEvent::Gradient(from_str(line)?),
        Kind::Edge => LegacyEvent::Edge(plain(line)?),
    };
    Ok(event.into())
}

/// One line.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum LegacyEvent {
    Meta {
        schema: String,
        #[serde(flatten)]
        run: Box<Run>,
    },
    SpanStart(SpanStartEvent),
    SpanEnd(SpanEndEvent),
    Op(Op),
    Tensor(Tensor),
    Memory(Memory),
    DeviceMemory(DeviceMemory),
    Gradient(GradientEvent),
    Edge(Edge),
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Run {
    run_id: String,
    correlation_id: String,
    entrypoint: String,
    phase: ExecutionPhase,
    timestamp: String,
    capture_step: u64,
    warmup_steps: u64,
    device: String,
    #[serde(default)]
    measured_region_device_synchronized: bool,
    timing_mode: TimingMode,
    #[serde(default)]
    tags: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    candle_version: Option<String>,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Op {
    span_id: String,
    op_name: String,
    #[serde(default, deserialize_with = "list::read")]
    inputs: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    output: Option<String>,
    #[serde(default)]
    shape: Vec<usize>,
    dtype: String,
    device: String,
    duration_ns: u64,
    #[serde(default)]
    timestamp_ns: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    storage_bytes: Option<u64>,
    #[serde(default)]
    input_storage_bytes: u64,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Tensor {
    span_id: String,
    tensor_id: String,
    #[serde(default)]
    shape: Vec<usize>,
    dtype: String,
    device: String,
    #[serde(default)]
    requires_grad: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    storage_bytes: Option<u64>,
    #[serde(default)]
    category: MemoryCategory,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Memory {
    timestamp_ns: u64,
    tensor_id: String,
    span_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    op_name: Option<String>,
    device: String,
    bytes: u64,
    action: MemoryAction,
    #[serde(default)]
    shape: Vec<usize>,
    dtype: String,
    #[serde(default)]
    category: MemoryCategory,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct DeviceMemory {
    timestamp_ns: u64,
    device: String,
    used_bytes: u64,
    free_bytes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reserved_bytes: Option<u64>,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Edge {
    from_span: String,
    to_span: String,
    duration_ns: u64,
}

impl From<LegacyEvent> for TraceEvent {
    fn from(event: LegacyEvent) -> TraceEvent {
        match event {
            LegacyEvent::Meta { schema, run } => TraceEvent::Meta {
                schema,
                run: Box::new(run_of_today(*run)),
            },
            LegacyEvent::SpanStart(start) => TraceEvent::SpanStart(start),
            LegacyEvent::SpanEnd(end) => TraceEvent::SpanEnd(end),
            LegacyEvent::Op(op) => TraceEvent::Op(OpEvent {
                span_id: op.span_id,
                op_name: op.op_name,
                inputs: op.inputs,
                output: op.output,
                shape: op.shape,
                dtype: op.dtype,
                device: op.device,
                duration_ns: op.duration_ns,
                timestamp_ns: op.timestamp_ns,
                output_dense_bytes: op.storage_bytes,
                input_dense_bytes: op.input_storage_bytes,
            }),
            LegacyEvent::Tensor(tensor) => TraceEvent::Tensor(TensorEvent {
                span_id: tensor.span_id,
                tensor_id: tensor.tensor_id,
                label: None,
                shape: tensor.shape,
                dtype: tensor.dtype,
                device: tensor.device,
                requires_grad: tensor.requires_grad,
                dense_bytes: tensor.storage_bytes,
                category: tensor.category,
                extra: None,
            }),
            LegacyEvent::Memory(event) => TraceEvent::Memory(MemoryEvent {
                timestamp_ns: event.timestamp_ns,
                storage_id: event.tensor_id.clone(),
                tensor_id: event.tensor_id,
                span_id: event.span_id,
                op_name: event.op_name,
                device: event.device,
                bytes: event.bytes,
                action: event.action,
                shape: event.shape,
                dtype: event.dtype,
                category: event.category,
            }),
            LegacyEvent::DeviceMemory(sample) => TraceEvent::DeviceMemory(DeviceMemoryEvent {
                timestamp_ns: sample.timestamp_ns,
                device: sample.device,
                used_bytes: Some(sample.used_bytes),
                free_bytes: Some(sample.free_bytes),
                reserved_bytes: sample.reserved_bytes,
                capacity_bytes: None,
            }),
            LegacyEvent::Gradient(gradient) => TraceEvent::Gradient(gradient),
            LegacyEvent::Edge(edge) => TraceEvent::Edge(EdgeEvent::Call {
                from_span: edge.from_span,
                to_span: edge.to_span,
                host_duration_ns: edge.duration_ns,
            }),
        }
    }
}

/// Nothing was promised then.
fn run_of_today(run: Run) -> TraceRunMeta {
    TraceRunMeta {
        run_id: run.run_id,
        correlation_id: run.correlation_id,
        entrypoint: run.entrypoint,
        phase: run.phase,
        timestamp: run.timestamp,
        capture_step: run.capture_step,
        warmup_steps: run.warmup_steps,
        device: run.device,
        measured_region_device_synchronized: run.measured_region_device_synchronized,
        timing_mode: run.timing_mode,
        capture_contract: CaptureContract::default(),
        comparison_identity: None,
        tags: run.tags,
        candle_version: run.candle_version,
    }
}

/// Makes lines of the old schema of a trace's events, in their order.
#[derive(Debug, Default)]
pub(crate) struct LegacyLines {
    /// By device and storage that lives: the tensor that stands for it.
    live: HashMap<(String, String), String>,
}

impl LegacyLines {
    /// The event as a line; none where the old schema has no such line.
    pub(crate) fn of(&mut self, event: &TraceEvent) -> Option<LegacyEvent> {
        Some(match event.clone() {
            TraceEvent::Meta { run, .. } => LegacyEvent::Meta {
                schema: LEGACY_SCHEMA.to_owned(),
                run: Box::new(run_of_then(*run)),
            },
            TraceEvent::SpanStart(start) => LegacyEvent::SpanStart(SpanStartEvent {
                extra: None,
                ..start
            }),
            TraceEvent::SpanEnd(end) => LegacyEvent::SpanEnd(SpanEndEvent { extra: None, ..end }),
            TraceEvent::Op(op) => LegacyEvent::Op(Op {
                span_id: op.span_id,
                op_name: op.op_name,
                inputs: op.inputs,
                output: op.output,
                shape: op.shape,
                dtype: op.dtype,
                device: op.device,
                duration_ns: op.duration_ns,
                timestamp_ns: op.timestamp_ns,
                storage_bytes: op.output_dense_bytes,
                input_storage_bytes: op.input_dense_bytes,
            }),
            TraceEvent::Tensor(tensor) => LegacyEvent::Tensor(Tensor {
                span_id: tensor.span_id,
                tensor_id: tensor.tensor_id,
                shape: tensor.shape,
                dtype: tensor.dtype,
                device: tensor.device,
                requires_grad: tensor.requires_grad,
                storage_bytes: tensor.dense_bytes,
                category: tensor.category,
            }),
            TraceEvent::Memory(event) => LegacyEvent::Memory(Memory {
                tensor_id: self.tensor_of(&event)?,
                timestamp_ns: event.timestamp_ns,
                span_id: event.span_id,
                op_name: event.op_name,
                device: event.device,
                bytes: event.bytes,
                action: event.action,
                shape: event.shape,
                dtype: event.dtype,
                category: event.category,
            }),
            TraceEvent::DeviceMemory(sample) => LegacyEvent::DeviceMemory(DeviceMemory {
                timestamp_ns: sample.timestamp_ns,
                device: sample.device,
                used_bytes: sample.used_bytes?,
                free_bytes: sample.free_bytes?,
                reserved_bytes: sample.reserved_bytes,
            }),
            TraceEvent::Gradient(gradient) => LegacyEvent::Gradient(GradientEvent {
                extra: None,
                ..gradient
            }),
            TraceEvent::Edge(EdgeEvent::Call {
                from_span,
                to_span,
                host_duration_ns,
            }) => LegacyEvent::Edge(Edge {
                from_span,
                to_span,
                duration_ns: host_duration_ns,
            }),
            TraceEvent::TensorStats(_)
            | TraceEvent::DeviceInterval(_)
            | TraceEvent::Edge(EdgeEvent::Data { .. })
            | TraceEvent::Terminal(_) => return None,
        })
    }

    /// The tensor that stands for the storage; none where another tensor came to share one that lives.
    fn tensor_of(&mut self, event: &MemoryEvent) -> Option<String> {
        let storage = (event.device.clone(), event.storage_id.clone());
        match (event.action, self.live.get(&storage)) {
            (MemoryAction::Alloc, Some(_)) => None,
            (MemoryAction::Alloc, None) => {
                self.live.insert(storage, event.tensor_id.clone());
                Some(event.tensor_id.clone())
            }
            (MemoryAction::Free, _) => {
                let tensor = self.live.remove(&storage);
                Some(tensor.unwrap_or_else(|| event.tensor_id.clone()))
            }
        }
    }
}

fn run_of_then(run: TraceRunMeta) -> Run {
    Run {
        run_id: run.run_id,
        correlation_id: run.correlation_id,
        entrypoint: run.entrypoint,
        phase: run.phase,
        timestamp: run.timestamp,
        capture_step: run.capture_step,
        warmup_steps: run.warmup_steps,
        device: run.device,
        measured_region_device_synchronized: run.measured_region_device_synchronized,
        timing_mode: run.timing_mode,
        tags: run.tags,
        candle_version: run.candle_version,
    }
}
