use candle_profiler::*;
#[profile_step(forward)]
fn i() -> i32 {
    1;
}

fn main() {}
