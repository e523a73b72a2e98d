//! An option that `record_gradients` does not know.

use candle_core::backprop::GradStore;
use candle_core::{Result, Tensor};
use candle_profiler::record_gradients;

#[record_gradients(variables = vars)]
fn backward(loss: &Tensor, vars: &[Tensor]) -> Result<GradStore> {
    loss.backward()
}

fn main() {}
