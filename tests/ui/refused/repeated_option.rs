use candle_profiler::*;

#[profile_span(name = "a", name = "b")]
pub fn f() {}

fn main() {}
