//! Tells handwritten digits with weights that `digits` has saved; prints how many it tells right, and how fast.
//!
//! ```text
//! cargo run --release -p examples --bin inference
//! CANDLE_PROFILE=traces cargo run --release -p examples --bin inference
//! ```
//!
//! With the variable the first two calls are recorded: the first one, which pays for everything that is made once, and
//! the second, which shows what the others cost.

use std::time::Instant;

use anyhow::Result;
use candle_core::{DType, Device, Result as CandleResult, Tensor};
use candle_nn::{Linear, Module, VarBuilder, linear};
use candle_profiler::{measured, profile_step, record_stats};
use examples::Digits;

/// What `digits` saved at the end of its training.
const WEIGHTS: &[u8] = include_bytes!("../../data/digits.safetensors");

const BATCH: usize = 32;
const PASSES: usize = 100;

/// The network of `digits`, with layers that train no more.
struct Classifier {
    first: Linear,
    second: Linear,
    head: Linear,
}

impl Classifier {
    fn load(vb: VarBuilder) -> CandleResult<Self> {
        Ok(Self {
            first: linear(64, 64, vb.pp("first"))?,
            second: linear(64, 32, vb.pp("second"))?,
            head: linear(32, 10, vb.pp("head"))?,
        })
    }

    /// The logits, of shape (n, 10), of n digits.
    #[measured(infer, device = digits.images.device(), items = digits.len())]
    #[record_stats("logits")]
    fn infer(&self, digits: &Digits) -> CandleResult<Tensor> {
        let features = self.features(&digits.images)?;
        self.classify(&features)
    }

    #[profile_step(forward)]
    #[record_stats("features")]
    fn features(&self, images: &Tensor) -> CandleResult<Tensor> {
        let wide = self.first.forward(images)?.relu()?;
        self.second.forward(&wide)?.relu()
    }

    #[profile_step(forward)]
    fn classify(&self, features: &Tensor) -> CandleResult<Tensor> {
        self.head.forward(features)
    }
}

fn main() -> Result<()> {
    let device = Device::Cpu;
    let (_, held_out) = Digits::load(&device)?.split()?;
    let classifier = Classifier::load(VarBuilder::from_slice_safetensors(
        WEIGHTS,
        DType::F32,
        &device,
    )?)?;

    let rows: Vec<u32> = (0..held_out.len() as u32).collect();
    let batches = rows
        .chunks(BATCH)
        .map(|rows| held_out.select(rows))
        .collect::<CandleResult<Vec<_>>>()?;

    let start = Instant::now();
    let mut right = 0;
    for _ in 0..PASSES {
        for batch in &batches {
            right += batch.count_right(&classifier.infer(batch)?)?;
        }
    }
    let seen = (PASSES * held_out.len()) as f64;
    println!("accuracy: {:.2} %", 100.0 * right as f64 / seen);
    println!(
        "throughput: {:.0} digits/s",
        seen / start.elapsed().as_secs_f64()
    );
    Ok(())
}
