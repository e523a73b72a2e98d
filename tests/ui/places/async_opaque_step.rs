use candle_profiler::*;
#[profile_step(forward)]
async fn l() -> impl std::fmt::Display {
    ("",)
}

fn main() {}
