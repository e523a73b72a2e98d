use candle_profiler::*;
#[profile_step(forward)]
fn f() -> String {
    ""
}

fn main() {}
