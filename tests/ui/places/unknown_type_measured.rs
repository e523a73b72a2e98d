use candle_profiler::*;
#[measured]
fn n(x: u32) -> Missing {
    x
}

fn main() {}
