//! Memory that graphs hold, as in candle's issues 1241 and 2070, whose programs grew and could not tell where: a graph
//! carried from step to step, and one that is built where nobody differentiates it.

use candle_core::{DType, Device, Result, Tensor, Var};
use candle_profiler::{backward, measured, profile_span};
use tests::capturing::{capture, captures};
use tests::trace::Trace;

const SIDE: usize = 64;
/// The bytes of one result.
const RESULT: i64 = (SIDE * SIDE * 4) as i64;
/// What goes with tensors besides their elements.
const SMALL: i64 = 4096;

fn variable() -> Var {
    Var::ones((SIDE, SIDE), DType::F32, &Device::Cpu).expect("a variable")
}

fn figure(trace: &Trace, key: &str) -> u64 {
    let value = &trace.terminal()[key];
    assert!(value.is_u64() || value.is_null(), "{value}");
    value.as_u64().unwrap_or(0)
}

fn net(trace: &Trace) -> i64 {
    let net = &trace.measured().end["mem_net"];
    net.as_i64().expect("mem_net")
}

/// A recurrent step; its state is the last result, with or without what led to it.
fn recurrent(detaches: bool) -> Vec<Trace> {
    #[measured(name = "recurrent {detaches}")]
    fn step(w: &Var, state: &mut Option<Tensor>, detaches: bool) -> Result<()> {
        let x = w.affine(0.5, 0.0)?;
        let now = match state.take() {
            Some(before) => (x + before)?,
            None => x,
        };
        backward(&now.sqr()?.mean_all()?)?;
        *state = Some(if detaches { now.detach() } else { now });
        Ok(())
    }
    let (w, mut state) = (variable(), None);
    let (ran, traces) = captures(|| (0..5).try_for_each(|_| step(&w, &mut state, detaches)));
    ran.expect("five steps");
    assert_eq!(traces.len(), 5);
    traces
}

#[test]
fn a_graph_that_is_carried_along_grows_by_what_each_step_adds() {
    let traces = recurrent(false);
    let first = figure(&traces[0], "graph_nodes");
    let found: Vec<(u64, u64)> = traces
        .iter()
        .map(|trace| {
            let nodes = figure(trace, "graph_nodes");
            (nodes - first, figure(trace, "graph_carried"))
        })
        .collect();
    // Each step adds a product and, from the second on, a sum; the graph of the loss itself is not kept.
    assert_eq!(found, [(0, 0), (2, 1), (4, 3), (6, 5), (8, 7)]);
    for (at, trace) in traces.iter().enumerate() {
        let kept = if at == 0 { RESULT } else { 2 * RESULT };
        let net = net(trace);
        assert!((kept..kept + SMALL).contains(&net), "step {at}: {net}");
    }
}

#[test]
fn a_state_that_is_detached_keeps_nothing_of_the_steps_before() {
    let traces = recurrent(true);
    let first = figure(&traces[0], "graph_nodes");
    for (at, trace) in traces.iter().enumerate() {
        assert_eq!(figure(trace, "graph_carried"), 0);
        // The sum of the second step on.
        let added = u64::from(at > 0);
        assert_eq!(figure(trace, "graph_nodes"), first + added);
        let kept = if at == 0 { RESULT } else { 0 };
        let net = net(trace);
        assert!((net - kept).abs() < SMALL, "step {at}: {net}");
    }
}

#[profile_span]
fn forward(w: &Var) -> Result<Tensor> {
    w.affine(2.0, 0.0)?.sqr()?.affine(3.0, 0.0)
}

#[profile_span(detached)]
fn forward_detached(w: &Var) -> Result<Tensor> {
    Ok(forward(w)?.detach())
}

/// A training without a backward pass, and an inference whose weights are variables.
#[test]
fn a_graph_that_nobody_differentiates_is_told_with_its_size() {
    #[measured(name = "training nothing")]
    fn train(w: &Var, kept: &mut Vec<Tensor>) -> Result<()> {
        kept.push(forward(w)?);
        Ok(())
    }
    #[measured(infer, name = "inferring")]
    fn infer(w: &Var, kept: &mut Vec<Tensor>) -> Result<()> {
        kept.push(forward(w)?);
        Ok(())
    }
    let w = variable();
    for step in [train, infer] {
        let mut kept = Vec::with_capacity(1);
        let (ran, trace) = capture(|| step(&w, &mut kept));
        ran.expect("a step");
        // Three results and the variable, which is no result.
        assert_eq!(figure(&trace, "unused_graph_nodes"), 4);
        assert_eq!(figure(&trace, "unused_graph_bytes"), 3 * RESULT as u64);
        assert_eq!(figure(&trace, "graph_nodes"), 0);
        // One result is kept, and the graph keeps the two others.
        let net = net(&trace);
        assert!((3 * RESULT..3 * RESULT + SMALL).contains(&net), "{net}");
    }
}

#[test]
fn a_graph_that_is_differentiated_or_left_is_no_unused_one() {
    #[measured(name = "training")]
    fn train(w: &Var) -> Result<Tensor> {
        backward(&forward(w)?.sum_all()?)?;
        Ok(w.as_tensor().clone())
    }
    #[measured(infer, name = "inferring detached")]
    fn infer(w: &Var) -> Result<Tensor> {
        forward_detached(w)
    }
    let w = variable();
    for (step, kept) in [(train as fn(&Var) -> _, 0), (infer, RESULT)] {
        let (ran, trace) = capture(|| step(&w));
        ran.expect("a step");
        assert_eq!(figure(&trace, "unused_graph_nodes"), 0);
        let net = net(&trace);
        assert!((net - kept).abs() < SMALL, "{net}");
    }
}
