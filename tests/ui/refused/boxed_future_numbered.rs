use candle_profiler::*;
use std::future::Future;
use std::pin::Pin;

#[profile_span(name = "{x} {#}")]
pub fn f(x: f32) -> Pin<Box<dyn Future<Output = f32> + Send>> {
    let x = x + 1.0;
    Box::pin(async move { x })
}

fn main() {}
