use candle_profiler::*;
#[profile_step(forward, ops)]
fn s(a: &str, b: &str) -> &str {
    if a.is_empty() { b } else { a }
}

fn main() {}
