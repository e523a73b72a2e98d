//! Trains a small network on handwritten digits; prints its accuracy on digits that it never saw.
//!
//! ```text
//! cargo run --release -p examples --bin digits
//! CANDLE_PROFILE=traces cargo run --release -p examples --bin digits
//! ```
//!
//! The first line trains. The second does so too, and records training step 2: which function took how long, what the
//! activations look like, the loss. For that the functions below carry attributes; nothing else is different.
//! `CANDLE_PROFILE_STEPS=100,200` records other steps. A path as argument saves the weights there.

use anyhow::Result;
use candle_core::backprop::GradStore;
use candle_core::{DType, Device, Result as CandleResult, Tensor};
use candle_nn::{AdamW, Linear, Module, Optimizer, VarBuilder, VarMap, linear, loss};
use candle_profiler::{measured, profile_step, record_scalar, record_stats};
use examples::{Digits, Random, init_weights};
use indicatif::{ProgressBar, ProgressStyle};

const SEED: u64 = 42;
const EPOCHS: usize = 40;
const BATCH: usize = 32;
const LEARNING_RATE: f64 = 2e-3;

/// A linear layer with a ReLU behind it.
struct Layer {
    linear: Linear,
}

impl Layer {
    fn new(inputs: usize, outputs: usize, vb: VarBuilder) -> CandleResult<Self> {
        Ok(Self {
            linear: linear(inputs, outputs, vb)?,
        })
    }

    // `{#}` counts the calls of one forward pass: the layers are told apart as `layer 0` and `layer 1`.
    #[profile_step(forward, name = "layer {#}", kind = module)]
    fn forward(&self, x: &Tensor) -> CandleResult<Tensor> {
        let sums = self.linear.forward(x)?;
        activate(&sums)
    }
}

#[profile_step(forward, kind = op)]
fn activate(sums: &Tensor) -> CandleResult<Tensor> {
    sums.relu()
}

/// 64 pixels in, two hidden layers, the logits of ten digits out.
struct Model {
    first: Layer,
    second: Layer,
    head: Linear,
}

impl Model {
    fn new(vb: VarBuilder) -> CandleResult<Self> {
        Ok(Self {
            first: Layer::new(64, 64, vb.pp("first"))?,
            second: Layer::new(64, 32, vb.pp("second"))?,
            head: linear(32, 10, vb.pp("head"))?,
        })
    }

    #[profile_step(forward)]
    #[record_stats("logits")]
    fn forward(&self, #[record_stats(images)] images: &Tensor) -> CandleResult<Tensor> {
        // Inside an annotated function, a parameter or a `let` may carry an attribute of its own.
        #[record_stats(wide)]
        let wide = self.first.forward(images)?;
        #[record_stats(narrow)]
        let narrow = self.second.forward(&wide)?;
        self.classify(&narrow)
    }

    #[profile_step(forward, kind = module)]
    fn classify(&self, hidden: &Tensor) -> CandleResult<Tensor> {
        self.head.forward(hidden)
    }

    /// The share of `digits` that the model tells right, in percent.
    fn accuracy(&self, digits: &Digits) -> CandleResult<f64> {
        let right = digits.count_right(&self.forward(&digits.images)?)?;
        Ok(100.0 * right as f64 / digits.len() as f64)
    }
}

/// The model and what changes it.
struct Trainer {
    model: Model,
    optimizer: AdamW,
}

impl Trainer {
    // One call is one step: this is what gets measured. `device` goes into the trace (a `Tensor` among the arguments
    // would tell it unasked); `items` makes digits a second of the time in the summary.
    #[measured(items = batch.len(), device = &batch.images)]
    fn train_step(&mut self, batch: &Digits) -> CandleResult<f32> {
        let logits = self.model.forward(&batch.images)?;
        let loss = self.loss(&logits, &batch.labels)?;
        let gradients = self.backward(&loss)?;
        self.update(&gradients)?;
        loss.to_scalar()
    }

    #[profile_step(forward)]
    #[record_scalar("loss")]
    fn loss(&self, logits: &Tensor, labels: &Tensor) -> CandleResult<Tensor> {
        loss::cross_entropy(logits, labels)
    }

    #[profile_step(backward)]
    fn backward(&self, loss: &Tensor) -> CandleResult<GradStore> {
        loss.backward()
    }

    #[profile_step(optimizer)]
    fn update(&mut self, gradients: &GradStore) -> CandleResult<()> {
        self.optimizer.step(gradients)
    }
}

fn main() -> Result<()> {
    let device = Device::Cpu;
    let (training, held_out) = Digits::load(&device)?.split()?;

    let mut random = Random::new(SEED);
    let mut vars = VarMap::new();
    let model = Model::new(VarBuilder::from_varmap(&vars, DType::F32, &device))?;
    init_weights(&mut vars, &mut random)?;
    let optimizer = AdamW::new_lr(vars.all_vars(), LEARNING_RATE)?;
    let mut trainer = Trainer { model, optimizer };

    let mut rows: Vec<u32> = (0..training.len() as u32).collect();
    let bar = progress_bar(EPOCHS * rows.len().div_ceil(BATCH))?;
    for _epoch in 0..EPOCHS {
        random.shuffle(&mut rows);
        for batch in rows.chunks(BATCH) {
            let batch = training.select(batch)?;
            let loss = trainer.train_step(&batch)?;
            bar.set_message(format!("loss {loss:.4}"));
            bar.inc(1);
        }
    }
    bar.finish_and_clear();

    if let Some(path) = std::env::args_os().nth(1) {
        vars.save(path)?;
    }
    println!("accuracy: {:.2} %", trainer.model.accuracy(&held_out)?);
    Ok(())
}

/// A bar on stderr; nothing at all where stderr is no terminal.
fn progress_bar(steps: usize) -> Result<ProgressBar> {
    let style = ProgressStyle::with_template("step {pos}/{len} {bar:40} {msg}, {eta} left")?;
    Ok(ProgressBar::new(steps as u64).with_style(style))
}
