use candle_profiler::*;
#[measured]
async fn j(b: bool) -> u32 {
    if b {
        return "";
    }
    1
}

fn main() {}
