//! Records one training step by hand: no attribute and no variable, the program opens the trace and says what is in it.
//!
//! ```text
//! cargo run --release -p examples --bin manual
//! cargo run --release -p examples --bin manual -- some/other/path.jsonl
//! ```
//!
//! That is more to write than an attribute, and for what attributes cannot reach: work whose bounds are no function,
//! evidence that the program has already, a trace with an identity of its own.

use std::path::{Path, PathBuf};

use anyhow::Result;
use candle_core::backprop::GradStore;
use candle_core::{DType, Device, Result as CandleResult, Tensor, Var};
use candle_nn::loss::cross_entropy;
use candle_profiler::candle::{device_label, dtype_label, inputs_dense_bytes, tensor_id};
use candle_profiler::{ExecutionStep, OpRecord, ProfileRun, SpanKind, TraceSession};
use examples::Digits;

const STEPS: u64 = 60;
const RECORDED_STEP: u64 = 10;
const LEARNING_RATE: f64 = 2.0;

/// Logistic regression: one matrix from 64 pixels to ten logits, all digits in every step.
struct Regression {
    weight: Var,
}

impl Regression {
    fn new(device: &Device) -> CandleResult<Self> {
        let weight = Var::zeros((64, 10), DType::F32, device)?;
        Ok(Self { weight })
    }

    fn forward(&self, images: &Tensor) -> CandleResult<Tensor> {
        images.matmul(&self.weight)
    }

    fn update(&self, gradients: &GradStore) -> CandleResult<()> {
        match gradients.get(&self.weight) {
            Some(gradient) => {
                let weight = (self.weight.as_tensor() - gradient * LEARNING_RATE)?;
                self.weight.set(&weight)
            }
            None => candle_core::bail!("the loss does not depend on the weight"),
        }
    }

    /// A training step.
    fn step(&self, digits: &Digits) -> CandleResult<()> {
        let logits = self.forward(&digits.images)?;
        let loss = cross_entropy(&logits, &digits.labels)?;
        self.update(&loss.backward()?)
    }

    /// The same training step, with everything that the trace shall hold.
    fn recorded_step(&self, digits: &Digits, session: &TraceSession) -> Result<()> {
        // Each span ends where its guard is dropped. Exactly one span is the measured one.
        let measured = session.begin_measurement("step");

        let loss = {
            let span =
                session.begin_step_span("forward", ExecutionStep::Forward, SpanKind::Function);
            let started = session.elapsed_ns();
            let logits = self.forward(&digits.images)?;
            let ended = session.elapsed_ns();
            session.record_op(
                span.id(),
                OpRecord {
                    op_name: "matmul",
                    inputs: &[tensor_id(&digits.images), tensor_id(&self.weight)],
                    output: Some(&tensor_id(&logits)),
                    shape: logits.dims(),
                    dtype: &dtype_label(logits.dtype()),
                    device: &device_label(logits.device()),
                    duration_ns: ended - started,
                    timestamp_ns: started,
                    output_dense_bytes: None,
                    input_dense_bytes: inputs_dense_bytes(&[&digits.images, &self.weight]),
                },
            )?;
            session.record_tensor_stats(span.id(), "logits", &logits)?;
            cross_entropy(&logits, &digits.labels)?
        };
        session.record_scalar(measured.id(), "loss", loss.to_scalar::<f32>()?.into())?;

        let gradients = {
            let _span =
                session.begin_step_span("backward", ExecutionStep::Backward, SpanKind::Function);
            loss.backward()?
        };
        {
            let span =
                session.begin_step_span("update", ExecutionStep::Optimizer, SpanKind::Function);
            self.update(&gradients)?;
            session.record_tensor_stats(span.id(), "weight", &self.weight)?;
        }
        Ok(())
    }
}

/// Runs `step` in a session of its own, which ends as failed where the step does.
fn record(path: &Path, step: impl FnOnce(&TraceSession) -> Result<()>) -> Result<PathBuf> {
    // `strict`: whatever would make the trace invalid is an error here, and not a surprise for its reader.
    let run = ProfileRun::training("manual", RECORDED_STEP, "cpu")
        .tag("data", "digits")
        .strict();
    let session = TraceSession::open(path, run)?;
    match step(&session) {
        Ok(()) => session.finish(),
        Err(error) => {
            session.finish_failed(format!("{error:#}"))?;
            Err(error)
        }
    }
}

fn main() -> Result<()> {
    let path = std::env::args_os()
        .nth(1)
        .map_or_else(|| PathBuf::from("traces/manual.jsonl"), PathBuf::from);
    let device = Device::Cpu;
    let (training, held_out) = Digits::load(&device)?.split()?;
    let model = Regression::new(&device)?;

    for step in 1..=STEPS {
        if step == RECORDED_STEP {
            let trace = record(&path, |session| model.recorded_step(&training, session))?;
            println!("step {step}: {}", trace.display());
        } else {
            model.step(&training)?;
        }
    }
    let right = held_out.count_right(&model.forward(&held_out.images)?)?;
    println!(
        "accuracy: {:.2} %",
        100.0 * right as f64 / held_out.len() as f64
    );
    Ok(())
}
