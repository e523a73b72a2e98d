use candle_profiler::*;

pub trait Step {
    #[measured]
    fn run(&self) -> u32;
}

fn main() {}
