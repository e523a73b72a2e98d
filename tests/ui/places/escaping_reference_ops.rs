use candle_profiler::*;
#[profile_step(forward, ops)]
fn t<'a>(a: &'a str, b: &str) -> &'a str {
    if a.is_empty() { b } else { a }
}

fn main() {}
