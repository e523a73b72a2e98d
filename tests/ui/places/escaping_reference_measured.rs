use candle_profiler::*;
#[measured]
fn t<'a>(a: &'a str, b: &str) -> &'a str {
    if a.is_empty() { b } else { a }
}

fn main() {}
