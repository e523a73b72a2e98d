use candle_profiler::*;

#[profile_span(name = "layer x}")]
pub fn f() {}

fn main() {}
