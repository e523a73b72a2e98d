use candle_profiler::*;

#[profile_step(forward)]
#[profile_span]
pub fn f() {}

fn main() {}
