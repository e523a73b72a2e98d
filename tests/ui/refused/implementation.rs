use candle_profiler::*;

pub struct S;
#[profile_span]
impl S {
    pub fn new() -> S {
        S
    }
}
pub fn it() -> S {
    S::new()
}

fn main() {}
