//! The layers of candle 0.11 that let no gradient through, as people met them in candle's issues.

use candle_core::{D, DType, Device, Result, Tensor, Var};
use candle_nn::{
    AdamW, LayerNorm, Linear, Module, Optimizer, ParamsAdamW, RmsNorm, SGD, VarBuilder, VarMap,
};
use candle_profiler::{backward, backward_step, measured, name_vars, profile_span, profile_step};
use serde_json::Value;
use tests::capturing::capture;
use tests::trace::Trace;

use crate::{cut_in, cuts, loss_of, numbers, ones, variable};

/// Missing gradients of a trace, each with its reason.
pub(crate) fn missing(trace: &Trace) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    trace
        .kind("gradient")
        .into_iter()
        .filter(|gradient| gradient["state"] == "missing")
        .map(|gradient| (text(&gradient["key"]), text(&gradient["reason"])))
        .collect()
}

/// Issue 3011: linear, layer norm, linear; two thirds of the parameters get no gradient.
struct Issue3011 {
    first: Linear,
    norm: LayerNorm,
    last: Linear,
}

impl Issue3011 {
    fn new(vb: VarBuilder<'_>) -> Result<Self> {
        Ok(Self {
            first: candle_nn::linear(16, 16, vb.pp("linear1"))?,
            norm: candle_nn::layer_norm(16, 1e-5, vb.pp("layer_norm"))?,
            last: candle_nn::linear(16, 16, vb.pp("linear2"))?,
        })
    }

    #[profile_step(forward)]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = self.first.forward(x)?;
        self.last.forward(&self.normalize(&x)?)
    }

    #[profile_span]
    fn normalize(&self, x: &Tensor) -> Result<Tensor> {
        self.norm.forward(x)
    }
}

#[measured(name = "step 3011")]
fn step_3011(model: &Issue3011, x: &Tensor, optimizer: &mut AdamW) -> Result<()> {
    let loss = loss_of(&model.forward(x)?)?;
    backward_step(optimizer, &loss)
}

#[test]
fn a_layer_norm_between_linears_is_named_with_what_it_takes_away() {
    let vars = VarMap::new();
    let vb = VarBuilder::from_varmap(&vars, DType::F32, &Device::Cpu);
    let model = Issue3011::new(vb).expect("a model");
    name_vars("", vars.data());
    let mut optimizer = AdamW::new(vars.all_vars(), ParamsAdamW::default()).expect("an optimizer");
    let x = numbers(&[4, 16], 1.0);
    let (ran, trace) = capture(|| step_3011(&model, &x, &mut optimizer));
    ran.expect("a step");
    let [(span, twin)] = cuts(&trace).try_into().expect("one cut");
    assert_eq!(span, "Issue3011::normalize");
    assert!(twin.contains("layer_norm_slow"), "{twin}");
    let found = missing(&trace);
    let keys: Vec<&str> = found.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(
        keys,
        [
            "layer_norm.bias",
            "layer_norm.weight",
            "linear1.bias",
            "linear1.weight"
        ]
    );
    for (key, reason) in &found {
        // The norm's own weights are no arguments: that they are of the norm is told by their lengths.
        match key.starts_with("linear1") {
            true => assert_eq!(reason, "cut in Issue3011::normalize"),
            false => assert_eq!(reason, "perhaps cut in Issue3011::normalize"),
        }
    }
}

/// Issue 2168: an RmsNorm with contiguous input. Issue 2977: the same of LayerNorm.
#[profile_span(name = "rms norm")]
fn rms_norm(norm: &RmsNorm, x: &Tensor) -> Result<Tensor> {
    norm.forward(x)
}

#[profile_span(name = "differentiable rms norm")]
fn rms_norm_diff(norm: &RmsNorm, x: &Tensor) -> Result<Tensor> {
    norm.forward_diff(x)
}

#[profile_span(name = "layer norm")]
fn layer_norm(norm: &LayerNorm, x: &Tensor) -> Result<Tensor> {
    norm.forward(x)
}

#[test]
fn norms_cut_where_their_input_is_contiguous_and_only_there() {
    #[measured(name = "rms")]
    fn contiguous(norm: &RmsNorm, w: &Var) -> Result<()> {
        backward(&loss_of(&rms_norm(norm, &w.exp()?)?)?).map(drop)
    }
    #[measured(name = "rms transposed")]
    fn transposed(norm: &RmsNorm, w: &Var) -> Result<()> {
        backward(&loss_of(&rms_norm(norm, &w.exp()?.t()?)?)?).map(drop)
    }
    #[measured(name = "rms diff")]
    fn differentiable(norm: &RmsNorm, w: &Var) -> Result<()> {
        backward(&loss_of(&rms_norm_diff(norm, &w.exp()?)?)?).map(drop)
    }
    let (w, norm) = (variable(&[8, 8], 2.0), RmsNorm::new(ones(&[8]), 1e-6));
    let (ran, trace) = capture(|| contiguous(&norm, &w));
    ran.expect("a step");
    let [(span, twin)] = cuts(&trace).try_into().expect("one cut");
    assert_eq!(
        (span.as_str(), twin.as_str()),
        ("rms norm", "RmsNorm::forward_diff(x)")
    );
    for step in [transposed, differentiable] {
        let (ran, trace) = capture(|| step(&norm, &w));
        ran.expect("a step");
        assert_eq!(cut_in(&trace), [""; 0]);
    }
}

#[test]
fn an_outer_residual_does_not_hide_the_cut_from_the_inner_function() {
    #[profile_span(name = "block")]
    fn block(norm: &LayerNorm, mlp: &Linear, x: &Tensor) -> Result<Tensor> {
        x + mlp.forward(&layer_norm(norm, x)?)?
    }
    #[measured(name = "residual")]
    fn step(norm: &LayerNorm, mlp: &Linear, w: &Var, x: &Tensor) -> Result<()> {
        let mut x = x.broadcast_matmul(w)?;
        for _ in 0..3 {
            x = block(norm, mlp, &x)?;
        }
        backward(&loss_of(&x)?).map(drop)
    }
    let (w, x) = (variable(&[8, 8], 3.0), numbers(&[2, 5, 8], 4.0));
    let norm = LayerNorm::new(
        variable(&[8], 1.0).into_inner(),
        variable(&[8], 2.0).into_inner(),
        1e-5,
    );
    let mlp = Linear::new(variable(&[8, 8], 5.0).into_inner(), None);
    let (ran, trace) = capture(|| step(&norm, &mlp, &w, &x));
    ran.expect("a step");
    // Once, though three blocks call it, and though no gradient of `w` is missing.
    assert_eq!(cut_in(&trace), ["layer norm"]);
    assert_eq!(trace.named("layer norm").len(), 3);
    assert!(missing(&trace).is_empty());
}

#[test]
fn frozen_norms_of_a_lora_are_told_though_no_gradient_is_missing() {
    /// A frozen linear layer and what is trained beside it.
    #[profile_span(name = "lora")]
    fn lora(frozen: &Linear, down: &Var, up: &Var, x: &Tensor) -> Result<Tensor> {
        frozen.forward(x)? + x.broadcast_matmul(down)?.broadcast_matmul(up)?
    }
    #[measured(name = "lora step")]
    fn step(frozen: &Linear, norm: &LayerNorm, vars: &[Var; 4], x: &Tensor) -> Result<()> {
        let [down, up, down_2, up_2] = vars;
        let x = lora(frozen, down, up, x)?;
        let x = (&x + frozen.forward(&layer_norm(norm, &x)?)?)?;
        let x = lora(frozen, down_2, up_2, &x)?;
        backward(&loss_of(&x)?).map(drop)
    }
    let frozen = Linear::new(numbers(&[8, 8], 1.0), None);
    let norm = LayerNorm::new(ones(&[8]), numbers(&[8], 2.0), 1e-5);
    let vars = [
        variable(&[8, 2], 3.0),
        variable(&[2, 8], 4.0),
        variable(&[8, 2], 5.0),
        variable(&[2, 8], 6.0),
    ];
    let (ran, trace) = capture(|| step(&frozen, &norm, &vars, &numbers(&[2, 3, 8], 7.0)));
    ran.expect("a step");
    assert_eq!(cut_in(&trace), ["layer norm"]);
    assert!(missing(&trace).is_empty());
    assert_eq!(trace.kind("gradient").len(), 4);
}

/// Issues 3568 (rope) and 3569 (softmax_last_dim), in an attention.
#[profile_span(name = "probabilities")]
fn probabilities(scores: &Tensor) -> Result<Tensor> {
    candle_nn::ops::softmax_last_dim(scores)
}

#[profile_span(name = "rotate")]
fn rotate(x: &Tensor, cos: &Tensor, sin: &Tensor) -> Result<Tensor> {
    candle_nn::rotary_emb::rope(x, cos, sin)
}

#[profile_span(name = "attention")]
fn attention(q: &Tensor, k: &Tensor, v: &Tensor) -> Result<Tensor> {
    let scores = q.matmul(&k.transpose(2, 3)?.contiguous()?)?;
    probabilities(&scores)?.matmul(v)
}

#[test]
fn a_softmax_over_the_last_dimension_is_named() {
    #[measured(name = "softmax")]
    fn step(q: &Var, k: &Var, v: &Var) -> Result<()> {
        backward(&loss_of(&attention(q, k, v)?)?).map(drop)
    }
    let [q, k, v] = [1.0, 2.0, 3.0].map(|seed| variable(&[1, 2, 4, 6], seed));
    name_vars("attention", [("q", &q), ("k", &k), ("v", &v)]);
    let (ran, trace) = capture(|| step(&q, &k, &v));
    ran.expect("a step");
    let [(span, twin)] = cuts(&trace).try_into().expect("one cut");
    assert_eq!(span, "probabilities");
    assert_eq!(twin, "candle_nn::ops::softmax(x, D::Minus1)");
    let keys: Vec<String> = missing(&trace).into_iter().map(|(key, _)| key).collect();
    assert_eq!(keys, ["attention.k", "attention.q"]);
}

#[test]
fn a_rotary_embedding_is_named() {
    #[measured(name = "rope")]
    fn step(q: &Var, k: &Var, v: &Tensor, cos: &Tensor, sin: &Tensor) -> Result<()> {
        let (q, k) = (
            rotate(&q.affine(2.0, 0.0)?, cos, sin)?,
            rotate(k, cos, sin)?,
        );
        let scores = q.matmul(&k.transpose(2, 3)?.contiguous()?)?;
        let out = candle_nn::ops::softmax(&scores, D::Minus1)?.matmul(v)?;
        backward(&loss_of(&out)?).map(drop)
    }
    let [q, k, v] = [1.0, 2.0, 3.0].map(|seed| variable(&[1, 2, 4, 6], seed));
    let (cos, sin) = (numbers(&[4, 3], 4.0), numbers(&[4, 3], 5.0));
    let (ran, trace) = capture(|| step(&q, &k, &v, &cos, &sin));
    ran.expect("a step");
    let [(span, twin)] = cuts(&trace).try_into().expect("one cut");
    assert_eq!(span, "rotate");
    assert!(twin.contains("rope_slow"), "{twin}");
}

/// Issue 3752: a final norm before a head; everything below it does not learn, and nothing says so.
#[test]
fn a_final_norm_before_a_pooled_head_is_named() {
    #[measured(name = "final norm")]
    fn step(backbone: &Var, norm: &LayerNorm, head: &Linear, sgd: &mut SGD) -> Result<()> {
        let x = numbers(&[2, 5, 8], 1.0).broadcast_matmul(backbone)?;
        let pooled = layer_norm(norm, &x)?.mean(1)?;
        let loss = loss_of(&head.forward(&pooled)?)?;
        backward_step(sgd, &loss)
    }
    let backbone = variable(&[8, 8], 2.0);
    let norm = LayerNorm::new(ones(&[8]), numbers(&[8], 2.0), 1e-5);
    let head = variable(&[3, 8], 3.0);
    let mut sgd = SGD::new(vec![backbone.clone(), head.clone()], 0.1).expect("an optimizer");
    let head = Linear::new(head.into_inner(), None);
    let (ran, trace) = capture(|| step(&backbone, &norm, &head, &mut sgd));
    ran.expect("a step");
    assert_eq!(cut_in(&trace), ["layer norm"]);
}

#[test]
fn a_loss_that_is_cut_itself_is_named() {
    #[profile_span(name = "the loss")]
    fn loss(logits: &Tensor) -> Result<Tensor> {
        candle_nn::ops::softmax_last_dim(logits)?.log()?.mean_all()
    }
    #[measured(name = "cut loss")]
    fn step(w: &Var) -> Result<()> {
        backward(&loss(&w.exp()?)?).map(drop)
    }
    let w = variable(&[4, 6], 1.0);
    let (ran, trace) = capture(|| step(&w));
    ran.expect("a step");
    assert_eq!(cut_in(&trace), ["the loss"]);
}

/// The same without a word of ours about the backward pass.
#[test]
fn a_plain_backward_pass_is_enough() {
    #[measured(name = "plain backward")]
    fn step(w: &Var, norm: &LayerNorm, sgd: &mut SGD) -> Result<()> {
        let loss = loss_of(&layer_norm(norm, &w.exp()?)?)?;
        sgd.backward_step(&loss)
    }
    #[profile_step(backward, name = "descend")]
    fn descend(loss: &Tensor) -> Result<candle_core::backprop::GradStore> {
        loss.backward()
    }
    #[measured(name = "annotated backward")]
    fn annotated(w: &Var, norm: &LayerNorm, _: &mut SGD) -> Result<()> {
        let hidden = w.exp()?;
        let loss = loss_of(&(layer_norm(norm, &hidden)? + &hidden)?)?;
        descend(&loss).map(drop)
    }
    let w = variable(&[4, 8], 1.0);
    let norm = LayerNorm::new(ones(&[8]), numbers(&[8], 2.0), 1e-5);
    let mut sgd = SGD::new(vec![w.clone()], 0.1).expect("an optimizer");
    for step in [step, annotated] {
        let (ran, trace) = capture(|| step(&w, &norm, &mut sgd));
        ran.expect("a step");
        assert_eq!(cut_in(&trace), ["layer norm"]);
    }
}

/// A number that is printed, or a row that is looked at, is no way of leaving the graph.
#[test]
fn a_debug_print_excuses_nobody() {
    #[profile_span(name = "printed norm")]
    fn printed_norm(norm: &LayerNorm, x: &Tensor) -> Result<Tensor> {
        let y = norm.forward(x)?;
        eprintln!("mean {}", y.mean_all()?.to_scalar::<f32>()?);
        Ok(y)
    }
    #[profile_span(name = "printed row")]
    fn printed_row(norm: &RmsNorm, x: &Tensor) -> Result<Tensor> {
        let y = norm.forward(x)?;
        eprintln!("row {:?}", y.get(0)?.to_vec1::<f32>()?);
        Ok(y)
    }
    fn elsewhere(x: &Tensor) -> Result<Tensor> {
        candle_nn::ops::softmax_last_dim(x)
    }
    /// Nothing in its text says what cuts.
    #[profile_span(name = "printed helper")]
    fn printed_helper(x: &Tensor) -> Result<Tensor> {
        let y = elsewhere(x)?;
        eprintln!("largest {}", y.max_all()?.to_vec0::<f32>()?);
        Ok(y)
    }
    #[measured(name = "printed")]
    fn step(norm: &LayerNorm, rms: &RmsNorm, w: &Var) -> Result<()> {
        let x = w.exp()?;
        let y = ((printed_norm(norm, &x)? + printed_row(rms, &x)?)? * printed_helper(&x)?)?;
        backward(&loss_of(&(x + y)?)?).map(drop)
    }
    let norm = LayerNorm::new(ones(&[8]), numbers(&[8], 2.0), 1e-5);
    let (rms, w) = (RmsNorm::new(ones(&[8]), 1e-6), variable(&[4, 8], 1.0));
    let (ran, trace) = capture(|| step(&norm, &rms, &w));
    ran.expect("a step");
    assert_eq!(
        cut_in(&trace),
        ["printed norm", "printed row", "printed helper"]
    );
}

/// A norm whose input is data cuts off nothing but its own weights.
mod a_first_norm {
    use candle_profiler::{Profiled, measure_with, name_vars, profiled};

    use super::*;

    #[profile_span(name = "first norm")]
    fn norm(norm: &LayerNorm, x: &Tensor) -> Result<Tensor> {
        norm.forward(x)
    }

    #[profile_span(name = "first norm", ops)]
    fn by_method(norm: &LayerNorm, x: &Tensor) -> Result<Tensor> {
        norm.forward(x)
    }

    #[profile_span(name = "first norm", ops)]
    fn by_function(norm: &LayerNorm, x: &Tensor) -> Result<Tensor> {
        candle_nn::ops::layer_norm(x, norm.weight(), norm.bias().expect("a bias"), 1e-5)
    }

    #[profile_span(name = "first norm", ops)]
    fn applied(norm: &LayerNorm, x: &Tensor) -> Result<Tensor> {
        x.apply(norm)
    }

    /// What takes the weights out computes nothing.
    #[profile_span(ops)]
    fn slow(norm: &LayerNorm, x: &Tensor) -> Result<Tensor> {
        candle_nn::ops::layer_norm_slow(x, norm.weight(), norm.bias().expect("a bias"), 1e-5)
    }

    type Norm = fn(&LayerNorm, &Tensor) -> Result<Tensor>;

    fn trained(by: impl FnOnce(&Profiled<LayerNorm>, &Tensor) -> Result<Tensor>) -> Trace {
        let vars = VarMap::new();
        let vb = VarBuilder::from_varmap(&vars, DType::F32, &Device::Cpu);
        let norm = candle_nn::layer_norm(8, 1e-5, vb.pp("n")).expect("a norm");
        let norm = profiled("first norm", norm);
        let last = candle_nn::linear(8, 8, vb.pp("l")).expect("a layer");
        name_vars("", vars.data());
        let mut sgd = SGD::new(vars.all_vars(), 0.1).expect("an optimizer");
        let x = numbers(&[6, 8], 1.0);
        let (ran, trace) = capture(|| {
            measure_with("first", || {
                backward_step(&mut sgd, &loss_of(&last.forward(&by(&norm, &x)?)?)?)
            })
        });
        ran.expect("a step");
        trace
    }

    fn is_told(trace: &Trace) {
        let [(span, twin)] = cuts(trace).try_into().expect("one cut");
        assert_eq!(span, "first norm");
        assert!(twin.contains("layer_norm_slow"), "{twin}");
        let why = || "cut in first norm".to_owned();
        let lost = ["n.bias", "n.weight"].map(|key| (key.to_owned(), why()));
        assert_eq!(missing(trace), lost);
    }

    #[test]
    fn is_told_in_every_form() {
        for by in [norm as Norm, by_method, by_function, applied] {
            is_told(&trained(|norm, x| by(norm, x)));
        }
        is_told(&trained(|norm, x| norm.forward(x)));
    }

    #[test]
    fn is_no_cut_where_it_has_a_backward_pass() {
        let trace = trained(|norm, x| slow(norm, x));
        assert_eq!(cut_in(&trace), [""; 0]);
        assert!(missing(&trace).is_empty());
        let ops = trace.kind("op");
        let names: Vec<&Value> = ops.iter().map(|op| &op["op_name"]).collect();
        assert_eq!(names, ["layer_norm_slow"]);
        assert_eq!(ops[0]["inputs"].as_array().map(Vec::len), Some(3));
    }
}
