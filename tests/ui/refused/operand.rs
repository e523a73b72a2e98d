use candle_profiler::*;

#[profile_span]
pub fn f(x: u32) -> u32 {
    x + #[profile_span]
    g(x)
}
fn g(x: u32) -> u32 {
    x
}

fn main() {}
