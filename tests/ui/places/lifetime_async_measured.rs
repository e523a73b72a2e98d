use candle_profiler::*;
#[measured]
async fn u<'a>(a: &'a str, b: &str) -> &'a str {
    if a.is_empty() { b } else { a }
}

fn main() {}
