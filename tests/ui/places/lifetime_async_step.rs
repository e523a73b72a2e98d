use candle_profiler::*;
#[profile_step(forward)]
async fn u<'a>(a: &'a str, b: &str) -> &'a str {
    if a.is_empty() { b } else { a }
}

fn main() {}
