use candle_profiler::*;

#[record_scalar()]
pub fn f() -> f32 {
    1.0
}

fn main() {}
