use candle_profiler::*;
#[profile_step(forward)]
fn v(x: u32) -> u32 {
    x + y
}

fn main() {}
