use candle_profiler::*;

#[profile_span(name = "layer {}")]
pub fn f() {}

fn main() {}
