//! The training step with candle-profiler's attributes: 8 spans, 9 statistics.

use candle_core::backprop::GradStore;
use candle_core::{Result, Tensor};
use candle_nn::{AdamW, Linear, Module, Optimizer, VarBuilder, linear, loss};
use candle_profiler::{measured, profile_step, record_stats};
use examples::Digits;

struct Layer {
    linear: Linear,
}

impl Layer {
    fn new(inputs: usize, outputs: usize, vb: VarBuilder) -> Result<Self> {
        let linear = linear(inputs, outputs, vb)?;
        Ok(Self { linear })
    }

    #[profile_step(forward, name = "layer {#}", kind = module)]
    #[record_stats("active")]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        #[record_stats("sums")]
        let sums = self.linear.forward(x)?;
        sums.relu()
    }
}

/// The model of the digits example.
struct Model {
    first: Layer,
    second: Layer,
    head: Linear,
}

impl Model {
    fn new(vb: VarBuilder) -> Result<Self> {
        Ok(Self {
            first: Layer::new(64, 64, vb.pp("first"))?,
            second: Layer::new(64, 32, vb.pp("second"))?,
            head: linear(32, 10, vb.pp("head"))?,
        })
    }

    #[profile_step(forward)]
    #[record_stats("logits")]
    fn forward(&self, #[record_stats("images")] images: &Tensor) -> Result<Tensor> {
        let wide = self.first.forward(images)?;
        let narrow = self.second.forward(&wide)?;
        self.classify(&narrow)
    }

    #[profile_step(forward, kind = module)]
    fn classify(&self, #[record_stats("hidden")] hidden: &Tensor) -> Result<Tensor> {
        self.head.forward(hidden)
    }
}

pub(crate) struct Trainer {
    model: Model,
    optimizer: AdamW,
}

impl Trainer {
    pub(crate) fn new(vb: VarBuilder, optimizer: AdamW) -> Result<Self> {
        let model = Model::new(vb)?;
        Ok(Self { model, optimizer })
    }

    #[measured(device = &batch.images)]
    pub(crate) fn step(&mut self, batch: &Digits) -> Result<()> {
        let logits = self.model.forward(&batch.images)?;
        let loss = self.loss(&logits, &batch.labels)?;
        let gradients = self.backward(&loss)?;
        self.update(&gradients)
    }

    #[profile_step(forward)]
    #[record_stats("loss")]
    fn loss(&self, logits: &Tensor, #[record_stats("labels")] labels: &Tensor) -> Result<Tensor> {
        loss::cross_entropy(logits, labels)
    }

    #[profile_step(backward)]
    fn backward(&self, loss: &Tensor) -> Result<GradStore> {
        loss.backward()
    }

    #[profile_step(optimizer)]
    fn update(&mut self, gradients: &GradStore) -> Result<()> {
        self.optimizer.step(gradients)
    }
}
