use candle_profiler::*;
#[profile_step(forward)]
fn l() -> impl std::fmt::Display {
    ("",)
}

fn main() {}
