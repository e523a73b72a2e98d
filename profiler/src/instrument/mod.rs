//! The session by hand: open one, begin spans, record evidence, finish.
//!
//! ```no_run
//! use candle_profiler::{ProfileRun, SpanKind, TraceSession};
//!
//! # fn main() -> anyhow::Result<()> {
//! let run = ProfileRun::training("train::step", 3, "cpu");
//! let session = TraceSession::open("step-3.jsonl", run)?;
//! {
//!     let _step = session.begin_measurement("train::step");
//!     let layer = session.begin_span("fc1", SpanKind::Module);
//!     session.record_scalar(layer.id(), "loss", 2.3)?;
//! }
//! session.finish()?;
//! # Ok(())
//! # }
//! ```

#[cfg(feature = "candle")]
pub mod candle;
mod checks;
mod entered;
mod evidence;
mod findings;
mod output;
mod records;
mod run;
mod selector;
mod session;
mod shared;

pub use crate::trace::SpanKind;
pub use records::{
    DeviceIntervalRecord, DeviceMemoryRecord, MemoryRecord, OpRecord, SpanId, TensorRecord,
};
pub use run::ProfileRun;
pub use selector::CaptureSelector;
pub use session::{SpanGuard, TraceSession};
pub(crate) use shared::Shared;
