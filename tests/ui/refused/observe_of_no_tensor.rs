//! A field that holds no tensor, in a structure that is to be observed.

use candle_core::Tensor;
use candle_profiler::Observe;

struct Config;

#[derive(Observe)]
struct Output {
    logits: Tensor,
    config: Config,
}

fn main() {}
