use candle_profiler::*;
#[profile_step(forward)]
fn m() -> &'static str {
    let s = String::new();
    &s
}

fn main() {}
