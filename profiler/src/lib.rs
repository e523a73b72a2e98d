//! Attributes that record chosen training steps of [candle](https://github.com/huggingface/candle) programs.
//!
//! Put [`macro@profile_step`], [`macro@measured`] and [`macro@record_stats`] on your functions. A normal run does what
//! it did before. With `CANDLE_PROFILE=traces` in the environment one training step is recorded: spans, statistics of
//! tensors, numbers, as JSON lines in the open format `candle-graph/trace/10`; a summary comes on stderr. With the
//! feature `off` everything is compiled out.
//!
//! ```
//! use candle_core::{Device, Result, Tensor};
//! use candle_profiler::{measured, profile_step, record_scalar, record_stats};
//!
//! #[profile_step(forward)]
//! #[record_stats("logits")]
//! fn forward(x: &Tensor, w: &Tensor) -> Result<Tensor> {
//!     x.matmul(w)
//! }
//!
//! #[measured]
//! #[record_scalar("loss")]
//! fn train_step(x: &Tensor, w: &Tensor) -> Result<Tensor> {
//!     forward(x, w)?.sqr()?.mean_all()
//! }
//!
//! # fn main() -> Result<()> {
//! let (x, w) = (Tensor::ones((4, 8), candle_core::DType::F32, &Device::Cpu)?, Tensor::ones((8, 2), candle_core::DType::F32, &Device::Cpu)?);
//! for _ in 0..3 {
//!     train_step(&x, &w)?;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A session can also be opened by hand: [`TraceSession`].

#![cfg_attr(
    not(feature = "candle"),
    allow(
        dead_code,
        reason = "there are no tensors, and nobody calls what tells of them"
    )
)]

mod allocator;
mod api;
#[cfg(feature = "tracing")]
mod bridge;
pub mod capability;
mod capture;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod cli;
mod device;
pub mod instrument;
mod nonfinite;
mod observe;
pub mod phase;
#[doc(hidden)]
pub mod private;
mod record;
mod say;
mod source;
#[cfg(feature = "candle")]
pub mod tensor;
mod thread;
pub mod trace;
pub mod view;

pub use allocator::TrackingAllocator;
#[cfg(feature = "nn")]
pub use api::backward_step;
#[cfg(feature = "candle")]
pub use api::{backward, record_gradients};
pub use api::{measure, measure_with, record_scalar, record_stats, span, step_span};
#[cfg(feature = "tracing")]
pub use bridge::TracingLayer;
pub use candle_profiler_macros::{
    Observe, ObserveScalar, measured, profile_span, profile_step, record_gradients, record_scalar,
    record_stats,
};
pub use capability::{
    CaptureContract, CoverageLevel, ExpectedGradient, GRADIENT_MANIFEST_SCHEMA, GradientContract,
    GradientFamilyContract, GradientFamilyExpectation, MeasurementScope,
};
pub use capture::{
    Complaint, Config, Measured, SummaryTo, SyncMode, capture_next, configure, not_a_step, set_rank,
};
pub use device::DeviceName;
#[cfg(feature = "candle")]
pub use instrument::candle;
pub use instrument::{
    CaptureSelector, DeviceIntervalRecord, DeviceMemoryRecord, MemoryRecord, OpRecord, ProfileRun,
    SpanGuard, SpanId, SpanKind, TensorRecord, TraceSession,
};
pub use observe::{Observe, ObserveScalar, Observer, ScalarObserver};
pub use phase::{ExecutionPhase, ExecutionStep};
pub use record::{Entered, Handle, Span, current};
#[cfg(feature = "candle")]
pub use tensor::{
    ByMode, Detached, Gradient, ObserveExt, Plain, Profiled, Variable, Variables, Wrapped,
    detached, name_vars, profiled,
};
pub use trace::{
    ComparisonIdentity, SCHEMA as TRACE_SCHEMA, TimingMode, TraceDocument, TraceEvent, parse_trace,
    write_jsonl,
};

/// The README's code is compiled and run with the documentation's tests.
#[cfg(all(doctest, feature = "nn"))]
#[doc = include_str!("../../README.md")]
struct Readme;
