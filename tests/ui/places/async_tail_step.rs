use candle_profiler::*;
#[profile_step(forward)]
async fn g() -> String {
    ""
}

fn main() {}
