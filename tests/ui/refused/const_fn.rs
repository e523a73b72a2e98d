use candle_profiler::*;

#[measured]
pub const fn square(x: u32) -> u32 {
    x * x
}
pub const NINE: u32 = square(3);

fn main() {}
