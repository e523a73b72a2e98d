//! Trainings whose values leave the range of their type, and healthy ones that only look like it.

use anyhow::Result;
use candle_core::{DType, Device, Result as CandleResult, Tensor, Var};
use candle_nn::{Optimizer, SGD};
use candle_profiler::{
    backward, backward_step, measured, name_vars, profile_step, record_scalar, record_stats,
};

/// A linear model whose learning rate is too large: from step to step its error grows a hundredfold and more.
struct Exploding {
    weight: Var,
    optimizer: SGD,
}

impl Exploding {
    fn new() -> CandleResult<Self> {
        let weight = Var::new(&[[1f32], [2.0], [-1.0]], &Device::Cpu)?;
        name_vars("model", [("weight", &weight)]);
        let optimizer = SGD::new(vec![weight.clone()], 100.0)?;
        Ok(Self { weight, optimizer })
    }

    #[profile_step(forward)]
    #[record_stats("prediction")]
    fn forward(&self, x: &Tensor) -> CandleResult<Tensor> {
        x.matmul(&self.weight)
    }

    #[measured]
    fn train_step(&mut self, x: &Tensor) -> CandleResult<Tensor> {
        #[record_scalar("loss")]
        let loss = self.forward(x)?.sqr()?.mean_all()?;
        backward_step(&mut self.optimizer, &loss)?;
        Ok(loss)
    }
}

fn inputs() -> CandleResult<Tensor> {
    Tensor::new(&[[1f32, 0.5, 2.0], [0.25, 1.0, -1.0]], &Device::Cpu)
}

/// Prints of each step its loss and its largest prediction.
pub(crate) fn explode(steps: u32) -> Result<()> {
    let mut model = Exploding::new()?;
    let x = inputs()?;
    for step in 1..=steps {
        let prediction = x.matmul(&model.weight)?.max_all()?;
        let loss = model.train_step(&x)?;
        let (loss, prediction) = (loss.to_scalar::<f32>()?, prediction.to_scalar::<f32>()?);
        println!("{step} {loss} {prediction}");
    }
    Ok(())
}

/// The same, going on after a panic.
pub(crate) fn caught(steps: u32) -> Result<()> {
    let work = std::panic::AssertUnwindSafe(|| explode(steps));
    match std::panic::catch_unwind(work) {
        Ok(done) => done?,
        Err(_) => println!("stopped"),
    }
    Ok(())
}

/// What two regions call: each layer is a hundred times as large as the one before.
#[profile_step(forward)]
fn through_layers(x: &Tensor, bad: bool) -> CandleResult<Tensor> {
    let mut x = x.clone();
    for at in 0..3 {
        let factor = if bad && at == 1 { f64::NAN } else { 100.0 };
        #[record_stats("hidden")]
        let hidden = (&x * factor)?;
        x = hidden;
    }
    Ok(x)
}

#[measured]
fn layers_step(x: &Tensor, bad: bool) -> CandleResult<Tensor> {
    through_layers(x, bad)
}

#[measured(infer)]
fn layers_evaluated(x: &Tensor) -> CandleResult<Tensor> {
    through_layers(&(x * 7.0)?, false)
}

/// One label for many tensors; in the last step but one the second of them goes bad.
pub(crate) fn layers(steps: u32) -> Result<()> {
    let x = Tensor::ones(4, DType::F32, &Device::Cpu)?;
    for step in 1..=steps {
        layers_evaluated(&x)?;
        layers_step(&(&x * f64::from(step))?, step + 1 == steps)?;
    }
    Ok(())
}

#[profile_step(forward)]
#[record_stats("masked")]
fn masked(scores: &Tensor, #[record_stats("mask")] mask: &Tensor) -> CandleResult<Tensor> {
    scores.broadcast_add(mask)
}

#[measured(infer)]
fn attend(scores: &Tensor, mask: &Tensor) -> CandleResult<Tensor> {
    let masked = masked(scores, mask)?;
    #[record_stats("weights")]
    let weights = candle_nn::ops::softmax(&masked, 1)?;
    #[record_stats("meant", allow_nonfinite)]
    let _meant = (weights.ones_like()? / weights.zeros_like()?)?;
    Ok(weights)
}

/// Attention with a causal mask, and a tensor whose infinities are meant.
pub(crate) fn masks(calls: u32) -> Result<()> {
    let mut rows = vec![0f32; 16];
    for (at, value) in rows.iter_mut().enumerate() {
        if at % 4 > at / 4 {
            *value = f32::NEG_INFINITY;
        }
    }
    let mask = Tensor::from_vec(rows, (4, 4), &Device::Cpu)?;
    let scores = Tensor::ones((4, 4), DType::F32, &Device::Cpu)?;
    for _ in 0..calls {
        attend(&scores, &mask)?;
    }
    Ok(())
}

/// Attention in which one position may see nothing: the softmax of a row of -inf is NaN.
pub(crate) fn masked_row(calls: u32) -> Result<()> {
    let mut mask = vec![0f32; 16];
    mask[4..8].fill(f32::NEG_INFINITY);
    let mask = Tensor::from_vec(mask, (4, 4), &Device::Cpu)?;
    let scores = Tensor::ones((4, 4), DType::F32, &Device::Cpu)?;
    for _ in 0..calls {
        attend(&scores, &mask)?.matmul(&scores)?;
    }
    Ok(())
}

/// An entropy whose probabilities reach zero: `0 · ln 0` is NaN, though neither factor is.
#[measured]
fn entropy_step(logits: &Var, scale: f64) -> CandleResult<Tensor> {
    #[record_stats("probabilities")]
    let p = candle_nn::ops::softmax(&(logits.as_tensor() * scale)?, 1)?;
    #[record_stats("logarithms")]
    let log = p.log()?;
    #[record_stats("products")]
    let products = (p * log)?;
    #[record_scalar("entropy")]
    let entropy = products.sum_all()?.neg()?;
    backward(&entropy)?;
    Ok(entropy)
}

/// The logits grow from step to step.
pub(crate) fn log_of_zero(steps: u32) -> Result<()> {
    let logits = Var::new(&[[0f32, 1.0], [2.0, -2.0]], &Device::Cpu)?;
    for step in 1..=steps {
        entropy_step(&logits, f64::from(step) * 10.0)?;
    }
    Ok(())
}

/// The loss scaler of mixed precision: a step whose gradients overflow leaves the optimizer out.
#[measured]
fn scaled_step(weight: &Var, scale: f64) -> CandleResult<()> {
    let loss = (weight.as_tensor().sqr()?.sum_all()? * scale)?;
    let _grads = backward(&loss)?;
    Ok(())
}

pub(crate) fn skipped(steps: u32) -> Result<()> {
    let weight = Var::new(&[1e-3f32, 2e-3], &Device::Cpu)?;
    name_vars("model", [("weight", &weight)]);
    for step in 1..=steps {
        scaled_step(&weight, if step == 2 { 1e45 } else { 1.0 })?;
    }
    Ok(())
}
