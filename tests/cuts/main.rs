//! Cut graphs: candle's layers without a backward pass are named, healthy programs are not.

mod culprits;
mod custom;
mod healthy;
mod looked_at;
mod overlaps;
mod places;

use candle_core::{DType, Device, Result, Tensor, Var};
use tests::trace::Trace;

/// Numbers that are the same each time and of no pattern.
fn numbers(shape: &[usize], seed: f64) -> Tensor {
    let count: usize = shape.iter().product();
    let numbers: Vec<f32> = (0..count)
        .map(|n| ((n as f64 + seed) * 12.9898 + seed).sin() as f32)
        .collect();
    Tensor::from_vec(numbers, shape, &Device::Cpu).expect("a tensor")
}

fn variable(shape: &[usize], seed: f64) -> Var {
    Var::from_tensor(&numbers(shape, seed)).expect("a variable")
}

fn ones(shape: &[usize]) -> Tensor {
    Tensor::ones(shape, DType::F32, &Device::Cpu).expect("a tensor")
}

/// The names of the spans whose outputs the trace says cut the graph, each with what to write instead.
fn cuts(trace: &Trace) -> Vec<(String, String)> {
    let cut = trace
        .kind("tensor")
        .into_iter()
        .filter(|tensor| tensor["autograd"] == "cut");
    cut.map(|tensor| {
        assert_eq!(tensor["tracked"], false, "{tensor}");
        let span = trace
            .spans
            .iter()
            .find(|span| tensor["span_id"] == *span.id)
            .expect("its span");
        let twin = tensor["twin"].as_str().unwrap_or("none").to_owned();
        (span.name.clone(), twin)
    })
    .collect()
}

/// The names of the spans that cut the graph.
fn cut_in(trace: &Trace) -> Vec<String> {
    cuts(trace).into_iter().map(|(span, _)| span).collect()
}

/// A loss over everything.
fn loss_of(tensor: &Tensor) -> Result<Tensor> {
    tensor.sqr()?.mean_all()
}
