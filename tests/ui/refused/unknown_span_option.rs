use candle_profiler::*;

#[profile_step(forward, label = "x")]
pub fn f() {}

fn main() {}
