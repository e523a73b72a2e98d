use candle_profiler::*;

#[profile_span]
pub fn f(xs: &[u32]) -> u32 {
    let mut sum = 0;
    #[cfg_attr(all(), measured)]
    for x in xs {
        sum += x;
    }
    sum
}

fn main() {}
