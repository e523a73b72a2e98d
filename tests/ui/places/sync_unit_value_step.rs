use candle_profiler::*;
#[profile_step(forward)]
fn k(_b: bool) {
    5u8
}

fn main() {}
