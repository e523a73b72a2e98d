use candle_profiler::*;
#[profile_step(forward)]
fn o(s: String) -> String {
    drop(s);
    s
}

fn main() {}
