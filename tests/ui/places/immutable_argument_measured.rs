use candle_profiler::*;
#[measured]
fn r(v: Vec<u32>, n: &u32) -> Vec<u32> {
    v.push(*n);
    v
}

fn main() {}
