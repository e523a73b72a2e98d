use candle_profiler::*;
#[measured]
fn l() -> impl std::fmt::Display {
    ("",)
}

fn main() {}
