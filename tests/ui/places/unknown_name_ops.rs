use candle_profiler::*;
#[profile_step(forward, ops)]
fn v(x: u32) -> u32 {
    x + y
}

fn main() {}
