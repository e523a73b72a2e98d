use candle_profiler::*;

#[record_stats]
mod inner {
    pub fn f() {}
}
pub fn g() {
    inner::f();
}

fn main() {}
