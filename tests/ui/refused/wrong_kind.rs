use candle_profiler::*;

#[profile_span(kind = layer)]
pub fn f() {}

fn main() {}
