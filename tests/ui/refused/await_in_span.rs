use candle_profiler::*;

#[profile_span]
pub async fn f() {
    #[profile_span]
    g().await;
}
async fn g() {}

fn main() {}
