use candle_profiler::*;
#[measured]
async fn g() -> String {
    ""
}

fn main() {}
