use candle_profiler::*;
#[profile_step(forward)]
async fn k() {
    5u8
}

fn main() {}
