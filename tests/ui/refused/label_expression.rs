use candle_profiler::*;

#[profile_span(name = "layer {x + 1}")]
pub fn f(x: u32) {
    let _ = x;
}

fn main() {}
