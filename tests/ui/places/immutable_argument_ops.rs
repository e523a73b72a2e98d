use candle_profiler::*;
#[profile_step(forward, ops)]
fn r(v: Vec<u32>, n: &u32) -> Vec<u32> {
    v.push(*n);
    v
}

fn main() {}
