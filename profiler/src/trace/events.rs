//! One line of a trace as a type.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::extra::{
    GradientExtra, SpanEndExtra, SpanStartExtra, TensorExtra, TensorStatsExtra, TerminalExtra,
};
use super::list;
use super::memory::{MemoryAction, MemoryCategory};
use super::schema::{GradientState, RunOutcome, SCHEMA, SpanKind, TraceRunMeta};
use super::split::Split;
use crate::phase::ExecutionStep;

/// One line of a trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TraceEvent {
    /// Schema and origin: the first line.
    Meta {
        /// The schema's name.
        schema: String,
        /// Where the trace comes from.
        #[serde(flatten)]
        run: Box<TraceRunMeta>,
    },
    /// A span begins.
    SpanStart(SpanStartEvent),
    /// A span ends.
    SpanEnd(SpanEndEvent),
    /// An operation ran.
    Op(OpEvent),
    /// A tensor was seen.
    Tensor(TensorEvent),
    /// Statistics of a tensor, or one number.
    TensorStats(TensorStatsEvent),
    /// A storage came to life or ended.
    Memory(MemoryEvent),
    /// The state of a device's memory.
    DeviceMemory(DeviceMemoryEvent),
    /// Time measured by a device.
    DeviceInterval(DeviceIntervalEvent),
    /// A parameter's gradient.
    Gradient(GradientEvent),
    /// A call or a flow of data.
    Edge(EdgeEvent),
    /// How the capture ended: the last line.
    Terminal(TerminalEvent),
}

impl TraceEvent {
    /// The first line of a trace in the schema that is written.
    pub fn meta(run: TraceRunMeta) -> Self {
        Self::Meta {
            schema: SCHEMA.to_owned(),
            run: Box::new(run),
        }
    }
}

/// The derives of an event are on the standard keys (`remote = "Self"` makes them plain functions);
/// the traits themselves add our own.
macro_rules! event_with_extra {
    ($($event:ident: $extra:ty),* $(,)?) => {$(
        impl Serialize for $event {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                Self::serialize(self, to)
            }
        }

        impl<'de> Deserialize<'de> for $event {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let mut extra = <$extra>::default();
                let event = Self::deserialize(Split { inner: from, extra: &mut extra })?;
                Ok(event.with_extra(extra))
            }
        }
    )*};
}

macro_rules! keeps_extra {
    ($($event:ident: $extra:ty),* $(,)?) => {
        $(impl $event {
            fn with_extra(self, extra: $extra) -> Self {
                Self { extra, ..self }
            }
        })*
        event_with_extra!($($event: $extra),*);
    };
}

macro_rules! without_extra {
    ($($event:ident),* $(,)?) => {
        $(impl $event {
            fn with_extra(self, _: ()) -> Self {
                self
            }
        })*
        event_with_extra!($($event: ()),*);
    };
}

keeps_extra! {
    SpanStartEvent: Option<Box<SpanStartExtra>>,
    SpanEndEvent: Option<Box<SpanEndExtra>>,
    TensorEvent: Option<Box<TensorExtra>>,
    TensorStatsEvent: Option<Box<TensorStatsExtra>>,
    GradientEvent: Option<Box<GradientExtra>>,
    TerminalEvent: Option<Box<TerminalExtra>>,
}

without_extra! { OpEvent, MemoryEvent, DeviceMemoryEvent, DeviceIntervalEvent }

/// A span begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct SpanStartEvent {
    /// `s1`, `s2`, …; unique.
    pub id: String,
    /// The span that it runs in; none for the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<String>,
    /// What it is called.
    pub name: String,
    /// Nanoseconds from the opening of the session.
    pub start_ns: u64,
    /// What it stands for; the key is `span_kind`, because `kind` names the event.
    #[serde(rename = "span_kind")]
    pub kind: SpanKind,
    /// Whether it is the measured region.
    #[serde(default)]
    pub measured: bool,
    /// The part of the step that it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<ExecutionStep>,
    /// Our own keys.
    #[serde(flatten, skip_deserializing)]
    pub extra: Option<Box<SpanStartExtra>>,
}

/// A span ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct SpanEndEvent {
    /// The span.
    pub id: String,
    /// Nanoseconds from its start.
    #[serde(default)]
    pub duration_ns: u64,
    /// Our own keys.
    #[serde(flatten, skip_deserializing)]
    pub extra: Option<Box<SpanEndExtra>>,
}

/// An operation that ran inside a span.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct OpEvent {
    /// The span.
    pub span_id: String,
    /// What the operation is called, for example `matmul`.
    pub op_name: String,
    /// Ids of the tensors that went in.
    #[serde(default, deserialize_with = "list::read")]
    pub inputs: Vec<String>,
    /// Id of the tensor that came out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Shape of the output.
    pub shape: Vec<usize>,
    /// Element type of the output.
    pub dtype: String,
    /// Device of the output.
    pub device: String,
    /// How long it took, in nanoseconds.
    pub duration_ns: u64,
    /// When it started.
    #[serde(default)]
    pub timestamp_ns: u64,
    /// Bytes of the output, laid out without gaps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_dense_bytes: Option<u64>,
    /// The same, summed over the inputs.
    pub input_dense_bytes: u64,
}

/// A tensor seen in a span.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct TensorEvent {
    /// The span.
    pub span_id: String,
    /// What the backend calls it.
    pub tensor_id: String,
    /// What the program calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Its element type.
    pub dtype: String,
    /// Its device.
    pub device: String,
    /// Whether it is a variable.
    #[serde(default)]
    pub requires_grad: bool,
    /// Its bytes, laid out without gaps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dense_bytes: Option<u64>,
    /// What it is for.
    #[serde(default)]
    pub category: MemoryCategory,
    /// Our own keys.
    #[serde(flatten, skip_deserializing)]
    pub extra: Option<Box<TensorExtra>>,
}

/// Statistics of a tensor, taken over its finite elements; or one number (shape `[]`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct TensorStatsEvent {
    /// The span.
    pub span_id: String,
    /// What the program calls it; not blank.
    pub label: String,
    /// The tensor's shape.
    pub shape: Vec<usize>,
    /// Its element type.
    pub dtype: String,
    /// The product of `shape`.
    pub elements: u64,
    /// How many elements are NaN or infinite.
    pub non_finite: u64,
    /// The root of the mean square.
    pub rms: f64,
    /// The largest magnitude.
    pub abs_max: f64,
    /// The mean.
    pub mean: f64,
    /// Our own keys.
    #[serde(flatten, skip_deserializing)]
    pub extra: Option<Box<TensorStatsExtra>>,
}

/// A storage came to life, got another tensor, or ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct MemoryEvent {
    /// When.
    pub timestamp_ns: u64,
    /// The storage; tensors that share one have the same.
    pub storage_id: String,
    /// The tensor.
    pub tensor_id: String,
    /// The span.
    pub span_id: String,
    /// The operation that did it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op_name: Option<String>,
    /// The device.
    pub device: String,
    /// Bytes of the storage.
    pub bytes: u64,
    /// What happened.
    pub action: MemoryAction,
    /// Shape of the tensor.
    #[serde(default)]
    pub shape: Vec<usize>,
    /// Its element type.
    pub dtype: String,
    /// What it is for.
    #[serde(default)]
    pub category: MemoryCategory,
}

/// The state of a device's memory; at least one figure is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct DeviceMemoryEvent {
    /// When.
    pub timestamp_ns: u64,
    /// The device.
    pub device: String,
    /// Bytes in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_bytes: Option<u64>,
    /// Bytes free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free_bytes: Option<u64>,
    /// Bytes that an allocator holds back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved_bytes: Option<u64>,
    /// Bytes that the device has, as it says itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_bytes: Option<u64>,
}

/// Time measured by a device, on its own clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct DeviceIntervalEvent {
    /// The span.
    pub span_id: String,
    /// The device.
    pub device: String,
    /// The stream on it.
    pub stream_id: String,
    /// The clock that `start_ns` is on.
    pub clock_id: String,
    /// What measured it, for example `cuda`.
    pub backend: String,
    /// Start on the device's clock.
    pub start_ns: u64,
    /// How long; above 0.
    pub duration_ns: u64,
}

/// A parameter's gradient.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct GradientEvent {
    /// `gradient-1`, `gradient-2`, …; unique.
    pub event_id: String,
    /// The set that `key` belongs to.
    pub root: String,
    /// The parameter's name.
    pub key: String,
    /// What the gradient turned out to be.
    pub state: GradientState,
    /// Its L2 norm, where the state has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub norm: Option<f64>,
    /// Our own keys.
    #[serde(flatten, skip_deserializing)]
    pub extra: Option<Box<GradientExtra>>,
}

impl GradientEvent {
    /// The parameter's name under its root.
    pub fn param_key(&self) -> &str {
        &self.key
    }
}

/// A call, or a flow of data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "edge_kind", rename_all = "snake_case")]
pub enum EdgeEvent {
    /// One span called another.
    Call {
        /// The caller.
        from_span: String,
        /// The called span, a child of the caller.
        to_span: String,
        /// The called span's duration.
        host_duration_ns: u64,
    },
    /// One tensor was made from another.
    Data {
        /// The input.
        from_tensor: String,
        /// The output.
        to_tensor: String,
    },
}

/// How the capture ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct TerminalEvent {
    /// As planned or not.
    pub outcome: RunOutcome,
    /// When; not before anything recorded on the host.
    pub timestamp_ns: u64,
    /// Why it failed; there exactly when it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Our own keys.
    #[serde(flatten, skip_deserializing)]
    pub extra: Option<Box<TerminalExtra>>,
}
