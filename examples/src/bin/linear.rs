//! The example of the README.

use candle_core::{Device, Result, Tensor, Var};
use candle_nn::{AdamW, Optimizer, ParamsAdamW};
use candle_profiler::{measured, profile_step, record_scalar, record_stats};

#[profile_step(forward)]
#[record_stats("prediction")]
fn forward(x: &Tensor, weight: &Var) -> Result<Tensor> {
    x.matmul(weight)?.relu()
}

#[measured(items = 256)]
fn train_step(x: &Tensor, y: &Tensor, weight: &Var, optimizer: &mut AdamW) -> Result<()> {
    #[record_scalar("loss")]
    let loss = (forward(x, weight)? - y)?.sqr()?.mean_all()?;
    candle_profiler::backward_step(optimizer, &loss)
}

fn main() -> Result<()> {
    let x = Tensor::arange(0f32, 256. * 64., &Device::Cpu)?
        .reshape((256, 64))?
        .sin()?;
    let weight = Var::from_tensor(&Tensor::full(0.1f32, (64, 16), &Device::Cpu)?)?;
    let y = x.narrow(1, 0, 16)?;
    let mut optimizer = AdamW::new(vec![weight.clone()], ParamsAdamW::default())?;
    (0..10).try_for_each(|_| train_step(&x, &y, &weight, &mut optimizer))
}
