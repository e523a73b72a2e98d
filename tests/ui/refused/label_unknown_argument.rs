use candle_profiler::*;

#[profile_span(name = "layer {y}")]
pub fn f() {}

fn main() {}
