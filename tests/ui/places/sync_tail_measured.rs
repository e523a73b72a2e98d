use candle_profiler::*;
#[measured]
fn f() -> String {
    ""
}

fn main() {}
