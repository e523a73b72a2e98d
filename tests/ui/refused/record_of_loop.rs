use candle_profiler::*;

#[profile_span]
pub fn f() {
    #[record_stats("x")]
    for _ in 0..3 {}
}

fn main() {}
