use candle_profiler::*;
#[measured]
async fn l() -> impl std::fmt::Display {
    ("",)
}

fn main() {}
