use candle_profiler::*;
#[profile_step(forward, ops)]
fn m() -> &'static str {
    let s = String::new();
    &s
}

fn main() {}
