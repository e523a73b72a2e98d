use candle_profiler::*;

#[profile_span]
pub fn f(x: u32) -> u32 {
    match x {
        #[measured]
        0 => 1,
        _ => 2,
    }
}

fn main() {}
