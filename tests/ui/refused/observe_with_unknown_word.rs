//! A word that `observe` does not know.

use candle_core::Tensor;
use candle_profiler::Observe;

#[derive(Observe)]
struct Output {
    #[observe(ignore)]
    logits: Tensor,
}

fn main() {}
