use candle_profiler::*;
#[profile_step(forward, ops)]
fn f() -> String {
    ""
}

fn main() {}
