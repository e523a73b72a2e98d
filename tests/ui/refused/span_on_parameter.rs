use candle_profiler::*;

#[profile_span]
pub fn f(#[profile_span] x: u32) {
    let _ = x;
}

fn main() {}
