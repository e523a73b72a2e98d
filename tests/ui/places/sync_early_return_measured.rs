use candle_profiler::*;
#[measured]
fn p(b: bool) -> Result<u32, String> {
    if b {
        return "";
    }
    Ok(1)
}

fn main() {}
