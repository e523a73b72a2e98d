use candle_profiler::*;

#[profile_span]
pub fn f() -> u32 {
    #[record_scalar("x")]
    let x;
    x = 1;
    x
}

fn main() {}
