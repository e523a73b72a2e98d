//! The training step without anything of a profiler's.

use candle_core::backprop::GradStore;
use candle_core::{Result, Tensor};
use candle_nn::{AdamW, Linear, Module, Optimizer, VarBuilder, linear, loss};
use examples::Digits;

struct Layer {
    linear: Linear,
}

impl Layer {
    fn new(inputs: usize, outputs: usize, vb: VarBuilder) -> Result<Self> {
        let linear = linear(inputs, outputs, vb)?;
        Ok(Self { linear })
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.linear.forward(x)?.relu()
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

    fn forward(&self, images: &Tensor) -> Result<Tensor> {
        let wide = self.first.forward(images)?;
        let narrow = self.second.forward(&wide)?;
        self.classify(&narrow)
    }

    fn classify(&self, hidden: &Tensor) -> Result<Tensor> {
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

    pub(crate) fn step(&mut self, batch: &Digits) -> Result<()> {
        let logits = self.model.forward(&batch.images)?;
        let loss = self.loss(&logits, &batch.labels)?;
        let gradients = self.backward(&loss)?;
        self.update(&gradients)
    }

    fn loss(&self, logits: &Tensor, labels: &Tensor) -> Result<Tensor> {
        loss::cross_entropy(logits, labels)
    }

    fn backward(&self, loss: &Tensor) -> Result<GradStore> {
        loss.backward()
    }

    fn update(&mut self, gradients: &GradStore) -> Result<()> {
        self.optimizer.step(gradients)
    }
}
