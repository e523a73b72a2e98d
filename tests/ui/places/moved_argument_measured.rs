use candle_profiler::*;
#[measured]
fn o(s: String) -> String {
    drop(s);
    s
}

fn main() {}
