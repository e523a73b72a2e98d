use candle_profiler::*;

#[profile_step(sideways)]
pub fn f() {}

fn main() {}
