use candle_profiler::*;
#[profile_step(forward)]
async fn j(b: bool) -> u32 {
    if b {
        return "";
    }
    1
}

fn main() {}
