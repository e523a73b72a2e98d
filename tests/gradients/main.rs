//! Gradients: state, norm and reason of each variable, whatever the store goes through, and exact lists of them.

mod costs;
mod lists;
mod moves;
mod promises;
mod stores;

use candle_core::{Device, Tensor, Var};
use serde_json::Value;
use tests::trace::Trace;

fn var(numbers: &[f32]) -> Var {
    Var::new(numbers, &Device::Cpu).expect("a variable")
}

/// The gradient of `Σ wᵢ·xᵢ` by `x` is `w`.
fn weighed(x: &Tensor, weights: &[f32]) -> candle_core::Result<Tensor> {
    (x * Tensor::new(weights, &Device::Cpu)?)?.sum_all()
}

/// Key, state and norm of each gradient of a root, in the order of the file.
fn gradients(trace: &Trace, root: &str) -> Vec<(String, String, Option<f64>)> {
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    trace
        .kind("gradient")
        .into_iter()
        .filter(|gradient| gradient["root"] == root)
        .map(|gradient| {
            (
                text(&gradient["key"]),
                text(&gradient["state"]),
                gradient["norm"].as_f64(),
            )
        })
        .collect()
}

fn keys(trace: &Trace, root: &str) -> Vec<String> {
    let all = gradients(trace, root).into_iter();
    all.map(|(key, _, _)| key).collect()
}

/// The extra key of a gradient.
fn extra(trace: &Trace, key: &str, name: &str) -> Option<String> {
    let mut all = trace.kind("gradient").into_iter();
    let found = all
        .rfind(|gradient| gradient["key"] == key)
        .expect("its gradient");
    found[name].as_str().map(str::to_owned)
}

/// The number recorded under a label.
fn number(trace: &Trace, label: &str) -> f64 {
    trace.stats(label)["mean"].as_f64().expect("a number")
}
