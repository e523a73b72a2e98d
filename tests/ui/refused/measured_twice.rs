use candle_profiler::*;

#[measured]
#[measured(infer)]
pub fn f() {}

fn main() {}
