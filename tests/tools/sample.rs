//! Traces to look at.

use std::fmt::Write;
use std::path::Path;

use candle_profiler::phase::ExecutionStep;
use candle_profiler::{ProfileRun, SpanKind, TraceSession};
use serde_json::{Value, json};
use tests::program;

/// One training step by hand with a loss, written where it is asked for.
pub(crate) fn step(path: &Path, number: u64, loss: f64) {
    let run = ProfileRun::training("train_step", number, "cpu");
    let session = TraceSession::open(path, run).expect("a session");
    {
        let measured = session.begin_measurement("train_step");
        {
            let forward = session.begin_step_span("forward", ExecutionStep::Forward, SpanKind::Function);
            session.record_scalar(forward.id(), "activation", 2.0).expect("a number");
        }
        session.record_scalar(measured.id(), "loss", loss).expect("a number");
        drop(session.begin_step_span("backward", ExecutionStep::Backward, SpanKind::Function));
        session
            .record_gradient("loss", "weight", candle_profiler::trace::GradientState::Present, Some(loss / 2.0))
            .expect("a gradient");
    }
    session.finish().expect("the end");
}

/// A capture of the training program, with what it said on stderr. Its traces are in `traces`.
pub(crate) fn captured(folder: &Path, mode: &str, steps: &str) -> String {
    let arguments: Vec<&str> = mode.split(' ').collect();
    let variables = [("CANDLE_PROFILE", "traces"), ("CANDLE_PROFILE_STEPS", steps)];
    let ran = program::run(env!("CARGO_BIN_EXE_train"), folder, &arguments, &variables);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    ran.stderr
}

/// A trace with its lines given: `meta` and `terminal` are added.
pub(crate) struct Lines {
    text: String,
    end_ns: u64,
    failed: Option<String>,
}

impl Lines {
    /// Begins with a root of so many nanoseconds.
    pub(crate) fn new(step: u64, end_ns: u64, tags: Value, timestamp: &str) -> Lines {
        let meta = json!({
            "kind": "meta", "schema": "candle-graph/trace/10", "run_id": format!("run-1-{step}"),
            "correlation_id": format!("train_step/update-{step}"), "entrypoint": "train_step", "phase": "train",
            "timestamp": timestamp, "capture_step": step, "warmup_steps": step - 1, "device": "cpu",
            "measured_region_device_synchronized": false, "timing_mode": "host",
            "capture_contract": {
                "measurement_scope": "profiled_work", "operations": "partial", "activations": "none",
                "tensors": "partial", "gradients": "partial", "logical_memory": "partial",
                "physical_memory": "none", "device_timing": "none", "required_semantic_labels": [],
            },
            "tags": tags,
        });
        let lines = Lines {
            text: format!("{meta}\n"),
            end_ns,
            failed: None,
        };
        lines.span("s1", None, "train_step", (0, end_ns), json!({}), json!({}))
    }

    pub(crate) fn line(mut self, line: &Value) -> Lines {
        writeln!(self.text, "{line}").expect("a text");
        self
    }

    pub(crate) fn span(
        self,
        id: &str,
        parent: Option<&str>,
        name: &str,
        (start, end): (u64, u64),
        starts: Value,
        ends: Value,
    ) -> Lines {
        let mut first = json!({
            "kind": "span_start", "id": id, "name": name, "start_ns": start, "span_kind": "function", "measured": false,
        });
        if let Some(parent) = parent {
            first["parent_id"] = json!(parent);
        }
        let mut last = json!({"kind": "span_end", "id": id, "duration_ns": end - start});
        for (line, more) in [(&mut first, starts), (&mut last, ends)] {
            for (key, value) in more.as_object().expect("keys") {
                line[key] = value.clone();
            }
        }
        self.line(&first).line(&last)
    }

    pub(crate) fn measured(self, name: &str, times: (u64, u64), ends: Value) -> Lines {
        self.span("s2", Some("s1"), name, times, json!({"measured": true}), ends)
    }

    pub(crate) fn stats(self, span: &str, label: &str, rms: f64) -> Lines {
        self.line(&json!({
            "kind": "tensor_stats", "span_id": span, "label": label, "shape": [2, 3], "dtype": "f32", "elements": 6,
            "non_finite": 0, "rms": rms, "abs_max": rms * 2.0, "mean": rms / 10.0,
        }))
    }

    pub(crate) fn failed(self, reason: &str) -> Lines {
        Lines {
            failed: Some(reason.to_owned()),
            ..self
        }
    }

    pub(crate) fn end(self) -> String {
        let mut terminal = json!({"kind": "terminal", "outcome": "complete", "timestamp_ns": self.end_ns});
        if let Some(reason) = &self.failed {
            terminal["outcome"] = json!("failed");
            terminal["reason"] = json!(reason);
        }
        self.line(&terminal).text
    }
}

pub(crate) const STAMP: &str = "2026-11-29T21:30:12.000Z";

/// A trace of the time of a measured region and the rms of a label, and no more.
pub(crate) fn simple(step: u64, measured_ns: u64, rms: f64) -> String {
    Lines::new(step, measured_ns + 20, json!({}), STAMP)
        .measured("train_step", (10, 10 + measured_ns), json!({}))
        .span("s3", Some("s2"), "forward", (20, 20 + measured_ns / 2), json!({"step": "forward"}), json!({}))
        .stats("s3", "input", 1.0)
        .stats("s3", "hidden", rms)
        .stats("s3", "hidden", rms * 3.0)
        .end()
}

/// A trace of so many short spans.
pub(crate) fn large(folder: &Path, name: &str, spans: u64) {
    let mut lines = Lines::new(2, spans * 10 + 20, json!({}), STAMP)
        .measured("train_step", (5, spans * 10 + 15), json!({}));
    for at in 0..spans {
        let times = (10 + at * 10, 17 + at * 10);
        lines = lines.span(&format!("s{}", at + 3), Some("s2"), "layer", times, json!({}), json!({}));
    }
    super::put(folder, name, &lines.end());
}
