use candle_profiler::*;

#[record_scalar("a", "b")]
pub fn f() -> f32 {
    1.0
}

fn main() {}
