use candle_profiler::*;
#[profile_step(forward, ops)]
fn q(s: &str) -> Result<u32, Lost> {
    let n: u32 = s.parse()?;
    Ok(n)
}

fn main() {}

struct Lost;

impl From<std::fmt::Error> for Lost {
    fn from(_: std::fmt::Error) -> Self {
        Self
    }
}
