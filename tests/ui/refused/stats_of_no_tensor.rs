use candle_profiler::*;

#[record_stats("x")]
pub fn f() -> String {
    String::new()
}

fn main() {}
