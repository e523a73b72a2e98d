use candle_profiler::*;

#[measured]
pub struct NotAFunction;
pub const IT: NotAFunction = NotAFunction;

fn main() {}
