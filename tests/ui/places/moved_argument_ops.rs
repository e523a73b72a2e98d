use candle_profiler::*;
#[profile_step(forward, ops)]
fn o(s: String) -> String {
    drop(s);
    s
}

fn main() {}
