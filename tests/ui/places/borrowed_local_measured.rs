use candle_profiler::*;
#[measured]
fn m() -> &'static str {
    let s = String::new();
    &s
}

fn main() {}
