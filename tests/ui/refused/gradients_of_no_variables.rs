//! `vars` is no list of variables.

use candle_core::backprop::GradStore;
use candle_core::{Result, Tensor};
use candle_profiler::record_gradients;

#[record_gradients(vars = count)]
fn backward(loss: &Tensor, count: &u32) -> Result<GradStore> {
    loss.backward()
}

fn main() {}
