//! What the profiler takes to look at graphs and variables is its own time, whether it has something to tell or not.

use candle_core::backprop::GradStore;
use candle_core::{DType, Device, Result, Tensor, Var};
use candle_nn::Optimizer;
use candle_profiler::{backward_step, measured, profile_span};
use tests::capturing::capture;
use tests::trace::{Span, Trace};

/// The time of a span that is not the profiler's own, and that which is.
fn shares(span: &Span) -> (u64, u64) {
    let own = span.end["overhead_ns"].as_u64().unwrap_or(0);
    (span.time.1 - span.time.0 - own, own)
}

/// The program does next to nothing here, the profiler a thousand times as much.
fn is_mostly_own(trace: &Trace, without: &[&str]) {
    let (mut rest, own) = shares(trace.measured());
    rest -= without
        .iter()
        .map(|name| shares(trace.span(name)).0)
        .sum::<u64>();
    assert!(
        20 * rest < own,
        "{rest} ns and {own} ns of the profiler's own"
    );
}

/// Leaves its variables as they are.
struct Still;

impl Optimizer for Still {
    type Config = ();

    fn new(_: Vec<Var>, (): ()) -> Result<Self> {
        Ok(Self)
    }

    fn step(&mut self, _: &GradStore) -> Result<()> {
        Ok(())
    }

    fn learning_rate(&self) -> f64 {
        0.0
    }

    fn set_learning_rate(&mut self, _: f64) {}
}

#[test]
fn looking_at_what_an_optimizer_moves_is_told() {
    #[measured(name = "still")]
    fn step(loss: &Tensor, optimizer: &mut Still) -> Result<()> {
        backward_step(optimizer, loss)
    }
    let large = Var::ones(2 << 20, DType::F32, &Device::Cpu).expect("a variable");
    let loss = large.sum_all().expect("a loss");
    let (ran, trace) = capture(|| step(&loss, &mut Still));
    ran.expect("a step");
    is_mostly_own(&trace, &["backward"]);
}

/// A small tensor of a large graph.
fn much_behind() -> Tensor {
    let w = Var::ones(1, DType::F32, &Device::Cpu).expect("a variable");
    let parts: Vec<Tensor> = (0..20_000)
        .map(|n| w.affine(f64::from(n), 0.0).expect("a part"))
        .collect();
    let all = Tensor::cat(&parts, 0).expect("a tensor");
    all.narrow(0, 0, 1).expect("a tensor")
}

#[test]
fn looking_behind_an_argument_that_is_taken_is_told() {
    #[profile_span(name = "takes")]
    fn takes(x: Tensor) -> Tensor {
        x
    }
    #[measured(name = "taking")]
    fn step(x: Tensor) -> Tensor {
        takes(takes(x))
    }
    let x = much_behind();
    let kept = x.clone();
    let (_, trace) = capture(|| step(x));
    is_mostly_own(&trace, &[]);
    drop(kept);
}

#[test]
fn looking_behind_operations_is_told() {
    #[profile_span(name = "operations", ops)]
    fn operations(x: &Tensor) -> Result<Tensor> {
        x.affine(2.0, 0.0)?.affine(3.0, 0.0)?.affine(4.0, 0.0)
    }
    #[measured(name = "operating")]
    fn step(x: &Tensor) -> Result<Tensor> {
        operations(x)
    }
    let x = much_behind();
    let (ran, trace) = capture(|| step(&x));
    ran.expect("tensors");
    assert_eq!(trace.kind("op").len(), 3);
    is_mostly_own(&trace, &[]);
}
