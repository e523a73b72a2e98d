use candle_profiler::*;
#[measured]
fn s(a: &str, b: &str) -> &str {
    if a.is_empty() { b } else { a }
}

fn main() {}
