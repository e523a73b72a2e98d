//! Trains a small transformer on handwritten digits, with candle's layers as they are: then the graph is cut, and most
//! of the network does not learn. The profiler says where, and what to write instead; with `--fixed` that is done.
//!
//! ```text
//! CANDLE_PROFILE=traces cargo run --release -p examples --bin transformer
//! CANDLE_PROFILE=traces cargo run --release -p examples --bin transformer -- --fixed
//! ```
//!
//! Neither candle nor the loss says a word of it: `LayerNorm` and `softmax_last_dim` have fast paths without a backward
//! pass, and the loss falls anyway, since the last layer goes on learning. `--epochs 2` trains shorter.

use anyhow::{Context, Result, bail};
use candle_core::{D, DType, Device, Result as CandleResult, Tensor};
use candle_nn::ops::{layer_norm_slow, softmax, softmax_last_dim};
use candle_nn::{
    AdamW, LayerNorm, Linear, Module, VarBuilder, VarMap, layer_norm, linear, linear_no_bias, loss,
};
use candle_profiler::{
    backward_step, measured, name_vars, profile_step, record_scalar, record_stats,
};
use examples::{Digits, Random, init_weights};

const SEED: u64 = 7;
const BATCH: usize = 16;
const LEARNING_RATE: f64 = 3e-3;
/// An image of 8 × 8 pixels is 16 patches of 2 × 2.
const PATCHES: usize = 16;
const PIXELS: usize = 4;
const WIDTH: usize = 32;
const HEADS: usize = 4;
const BLOCKS: usize = 2;
const EPSILON: f64 = 1e-5;

/// Layer norm, with or without a backward pass.
struct Norm {
    layer: LayerNorm,
    fixed: bool,
}

impl Norm {
    fn new(fixed: bool, vb: VarBuilder) -> CandleResult<Self> {
        let layer = layer_norm(WIDTH, EPSILON, vb)?;
        Ok(Self { layer, fixed })
    }

    #[profile_step(forward, kind = module)]
    fn forward(&self, x: &Tensor) -> CandleResult<Tensor> {
        match (self.fixed, self.layer.bias()) {
            (true, Some(bias)) => layer_norm_slow(x, self.layer.weight(), bias, EPSILON as f32),
            _ => self.layer.forward(x),
        }
    }
}

/// Each patch looks at all patches.
struct Attention {
    query_key_value: Linear,
    output: Linear,
    fixed: bool,
}

impl Attention {
    fn new(fixed: bool, vb: VarBuilder) -> CandleResult<Self> {
        Ok(Self {
            query_key_value: linear_no_bias(WIDTH, 3 * WIDTH, vb.pp("query_key_value"))?,
            output: linear(WIDTH, WIDTH, vb.pp("output"))?,
            fixed,
        })
    }

    #[profile_step(forward, kind = module)]
    fn forward(&self, x: &Tensor) -> CandleResult<Tensor> {
        let batch = x.dim(0)?;
        let heads = self
            .query_key_value
            .forward(x)?
            .reshape((batch, PATCHES, 3 * HEADS, WIDTH / HEADS))?
            .transpose(1, 2)?
            .contiguous()?;
        let part = |at: usize| heads.narrow(1, at * HEADS, HEADS)?.contiguous();
        let (query, key, value) = (part(0)?, part(1)?, part(2)?);
        let scores = query.matmul(&key.t()?)? / ((WIDTH / HEADS) as f64).sqrt();
        let seen = self.weigh(&scores?)?.matmul(&value)?;
        let seen = seen.transpose(1, 2)?.reshape((batch, PATCHES, WIDTH))?;
        self.output.forward(&seen)
    }

    #[profile_step(forward, kind = op)]
    fn weigh(&self, scores: &Tensor) -> CandleResult<Tensor> {
        if self.fixed {
            softmax(scores, D::Minus1)
        } else {
            softmax_last_dim(scores)
        }
    }
}

/// Attention and two linear layers, each with a norm before it and added to what it was given.
struct Block {
    norm1: Norm,
    attention: Attention,
    norm2: Norm,
    wide: Linear,
    narrow: Linear,
}

impl Block {
    fn new(fixed: bool, vb: VarBuilder) -> CandleResult<Self> {
        Ok(Self {
            norm1: Norm::new(fixed, vb.pp("norm1"))?,
            attention: Attention::new(fixed, vb.pp("attention"))?,
            norm2: Norm::new(fixed, vb.pp("norm2"))?,
            wide: linear(WIDTH, 2 * WIDTH, vb.pp("wide"))?,
            narrow: linear(2 * WIDTH, WIDTH, vb.pp("narrow"))?,
        })
    }

    #[profile_step(forward, name = "block {#}", kind = module)]
    fn forward(&self, x: &Tensor) -> CandleResult<Tensor> {
        let x = (x + self.attention.forward(&self.norm1.forward(x)?)?)?;
        let wide = self.wide.forward(&self.norm2.forward(&x)?)?.gelu()?;
        &x + self.narrow.forward(&wide)?
    }
}

struct Model {
    embedding: Linear,
    positions: Tensor,
    blocks: Vec<Block>,
    norm: Norm,
    head: Linear,
}

impl Model {
    fn new(fixed: bool, vb: VarBuilder) -> CandleResult<Self> {
        let block = |at: usize| Block::new(fixed, vb.pp(format!("blocks.{at}")));
        Ok(Self {
            embedding: linear(PIXELS, WIDTH, vb.pp("embedding"))?,
            positions: vb.get((PATCHES, WIDTH), "positions")?,
            blocks: (0..BLOCKS).map(block).collect::<CandleResult<_>>()?,
            norm: Norm::new(fixed, vb.pp("norm"))?,
            head: linear(WIDTH, 10, vb.pp("head"))?,
        })
    }

    #[profile_step(forward)]
    #[record_stats("logits")]
    fn forward(&self, images: &Tensor) -> CandleResult<Tensor> {
        let patches = patches(images)?;
        let mut x = self
            .embedding
            .forward(&patches)?
            .broadcast_add(&self.positions)?;
        for block in &self.blocks {
            x = block.forward(&x)?;
        }
        self.head.forward(&self.norm.forward(&x)?.mean(1)?)
    }

    /// The share of `digits` that the model tells right, in percent.
    fn accuracy(&self, digits: &Digits) -> CandleResult<f64> {
        let right = digits.count_right(&self.forward(&digits.images)?)?;
        Ok(100.0 * right as f64 / digits.len() as f64)
    }
}

/// (batch, 64) pixels as (batch, 16, 4): four by four patches of two by two.
fn patches(images: &Tensor) -> CandleResult<Tensor> {
    images
        .reshape(((), 4, 2, 4, 2))?
        .transpose(2, 3)?
        .reshape(((), PATCHES, PIXELS))
}

#[measured(items = batch.len(), device = &batch.images)]
fn train_step(model: &Model, optimizer: &mut AdamW, batch: &Digits) -> CandleResult<f32> {
    let logits = model.forward(&batch.images)?;
    #[record_scalar("loss")]
    let loss = loss::cross_entropy(&logits, &batch.labels)?;
    backward_step(optimizer, &loss)?;
    loss.to_scalar()
}

fn main() -> Result<()> {
    let (fixed, epochs) = options()?;
    let device = Device::Cpu;
    let (training, held_out) = Digits::load(&device)?.split()?;

    let mut random = Random::new(SEED);
    let mut vars = VarMap::new();
    let model = Model::new(fixed, VarBuilder::from_varmap(&vars, DType::F32, &device))?;
    init_weights(&mut vars, &mut random)?;
    // What has no gradient is told by these names.
    name_vars("", vars.data());
    let mut optimizer = candle_nn::Optimizer::new(
        vars.all_vars(),
        candle_nn::ParamsAdamW {
            lr: LEARNING_RATE,
            ..Default::default()
        },
    )?;

    let mut rows: Vec<u32> = (0..training.len() as u32).collect();
    for _epoch in 0..epochs {
        random.shuffle(&mut rows);
        for batch in rows.chunks(BATCH) {
            train_step(&model, &mut optimizer, &training.select(batch)?)?;
        }
    }
    println!("accuracy: {:.2} %", model.accuracy(&held_out)?);
    Ok(())
}

/// `--fixed` and `--epochs N`.
fn options() -> Result<(bool, usize)> {
    let (mut fixed, mut epochs) = (false, 12);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--fixed" => fixed = true,
            "--epochs" => {
                let number = arguments.next().context("--epochs needs a number")?;
                epochs = number.parse().context("--epochs needs a number")?;
            }
            other => bail!("{other:?} is not understood; allowed are `--fixed` and `--epochs N`"),
        }
    }
    Ok((fixed, epochs))
}
