//! A union's fields cannot be told apart.

use candle_profiler::Observe;

#[derive(Observe)]
union Either {
    whole: u32,
    part: f32,
}

fn main() {}
