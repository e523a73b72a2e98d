use candle_profiler::*;

#[record_stats("nothing")]
pub fn f() -> ! {
    loop {}
}

fn main() {}
