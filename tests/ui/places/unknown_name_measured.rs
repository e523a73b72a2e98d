use candle_profiler::*;
#[measured]
fn v(x: u32) -> u32 {
    x + y
}

fn main() {}
