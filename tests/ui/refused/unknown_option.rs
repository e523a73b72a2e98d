use candle_profiler::*;

#[measured(nmae = "x")]
pub fn f() {}

fn main() {}
