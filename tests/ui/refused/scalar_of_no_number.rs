use candle_profiler::*;

pub fn f() {
    g(1);
}
#[profile_span]
pub fn g(x: u32) {
    #[record_scalar("s")]
    let s = (x, "a");
    let _ = s;
}

fn main() {}
