use candle_profiler::*;
#[measured]
async fn h() -> i32 {
    1;
}

fn main() {}
