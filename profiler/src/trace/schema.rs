//! The words and small records that the events are made of.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Result, bail, ensure};
use serde::{Deserialize, Serialize};

use super::extra::{SpanEndExtra, SpanStartExtra};
use crate::capability::CaptureContract;
use crate::phase::{ExecutionPhase, ExecutionStep};

/// The schema that is written.
pub const SCHEMA: &str = "candle-graph/trace/10";
/// The schema before it, which is still read.
pub const PREVIOUS_SCHEMA: &str = "candle-graph/trace/9";
/// An old schema that is still read, and written on request: see [`crate::ProfileRun::legacy_schema`].
pub const LEGACY_SCHEMA: &str = "candle-graph/trace/6";

/// The schemas that are understood. An older one gets its own variant here, and what it lacks is
/// asked of it by the document's builder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Schema {
    V10,
    /// As 10, without `tensor_stats`.
    V9,
    /// Read and written in [`super::legacy`].
    V6,
}

impl Schema {
    pub(crate) fn named(name: &str) -> Result<Self> {
        match name {
            SCHEMA => Ok(Self::V10),
            PREVIOUS_SCHEMA => Ok(Self::V9),
            LEGACY_SCHEMA => Ok(Self::V6),
            _ => bail!(
                "schema {name:?} is not one that is read: {SCHEMA:?}, {PREVIOUS_SCHEMA:?}, {LEGACY_SCHEMA:?}"
            ),
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::V10 => SCHEMA,
            Self::V9 => PREVIOUS_SCHEMA,
            Self::V6 => LEGACY_SCHEMA,
        }
    }

    pub(crate) fn has_tensor_stats(self) -> bool {
        self == Self::V10
    }

    /// Whether a trace without a last line is one that was cut off.
    pub(crate) fn has_terminal(self) -> bool {
        self != Self::V6
    }
}

/// What two runs must have in common before their times may be compared. No text is blank.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComparisonIdentity {
    /// The build under test, for example a commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub implementation_id: Option<String>,
    /// What is computed.
    pub workload_id: String,
    /// The model.
    pub model_id: String,
    /// Its configuration.
    pub config_id: String,
    /// The data.
    pub data_id: String,
    /// How random numbers are seeded.
    pub seed_policy: String,
    /// Samples in one forward call, from 1.
    pub physical_batch: u64,
    /// Forward calls for one optimizer step, from 1.
    pub accumulation_steps: u64,
    /// The number format of the computation.
    pub precision: String,
    /// Whether the device was shared, its clocks fixed, and the like.
    pub device_state: String,
    /// Names the pair that this run is one of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pair_id: Option<String>,
}

impl ComparisonIdentity {
    /// Checks that every part says something.
    ///
    /// # Errors
    /// A blank text, or a zero `physical_batch` or `accumulation_steps`.
    pub fn validate(&self) -> Result<()> {
        let optional = |value: &'_ Option<String>| value.clone().unwrap_or_else(|| "absent".into());
        for (field, value) in [
            ("implementation_id", &optional(&self.implementation_id)),
            ("workload_id", &self.workload_id),
            ("model_id", &self.model_id),
            ("config_id", &self.config_id),
            ("data_id", &self.data_id),
            ("seed_policy", &self.seed_policy),
            ("precision", &self.precision),
            ("device_state", &self.device_state),
            ("pair_id", &optional(&self.pair_id)),
        ] {
            not_blank("comparison_identity", field, value)?;
        }
        for (field, value) in [
            ("physical_batch", self.physical_batch),
            ("accumulation_steps", self.accumulation_steps),
        ] {
            ensure!(
                value > 0,
                "comparison_identity: {field} is 0, it counts from 1"
            );
        }
        Ok(())
    }
}

/// Where a trace comes from: what stands in its `meta` line beside the schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceRunMeta {
    /// Unique to this run.
    pub run_id: String,
    /// The caller's own name for it, shared with other files about the same run.
    pub correlation_id: String,
    /// The function or model that was profiled; also the name of the root span.
    pub entrypoint: String,
    /// Training or inference.
    pub phase: ExecutionPhase,
    /// When the session was opened: UTC, ISO 8601, milliseconds.
    pub timestamp: String,
    /// Which update or call was captured, from 1.
    pub capture_step: u64,
    /// How many ran before; fewer than `capture_step`.
    pub warmup_steps: u64,
    /// `cpu`, `cuda:0`, `metal:0`.
    pub device: String,
    /// Whether the device was waited for at both ends of the measured region.
    #[serde(default)]
    pub measured_region_device_synchronized: bool,
    /// What the times of the spans inside mean.
    pub timing_mode: TimingMode,
    /// What the capture promises.
    pub capture_contract: CaptureContract,
    /// What it may be compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison_identity: Option<ComparisonIdentity>,
    /// Whatever else is worth knowing.
    pub tags: BTreeMap<String, String>,
    /// The version of candle, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candle_version: Option<String>,
}

impl TraceRunMeta {
    /// Checks the values; the capture contract has its own check.
    ///
    /// # Errors
    /// A blank text, a `capture_step` of 0, `warmup_steps` not below it, or an invalid
    /// `comparison_identity`.
    pub fn validate(&self) -> Result<()> {
        for (field, value) in [
            ("run_id", &self.run_id),
            ("correlation_id", &self.correlation_id),
            ("entrypoint", &self.entrypoint),
            ("timestamp", &self.timestamp),
            ("device", &self.device),
        ] {
            not_blank("run", field, value)?;
        }
        ensure!(
            self.capture_step > 0,
            "run: capture_step is 0, it counts from 1"
        );
        ensure!(
            self.warmup_steps < self.capture_step,
            "run: warmup_steps is {}, it must be below capture_step, which is {}",
            self.warmup_steps,
            self.capture_step
        );
        match &self.comparison_identity {
            Some(identity) => identity.validate(),
            None => Ok(()),
        }
    }
}

fn not_blank(of: &str, field: &str, value: &str) -> Result<()> {
    ensure!(
        !value.trim().is_empty(),
        "{of}: {field} is {value:?}, it must not be empty"
    );
    Ok(())
}

/// What a span's time means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimingMode {
    /// The time that passed on the host; work handed to a device may still be under way.
    Host,
    /// The device was waited for at both ends of every span.
    DeviceSynchronized,
}

/// How a capture ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunOutcome {
    /// As planned.
    Complete,
    /// Not as planned; `reason` says why.
    Failed,
}

/// What a span stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpanKind {
    /// A function of the program.
    Function,
    /// One tensor operation.
    Op,
    /// A module of the model.
    Module,
}

impl fmt::Display for SpanKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Function => "function",
            Self::Op => "op",
            Self::Module => "module",
        })
    }
}

/// What a parameter's gradient turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GradientState {
    /// There, finite and not all zero.
    Present,
    /// Not there.
    Missing,
    /// There, every element zero.
    Zero,
    /// There, with a NaN or an infinity.
    NonFinite,
}

impl GradientState {
    /// Whether `norm` is one that this state can have: finite above 0 when present, exactly +0.0
    /// when zero, none otherwise.
    pub(crate) fn allows(self, norm: Option<f64>) -> bool {
        match (self, norm) {
            (Self::Present, Some(norm)) => norm.is_finite() && norm > 0.0,
            // -0.0 equals 0.0, but the format has one zero only.
            (Self::Zero, Some(norm)) => norm.to_bits() == 0.0f64.to_bits(),
            (Self::Missing | Self::NonFinite, None) => true,
            (Self::Present | Self::Zero, None) | (Self::Missing | Self::NonFinite, Some(_)) => {
                false
            }
        }
    }

    /// What [`Self::allows`] allows, in words for an error.
    pub(crate) fn allowed_norm(self) -> &'static str {
        match self {
            Self::Present => "a finite norm above 0",
            Self::Zero => "a norm of exactly 0.0",
            Self::Missing | Self::NonFinite => "no norm",
        }
    }
}

impl fmt::Display for GradientState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Present => "present",
            Self::Missing => "missing",
            Self::Zero => "zero",
            Self::NonFinite => "non_finite",
        })
    }
}

/// A few numbers about a whole trace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceSummary {
    /// `op` events.
    pub op_count: usize,
    /// Time of the measured spans, in nanoseconds.
    pub total_ns: u64,
    /// Spans.
    pub span_count: usize,
    /// Spans without a parent.
    pub root_span_count: usize,
    /// Steps from a root down to the deepest span.
    pub max_depth: usize,
    /// `memory` events that allocate.
    pub alloc_count: usize,
    /// `memory` events that free.
    pub free_count: usize,
    /// The most bytes that were live at once by the `memory` events; none without an allocation.
    pub logical_peak_bytes: Option<u64>,
}

/// A span put together from its `span_start` and `span_end`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpanRecord {
    /// `s1`, `s2`, …
    pub id: String,
    /// The span that it ran in; none for the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<String>,
    /// What it is called.
    pub name: String,
    /// What it stands for.
    pub kind: SpanKind,
    /// Whether it is the measured region.
    pub measured: bool,
    /// Nanoseconds from the opening of the session.
    pub start_ns: u64,
    /// Whether its `span_end` was seen.
    #[serde(default)]
    pub closed: bool,
    /// Nanoseconds from start to end; 0 while it is not closed.
    #[serde(default)]
    pub duration_ns: u64,
    /// The part of the step that it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<ExecutionStep>,
    /// Our own keys of its `span_start`. Boxed, because most spans have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_extra: Option<Box<SpanStartExtra>>,
    /// Our own keys of its `span_end`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_extra: Option<Box<SpanEndExtra>>,
}

impl SpanRecord {
    /// Where it ends; its start while it is not closed.
    pub fn end_ns(&self) -> u64 {
        let duration = if self.closed { self.duration_ns } else { 0 };
        self.start_ns.saturating_add(duration)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gradient_state_allows_only_its_own_norm() {
        use GradientState::*;
        for (state, norm, allowed) in [
            (Present, Some(1.0), true),
            (Present, Some(5e-324), true),
            (Present, Some(0.0), false),
            (Present, Some(-1.0), false),
            (Present, Some(f64::INFINITY), false),
            (Present, Some(f64::NAN), false),
            (Present, None, false),
            (Zero, Some(0.0), true),
            (Zero, Some(-0.0), false),
            (Zero, None, false),
            (Missing, None, true),
            (Missing, Some(0.0), false),
            (NonFinite, None, true),
            (NonFinite, Some(f64::NAN), false),
        ] {
            assert_eq!(state.allows(norm), allowed, "{state} with {norm:?}");
        }
    }
}
