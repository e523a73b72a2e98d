//! The training step with the same spans and statistics written by hand, with candle-graph.

use anyhow::Result;
use candle_core::Tensor;
use candle_core::backprop::GradStore;
use candle_graph::instrument::SpanGuard;
use candle_graph::{ExecutionStep, SpanKind, TraceSession};
use candle_nn::{AdamW, Linear, Module, Optimizer, VarBuilder, linear, loss};
use examples::Digits;

/// The session and what it is asked for.
#[derive(Clone, Copy)]
pub(crate) struct Tracing<'a> {
    pub(crate) session: &'a TraceSession,
    pub(crate) statistics: bool,
}

impl<'a> Tracing<'a> {
    fn span(self, name: &str, kind: SpanKind, step: ExecutionStep) -> SpanGuard<'a> {
        self.session.begin_step_span(name, step, kind)
    }

    fn statistics(self, span: &SpanGuard<'_>, label: &str, tensor: &Tensor) -> Result<()> {
        if self.statistics {
            self.session.record_tensor_stats(span.id(), label, tensor)?;
        }
        Ok(())
    }
}

struct Layer {
    linear: Linear,
}

impl Layer {
    fn new(inputs: usize, outputs: usize, vb: VarBuilder) -> Result<Self> {
        let linear = linear(inputs, outputs, vb)?;
        Ok(Self { linear })
    }

    fn forward(&self, x: &Tensor, name: &str, tracing: Tracing<'_>) -> Result<Tensor> {
        let span = tracing.span(name, SpanKind::Module, ExecutionStep::Forward);
        let sums = self.linear.forward(x)?;
        tracing.statistics(&span, "sums", &sums)?;
        let active = sums.relu()?;
        tracing.statistics(&span, "active", &active)?;
        Ok(active)
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

    fn forward(&self, images: &Tensor, tracing: Tracing<'_>) -> Result<Tensor> {
        let span = tracing.span("forward", SpanKind::Function, ExecutionStep::Forward);
        tracing.statistics(&span, "images", images)?;
        let wide = self.first.forward(images, "layer 0", tracing)?;
        let narrow = self.second.forward(&wide, "layer 1", tracing)?;
        let logits = self.classify(&narrow, tracing)?;
        tracing.statistics(&span, "logits", &logits)?;
        Ok(logits)
    }

    fn classify(&self, hidden: &Tensor, tracing: Tracing<'_>) -> Result<Tensor> {
        let span = tracing.span("classify", SpanKind::Module, ExecutionStep::Forward);
        tracing.statistics(&span, "hidden", hidden)?;
        Ok(self.head.forward(hidden)?)
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

    pub(crate) fn step(&mut self, batch: &Digits, tracing: Tracing<'_>) -> Result<()> {
        let _span = tracing.session.begin_span("step", SpanKind::Function);
        let logits = self.model.forward(&batch.images, tracing)?;
        let loss = self.loss(&logits, &batch.labels, tracing)?;
        let gradients = self.backward(&loss, tracing)?;
        self.update(&gradients, tracing)
    }

    fn loss(&self, logits: &Tensor, labels: &Tensor, tracing: Tracing<'_>) -> Result<Tensor> {
        let span = tracing.span("loss", SpanKind::Function, ExecutionStep::Forward);
        tracing.statistics(&span, "labels", labels)?;
        let loss = loss::cross_entropy(logits, labels)?;
        tracing.statistics(&span, "loss", &loss)?;
        Ok(loss)
    }

    fn backward(&self, loss: &Tensor, tracing: Tracing<'_>) -> Result<GradStore> {
        let _span = tracing.span("backward", SpanKind::Function, ExecutionStep::Backward);
        Ok(loss.backward()?)
    }

    fn update(&mut self, gradients: &GradStore, tracing: Tracing<'_>) -> Result<()> {
        let _span = tracing.span("update", SpanKind::Function, ExecutionStep::Optimizer);
        Ok(self.optimizer.step(gradients)?)
    }
}
