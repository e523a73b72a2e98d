use candle_profiler::*;

#[profile_span]
pub fn f(x: u32) -> u32 {
    #[profile_span]
    return x;
}

fn main() {}
