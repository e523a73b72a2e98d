//! A multi-layer perceptron that learns which half of its input is larger, the same at every run.

use candle_core::{D, DType, Device, Result, Tensor, Var};
use candle_nn::{AdamW, Optimizer, ParamsAdamW, loss};
use candle_profiler::{measured, profile_step, record_scalar, record_stats};

const INPUTS: usize = 8;
const HIDDEN: usize = 16;
const CLASSES: usize = 2;
const BATCH: usize = 12;

/// Numbers between -1 and 1, always the same.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> f32 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let bits = u16::try_from(self.0 >> 48).unwrap_or_default();
        f32::from(bits) / 32_768.0 - 1.0
    }

    fn tensor(&mut self, shape: (usize, usize), scale: f32) -> Result<Tensor> {
        let numbers: Vec<f32> = (0..shape.0 * shape.1)
            .map(|_| self.next() * scale)
            .collect();
        Tensor::from_vec(numbers, shape, &Device::Cpu)
    }
}

/// One layer.
struct Linear {
    weight: Var,
    bias: Var,
}

impl Linear {
    fn new(numbers: &mut Numbers, inputs: usize, outputs: usize) -> Result<Self> {
        Ok(Self {
            weight: Var::from_tensor(&numbers.tensor((inputs, outputs), 0.5)?)?,
            bias: Var::zeros(outputs, DType::F32, &Device::Cpu)?,
        })
    }

    #[candle_profiler::profile_span(kind = module)]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.matmul(&self.weight)?.broadcast_add(&self.bias)
    }
}

/// The model.
pub(crate) struct Model {
    first: Linear,
    second: Linear,
}

impl Model {
    pub(crate) fn new() -> Result<Self> {
        let mut numbers = Numbers(7);
        Ok(Self {
            first: Linear::new(&mut numbers, INPUTS, HIDDEN)?,
            second: Linear::new(&mut numbers, HIDDEN, CLASSES)?,
        })
    }

    fn variables(&self) -> Vec<Var> {
        [&self.first, &self.second]
            .into_iter()
            .flat_map(|layer| [layer.weight.clone(), layer.bias.clone()])
            .collect()
    }

    #[profile_step(forward)]
    #[record_stats("logits")]
    pub(crate) fn forward(&self, #[record_stats("input")] x: &Tensor) -> Result<Tensor> {
        #[record_stats]
        let hidden = self.first.forward(x)?.relu()?;
        self.second.forward(&hidden)
    }

    /// The bits of all weights, as hex.
    pub(crate) fn fingerprint(&self) -> Result<String> {
        let mut text = String::new();
        for variable in self.variables() {
            for value in variable.flatten_all()?.to_vec1::<f32>()? {
                text.push_str(&format!("{:08x}", value.to_bits()));
            }
        }
        Ok(text)
    }
}

/// A model, its optimizer, and the data of each step.
pub(crate) struct Training {
    pub(crate) model: Model,
    optimizer: AdamW,
    numbers: Numbers,
}

impl Training {
    pub(crate) fn new() -> Result<Self> {
        let model = Model::new()?;
        let optimizer = AdamW::new(model.variables(), ParamsAdamW::default())?;
        Ok(Self {
            model,
            optimizer,
            numbers: Numbers(11),
        })
    }

    /// Inputs and classes of the next step.
    pub(crate) fn batch(&mut self) -> Result<(Tensor, Tensor)> {
        let x = self.numbers.tensor((BATCH, INPUTS), 1.0)?;
        let halves = x.reshape((BATCH, 2, INPUTS / 2))?.sum(D::Minus1)?;
        let classes = halves.argmax(D::Minus1)?.to_dtype(DType::U32)?;
        Ok((x, classes))
    }

    #[profile_step(backward)]
    fn backward(&self, loss: &Tensor) -> Result<candle_core::backprop::GradStore> {
        loss.backward()
    }

    #[profile_step(optimizer)]
    fn update(&mut self, grads: &candle_core::backprop::GradStore) -> Result<()> {
        self.optimizer.step(grads)
    }

    /// One step; gives the loss.
    #[record_scalar("loss")]
    pub(crate) fn learn(&mut self, x: &Tensor, classes: &Tensor) -> Result<Tensor> {
        let logits = self.model.forward(x)?;
        let loss = loss::cross_entropy(&logits, classes)?;
        let grads = self.backward(&loss)?;
        self.update(&grads)?;
        Ok(loss)
    }
}

/// One measured training step.
#[measured]
pub(crate) fn train_step(training: &mut Training, x: &Tensor, classes: &Tensor) -> Result<Tensor> {
    training.learn(x, classes)
}

/// One measured inference call.
#[measured(infer)]
pub(crate) fn predict(model: &Model, x: &Tensor) -> Result<Tensor> {
    model.forward(x)?.argmax(D::Minus1)
}
