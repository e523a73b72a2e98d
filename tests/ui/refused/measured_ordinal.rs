use candle_profiler::*;

#[measured(name = "a {#}")]
pub fn f() {}

fn main() {}
