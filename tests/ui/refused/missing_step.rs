use candle_profiler::*;

#[profile_step]
pub fn f() {}

fn main() {}
