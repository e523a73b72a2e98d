//! Profiling of candle programs by attributes.

pub mod capability;
pub mod instrument;
pub mod phase;
pub mod trace;

pub use capability::{
    CaptureContract, CoverageLevel, ExpectedGradient, GRADIENT_MANIFEST_SCHEMA, GradientContract,
    GradientFamilyContract, GradientFamilyExpectation, MeasurementScope,
};
#[cfg(feature = "candle")]
pub use instrument::candle;
pub use instrument::{
    CaptureSelector, DeviceIntervalRecord, DeviceMemoryRecord, MemoryRecord, OpRecord, ProfileRun,
    SpanGuard, SpanId, SpanKind, TensorRecord, TraceSession,
};
pub use phase::{ExecutionPhase, ExecutionStep};
pub use trace::{
    ComparisonIdentity, SCHEMA as TRACE_SCHEMA, TimingMode, TraceDocument, TraceEvent, parse_trace,
    write_jsonl,
};
