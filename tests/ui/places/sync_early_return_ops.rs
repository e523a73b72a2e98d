use candle_profiler::*;
#[profile_step(forward, ops)]
fn p(b: bool) -> Result<u32, String> {
    if b {
        return "";
    }
    Ok(1)
}

fn main() {}
