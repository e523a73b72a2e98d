use candle_profiler::*;
#[profile_step(forward)]
fn p(b: bool) -> Result<u32, String> {
    if b {
        return "";
    }
    Ok(1)
}

fn main() {}
