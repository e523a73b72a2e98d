//! The trace format: `candle-graph/trace/10` as plain types, read, written and checked.
//!
//! A trace is UTF-8 text, one JSON object a line: `meta` first, then spans and evidence, `terminal`
//! last. [`TraceEvent`] is one line, [`TraceDocument`] a whole trace, [`analyze_health`] the
//! verdict on it. All field names of the format live in this module, for writing and for reading.

pub(crate) mod ancestry;
pub mod document;
pub mod events;
pub mod extra;
pub mod health;
pub(crate) mod legacy;
mod lenient;
mod line;
pub(crate) mod list;
pub mod memory;
pub mod read;
pub mod schema;
pub(crate) mod sequence;
pub(crate) mod span_index;
pub(crate) mod span_lines;
mod split;
pub(crate) mod stamp;
pub(crate) mod storages;

pub use document::{TraceDocument, write_jsonl};
pub use events::{
    DeviceIntervalEvent, DeviceMemoryEvent, EdgeEvent, GradientEvent, MemoryEvent, OpEvent,
    SpanEndEvent, SpanStartEvent, TensorEvent, TensorStatsEvent, TerminalEvent, TraceEvent,
};
pub(crate) use extra::{BUFFER, FROZEN};
pub use extra::{
    GradientExtra, SpanEndExtra, SpanStartExtra, TensorExtra, TensorStatsExtra, TerminalExtra,
};
pub use health::{EvidenceCoverage, HealthIssue, HealthSeverity, TraceHealth, analyze_health};
pub use memory::{MemoryAction, MemoryCategory, category_for_step, dense_tensor_bytes};
pub use read::{TraceEvents, parse_trace, parse_trace_reader};
pub use schema::{
    ComparisonIdentity, GradientState, RunOutcome, SCHEMA, SpanKind, SpanRecord, TimingMode,
    TraceRunMeta, TraceSummary,
};
