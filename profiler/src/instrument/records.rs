//! What is recorded by hand, borrowed from the caller.

use crate::trace::MemoryCategory;

/// Names a span of one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpanId(pub(crate) u64);

impl SpanId {
    /// The number in the trace's `s{n}`.
    pub fn raw(self) -> u64 {
        self.0
    }
}

/// The span's name in the trace.
pub(super) fn span_name(id: u64) -> String {
    format!("s{id}")
}

/// An operation that ran inside a span.
#[derive(Debug, Clone, Copy)]
pub struct OpRecord<'a> {
    /// What it is called, for example `matmul`.
    pub op_name: &'a str,
    /// Ids of the tensors that went in.
    pub inputs: &'a [String],
    /// Id of the tensor that came out.
    pub output: Option<&'a str>,
    /// Shape of the output.
    pub shape: &'a [usize],
    /// Element type of the output.
    pub dtype: &'a str,
    /// Device of the output.
    pub device: &'a str,
    /// How long it took, in nanoseconds.
    pub duration_ns: u64,
    /// When it started, on the session's clock; 0 says that it ended just now.
    pub timestamp_ns: u64,
    /// Bytes of the output; found from shape and dtype where not given.
    pub output_dense_bytes: Option<u64>,
    /// Bytes of all inputs together.
    pub input_dense_bytes: u64,
}

/// A storage that came to life or ended.
#[derive(Debug, Clone, Copy)]
pub struct MemoryRecord<'a> {
    /// The storage; tensors that share one name the same.
    pub storage_id: &'a str,
    /// The tensor.
    pub tensor_id: &'a str,
    /// The device.
    pub device: &'a str,
    /// Bytes of the storage.
    pub bytes: u64,
    /// Element type of the tensor.
    pub dtype: &'a str,
    /// What it is for.
    pub category: MemoryCategory,
    /// When, on the session's clock; now where not given.
    pub timestamp_ns: Option<u64>,
    /// The operation that did it.
    pub op_name: Option<&'a str>,
    /// Shape of the tensor.
    pub shape: &'a [usize],
}

/// Time measured by a device, on its own clock.
#[derive(Debug, Clone, Copy)]
pub struct DeviceIntervalRecord<'a> {
    /// The device.
    pub device: &'a str,
    /// The stream on it.
    pub stream_id: &'a str,
    /// The clock that `start_ns` is on.
    pub clock_id: &'a str,
    /// What measured it, for example `cuda`.
    pub backend: &'a str,
    /// Start on the device's clock, in nanoseconds.
    pub start_ns: u64,
    /// How long, in nanoseconds; above 0.
    pub duration_ns: u64,
}

/// The state of a device's memory; at least one figure is given.
#[derive(Debug, Clone, Copy)]
pub struct DeviceMemoryRecord<'a> {
    /// The device.
    pub device: &'a str,
    /// Bytes in use.
    pub used_bytes: Option<u64>,
    /// Bytes free.
    pub free_bytes: Option<u64>,
    /// Bytes that an allocator holds back.
    pub reserved_bytes: Option<u64>,
    /// Bytes that the device has, as it says itself.
    pub capacity_bytes: Option<u64>,
    /// When, on the session's clock; now where not given.
    pub timestamp_ns: Option<u64>,
}

/// A tensor seen in a span.
#[derive(Debug, Clone, Copy)]
pub struct TensorRecord<'a> {
    /// What the backend calls it.
    pub tensor_id: &'a str,
    /// What the program calls it.
    pub label: Option<&'a str>,
    /// Its shape.
    pub shape: &'a [usize],
    /// Its element type.
    pub dtype: &'a str,
    /// Its device.
    pub device: &'a str,
    /// Whether it is a variable.
    pub requires_grad: bool,
    /// Its bytes; found from shape and dtype where not given.
    pub dense_bytes: Option<u64>,
    /// What it is for.
    pub category: MemoryCategory,
}
