use candle_profiler::*;
#[measured]
fn i() -> i32 {
    1;
}

fn main() {}
