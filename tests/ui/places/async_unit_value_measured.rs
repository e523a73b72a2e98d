use candle_profiler::*;
#[measured]
async fn k() {
    5u8
}

fn main() {}
