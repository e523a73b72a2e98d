//! `start_with` without candle-profiler.

use candle_core::{Device, Result, Tensor};

#[inline(never)]
fn step(x: u64) -> Result<f64> {
    Tensor::new(x as f64, &Device::Cpu)?.sqrt()?.to_scalar()
}

fn train(steps: u64) -> Result<f64> {
    (0..steps).map(step).sum()
}

fn main() {
    // One argument a step: without any, none is made.
    let steps = std::env::args_os().skip(1).count() as u64;
    if steps == 0 {
        std::process::exit(0);
    }
    std::process::exit(i32::from(train(steps).is_err()));
}
