//! What a session says about the run that it captures.

use std::collections::BTreeMap;

use crate::capability::CaptureContract;
use crate::phase::ExecutionPhase;
use crate::trace::{ComparisonIdentity, TimingMode, TraceRunMeta, stamp};

/// What a session says about the run that it captures: its `meta` line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileRun {
    /// The function or model that is profiled; also the name of the root span.
    pub entrypoint: String,
    /// The caller's own name for the run.
    pub correlation_id: String,
    /// Training or inference.
    pub phase: ExecutionPhase,
    /// Which update or call is captured, from 1.
    pub capture_step: u64,
    /// How many ran before; fewer than `capture_step`.
    pub warmup_steps: u64,
    /// `cpu`, `cuda:0`, `metal:0`.
    pub device: String,
    /// Whether the program waits for the device at both ends of the measured region.
    pub measured_region_device_synchronized: bool,
    /// What the times of the spans inside mean.
    pub timing_mode: TimingMode,
    /// What the capture promises.
    pub capture_contract: CaptureContract,
    /// What it may be compared with.
    pub comparison_identity: Option<ComparisonIdentity>,
    /// Whatever else is worth knowing.
    pub tags: BTreeMap<String, String>,
    /// See [`Self::strict`].
    pub strict: bool,
    /// See [`Self::legacy_schema`].
    pub legacy_schema: bool,
}

impl ProfileRun {
    /// A training update. All updates before it count as warm-up.
    pub fn training(
        entrypoint: impl Into<String>,
        capture_step: u64,
        device: impl Into<String>,
    ) -> Self {
        Self::of(
            ExecutionPhase::Train,
            "update",
            entrypoint.into(),
            capture_step,
            device.into(),
        )
    }

    /// An inference call. All calls before it count as warm-up.
    pub fn inference(
        entrypoint: impl Into<String>,
        capture_step: u64,
        device: impl Into<String>,
    ) -> Self {
        Self::of(
            ExecutionPhase::Infer,
            "inference",
            entrypoint.into(),
            capture_step,
            device.into(),
        )
    }

    fn of(
        phase: ExecutionPhase,
        noun: &str,
        entrypoint: String,
        capture_step: u64,
        device: String,
    ) -> Self {
        Self {
            correlation_id: format!("{entrypoint}/{noun}-{capture_step}"),
            entrypoint,
            phase,
            capture_step,
            warmup_steps: capture_step.saturating_sub(1),
            device,
            measured_region_device_synchronized: false,
            timing_mode: TimingMode::Host,
            capture_contract: CaptureContract::default(),
            comparison_identity: None,
            tags: BTreeMap::new(),
            strict: false,
            legacy_schema: false,
        }
    }

    /// Adds a tag.
    #[must_use]
    pub fn tag(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.tags.insert(key.into(), value.into());
        self
    }

    /// Replaces the correlation id.
    #[must_use]
    pub fn correlation_id(self, value: impl Into<String>) -> Self {
        Self {
            correlation_id: value.into(),
            ..self
        }
    }

    /// Says that the device is waited for at both ends of every span.
    #[must_use]
    pub fn device_synchronized(self) -> Self {
        Self {
            timing_mode: TimingMode::DeviceSynchronized,
            measured_region_device_synchronized: true,
            ..self
        }
    }

    /// Says that the device is waited for at both ends of the measured region only.
    #[must_use]
    pub fn measured_region_device_synchronized(self) -> Self {
        Self {
            measured_region_device_synchronized: true,
            ..self
        }
    }

    /// Replaces what the capture promises.
    #[must_use]
    pub fn capture_contract(self, capture_contract: CaptureContract) -> Self {
        Self {
            capture_contract,
            ..self
        }
    }

    /// Says what the run may be compared with.
    #[must_use]
    pub fn comparison_identity(self, identity: ComparisonIdentity) -> Self {
        Self {
            comparison_identity: Some(identity),
            ..self
        }
    }

    /// Makes an error of what would otherwise only be said on stderr at the end: a trace that
    /// parses, but contradicts itself or its contract. Where the call that does it can be told, it
    /// is refused and nothing is written; the rest is refused by `finish`, and the trace ends as
    /// failed. Whatever a strict session finishes is valid.
    #[must_use]
    pub fn strict(self) -> Self {
        Self {
            strict: true,
            ..self
        }
    }

    /// Writes the trace in `candle-graph/trace/6`, for readers that know only that. What it has no line for is left out:
    /// statistics and numbers, times measured by a device, flows of data, labels of tensors, samples of device memory
    /// without both figures; and the outcome, so that a failed trace is told only by the spans that never ended.
    #[must_use]
    pub fn legacy_schema(self) -> Self {
        Self {
            legacy_schema: true,
            ..self
        }
    }

    /// The `meta` line of a run that starts now.
    pub(crate) fn into_meta(self) -> TraceRunMeta {
        TraceRunMeta {
            run_id: stamp::run_id(),
            correlation_id: self.correlation_id,
            entrypoint: self.entrypoint,
            phase: self.phase,
            timestamp: stamp::utc_now(),
            capture_step: self.capture_step,
            warmup_steps: self.warmup_steps,
            device: self.device,
            measured_region_device_synchronized: self.measured_region_device_synchronized,
            timing_mode: self.timing_mode,
            capture_contract: self.capture_contract,
            comparison_identity: self.comparison_identity,
            tags: self.tags,
            candle_version: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_builders_say_what_they_say_and_no_more() {
        let run = ProfileRun::training("train::step", 3, "cuda:0");
        assert_eq!(run.correlation_id, "train::step/update-3");
        assert_eq!((run.capture_step, run.warmup_steps), (3, 2));
        let run = run.measured_region_device_synchronized();
        assert!(run.measured_region_device_synchronized);
        assert_eq!(run.timing_mode, TimingMode::Host);
        let run = ProfileRun::inference("serve", 1, "cpu").device_synchronized();
        assert_eq!(run.correlation_id, "serve/inference-1");
        assert!(run.measured_region_device_synchronized);
        assert_eq!(run.timing_mode, TimingMode::DeviceSynchronized);
    }

    #[test]
    fn the_timestamp_has_milliseconds_and_a_z() {
        let meta = ProfileRun::inference("serve", 1, "cpu").into_meta();
        let shape: String = meta
            .timestamp
            .chars()
            .map(|c| if c.is_ascii_digit() { '0' } else { c })
            .collect();
        assert_eq!(shape, "0000-00-00T00:00:00.000Z");
    }
}
