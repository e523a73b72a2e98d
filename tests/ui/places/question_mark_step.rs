use candle_profiler::*;
#[profile_step(forward)]
fn q(s: &str) -> Result<u32, String> {
    let n: u32 = s.parse()?;
    Ok(n)
}

fn main() {}
