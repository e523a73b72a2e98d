use candle_profiler::*;
#[profile_step(forward, ops)]
fn i() -> i32 {
    1;
}

fn main() {}
