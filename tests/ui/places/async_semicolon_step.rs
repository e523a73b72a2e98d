use candle_profiler::*;
#[profile_step(forward)]
async fn h() -> i32 {
    1;
}

fn main() {}
