use candle_profiler::*;

#[measured(name = "a")]
#[profile_step(forward, name = "b")]
pub fn f() {}

fn main() {}
