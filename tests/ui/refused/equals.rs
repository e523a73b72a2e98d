use candle_profiler::*;

#[measured = "x"]
pub fn f() {}

fn main() {}
