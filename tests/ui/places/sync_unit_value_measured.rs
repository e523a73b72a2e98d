use candle_profiler::*;
#[measured]
fn k(_b: bool) {
    5u8
}

fn main() {}
