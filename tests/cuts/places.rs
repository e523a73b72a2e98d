//! Whatever the function looks like, what goes through it is seen.

use candle_core::{Module, Result, Tensor, Var};
use candle_nn::LayerNorm;
use candle_profiler::{
    Profiled, backward, measured, profile_span, profiled, record_scalar, record_stats, span,
};
use tests::capturing::{capture, region};

use crate::{cut_in, cuts, loss_of, numbers, variable};

/// The layer that all of these call.
fn cut(x: &Tensor) -> Result<Tensor> {
    candle_nn::ops::rms_norm(x, &numbers(&[8], 1.0), 1e-5)
}

#[profile_span(name = "by value")]
fn by_value(x: Tensor) -> Result<Tensor> {
    cut(&x)
}

#[profile_span(name = "mutable")]
fn mutable(mut x: Tensor) -> Result<Tensor> {
    x = cut(&x)?;
    Ok(x)
}

/// The argument is another one in the end.
#[profile_span(name = "rebound")]
fn rebound<'a>(mut x: &'a Tensor, other: &'a Tensor) -> Result<Tensor> {
    let y = cut(x);
    x = other;
    x.dims2()?;
    y
}

#[profile_span(name = "early")]
fn early(x: &Tensor, now: bool) -> Result<Tensor> {
    if now {
        return cut(x);
    }
    Ok(x.clone())
}

#[profile_span(name = "tuple")]
fn tuple(x: &Tensor) -> Result<(Tensor, usize)> {
    Ok((cut(x)?, 7))
}

#[profile_span(name = "list")]
fn list(xs: &[Tensor]) -> Result<Vec<Tensor>> {
    xs.iter().map(cut).collect()
}

#[profile_span(name = "option")]
fn option(x: Option<&Tensor>) -> Result<Option<Tensor>> {
    x.map(cut).transpose()
}

#[profile_span(name = "generic")]
fn generic<M: candle_core::Module>(module: &M, x: &Tensor) -> Result<Tensor> {
    module.forward(x)
}

/// Without a span of its own.
#[record_stats("bare")]
fn bare(x: &Tensor) -> Result<Tensor> {
    cut(x)
}

#[profile_span(name = "recorded")]
#[record_stats("recorded")]
fn recorded(x: &Tensor) -> Result<Tensor> {
    cut(x)
}

#[profile_span(name = "errors of its own")]
fn own_error(x: &Tensor) -> std::result::Result<Tensor, String> {
    cut(x).map_err(|error| error.to_string())
}

/// What a program calls its own `Result`.
mod own {
    pub(super) type Result<T> = std::result::Result<T, String>;
    pub(super) type Listed<T> = std::result::Result<Vec<T>, String>;
}

#[profile_span(name = "own result")]
fn own_result(x: &Tensor) -> own::Result<Tensor> {
    cut(x).map_err(|error| error.to_string())
}

/// Called a `Result` of a tensor, which it is not.
mod listed {
    pub(super) use super::own::Listed as Result;
}

#[profile_span(name = "listed")]
fn listed(x: &Tensor) -> listed::Result<Tensor> {
    let tensor = cut(x).map_err(|error| error.to_string())?;
    Ok(vec![tensor])
}

#[profile_span(name = "apart")]
fn apart((x, y): (&Tensor, &Tensor)) -> Result<Tensor> {
    cut(&(x + y)?)
}

#[profile_span(name = "apart and early")]
fn apart_and_early((x, now): (Tensor, bool)) -> Result<Tensor> {
    if now {
        return cut(&x);
    }
    Ok(x)
}

#[profile_span(name = "in place")]
fn in_place(x: &mut Tensor) -> Result<()> {
    *x = cut(x)?;
    Ok(())
}

#[profile_span(name = "in place and early")]
fn in_place_and_early(x: &mut Tensor, other: &Tensor) -> Result<()> {
    let target = x;
    *target = cut(&(&*target + other)?)?;
    if other.elem_count() > 0 {
        return Ok(());
    }
    target.dims2().map(drop)
}

#[profile_span(name = "in place for sure")]
fn in_place_for_sure(x: &mut Tensor) {
    *x = cut(x).expect("a tensor");
}

/// Written to, and tracked still.
#[profile_span(name = "doubled")]
fn doubled(x: &mut Tensor) -> Result<()> {
    *x = (&*x * 2.0)?;
    Ok(())
}

/// Gives a value that depends on a written argument.
fn written(write: impl FnOnce(&mut Tensor) -> Result<()>, x: &Tensor) -> Result<Tensor> {
    let mut x = x.exp()?;
    doubled(&mut x)?;
    write(&mut x)?;
    Ok(x)
}

/// Nothing is said of what never returns.
#[profile_span]
fn never(x: &Tensor) -> Result<Tensor> {
    unreachable!("{x}")
}

fn all(x: &Tensor) -> Result<Tensor> {
    let _: fn(&Tensor) -> Result<Tensor> = never;
    let pieces = [
        by_value(x.exp()?)?,
        mutable(x.exp()?)?,
        rebound(x, &numbers(&[3, 8], 9.0))?,
        early(x, true)?,
        tuple(x)?.0,
        list(&[x.exp()?])?.remove(0),
        option(Some(x))?.expect("some"),
        generic(&cut, x)?,
        bare(x)?,
        recorded(x)?,
        own_error(x).expect("a tensor"),
        own_result(x).expect("a tensor"),
        listed(x).expect("a list").remove(0),
        apart((x, &numbers(&[3, 8], 9.0)))?,
        apart_and_early((x.exp()?, true))?,
        written(in_place, x)?,
        written(|x| in_place_and_early(x, &numbers(&[3, 8], 9.0)), x)?,
        written(
            |x| {
                in_place_for_sure(x);
                Ok(())
            },
            x,
        )?,
    ];
    pieces.iter().try_fold(x.clone(), |sum, piece| sum + piece)
}

#[test]
fn every_form_of_function_is_seen() {
    #[measured(name = "forms")]
    fn step(w: &Var) -> Result<()> {
        let x = w.exp()?;
        let out = all(&x)?;
        backward(&(loss_of(&out)? + loss_of(&x)?)?).map(drop)
    }
    let w = variable(&[3, 8], 1.0);
    let (ran, trace) = capture(|| step(&w));
    ran.expect("a step");
    assert_eq!(
        cut_in(&trace),
        [
            "by value",
            "mutable",
            "rebound",
            "early",
            "tuple",
            "list",
            "option",
            "generic",
            // The span in which it happened.
            "forms",
            "recorded",
            "errors of its own",
            "own result",
            "listed",
            "apart",
            "apart and early",
            "in place",
            "in place and early",
            "in place for sure",
        ]
    );
}

#[test]
fn futures_are_seen_too() {
    #[profile_span(name = "future")]
    async fn future(x: &Tensor) -> Result<Tensor> {
        tokio::task::yield_now().await;
        cut(x)
    }
    #[measured(name = "asynchronous")]
    async fn step(w: &Var) -> Result<()> {
        let x = w.exp()?;
        let y = future(&x).await?;
        backward(&loss_of(&(x + y)?)?).map(drop)
    }
    let w = variable(&[3, 8], 1.0);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    let (ran, trace) = capture(|| runtime.block_on(step(&w)));
    ran.expect("a step");
    assert_eq!(cut_in(&trace), ["future"]);
}

#[test]
fn a_place_is_told_once_and_its_callers_are_not_blamed() {
    #[profile_span(name = "outer")]
    fn outer(x: &Tensor) -> Result<Tensor> {
        inner(x)?.exp()
    }
    #[profile_span(name = "inner {#}")]
    fn inner(x: &Tensor) -> Result<Tensor> {
        cut(x)
    }
    let w = variable(&[3, 8], 1.0);
    let (ran, trace) = region(|| -> Result<()> {
        let _span = span("model");
        let x = w.exp()?;
        let y = (outer(&x)? + outer(&x)?)?;
        backward(&loss_of(&(x + y)?)?).map(drop)
    });
    ran.expect("a step");
    assert_eq!(cut_in(&trace), ["inner 0"]);
}

#[test]
fn a_wrapped_module_is_named_by_its_span_and_explained_by_its_type() {
    #[measured(name = "wrapped")]
    fn step(norm: &Profiled<LayerNorm>, w: &Var) -> Result<()> {
        let x = w.exp()?;
        backward(&loss_of(&(norm.forward(&x)? + x)?)?).map(drop)
    }
    let norm = LayerNorm::new(numbers(&[8], 1.0), numbers(&[8], 2.0), 1e-5);
    let norm = profiled("a layer", norm);
    let w = variable(&[3, 8], 1.0);
    let (ran, trace) = capture(|| step(&norm, &w));
    ran.expect("a step");
    let [(span, twin)] = cuts(&trace).try_into().expect("one cut");
    assert_eq!(span, "a layer");
    assert!(twin.contains("layer_norm_slow"), "{twin}");
}

#[test]
fn a_recorded_operation_explains_the_function_it_is_in() {
    #[profile_span(name = "attend", ops)]
    fn attend(scores: &Tensor, values: &Tensor) -> Result<Tensor> {
        let noise = scores.randn_like(0.0, 1e-6)?;
        let target = scores.detach().exp()?;
        let weights = candle_nn::ops::softmax_last_dim(&(scores + noise)?)?;
        weights.matmul(values)? + target.matmul(values)?
    }
    #[measured(name = "operations")]
    fn step(w: &Var, values: &Tensor) -> Result<()> {
        let out = attend(&w.exp()?, values)?;
        backward(&loss_of(&(out * w.as_tensor())?)?).map(drop)
    }
    let (w, values) = (variable(&[8, 8], 1.0), numbers(&[8, 8], 2.0));
    let (ran, trace) = capture(|| step(&w, &values));
    ran.expect("a step");
    let [(span, twin)] = cuts(&trace).try_into().expect("one cut");
    assert_eq!(
        (span.as_str(), twin.as_str()),
        ("attend", "candle_nn::ops::softmax(x, D::Minus1)")
    );
    let tensor = trace
        .kind("tensor")
        .into_iter()
        .find(|tensor| tensor["autograd"] == "cut");
    let softmax = trace
        .kind("op")
        .into_iter()
        .find(|op| op["op_name"] == "softmax_last_dim");
    let ids = (
        tensor.map(|t| &t["tensor_id"]),
        softmax.map(|op| &op["output"]),
    );
    assert_eq!(
        ids.0, ids.1,
        "what the operation gave, not what the function did"
    );
}

#[test]
fn weights_are_the_same_bit_for_bit() {
    #[profile_span(detached)]
    #[record_scalar("first")]
    fn first(x: &Tensor) -> Result<f32> {
        x.flatten_all()?.get(0)?.to_scalar()
    }
    let train = |w: &Var| -> Result<Vec<Vec<f32>>> {
        for _ in 0..4 {
            let x = w.exp()?;
            first(&x)?;
            let loss = (loss_of(&all(&x)?)? + loss_of(&x)?)?;
            let grads = backward(&loss)?;
            w.set(&(w.as_tensor() - (grads.get(w).expect("a gradient") * 1e-3)?)?)?;
        }
        w.to_vec2()
    };
    let (watched, plain) = (variable(&[3, 8], 1.0), variable(&[3, 8], 1.0));
    let (watched, _) = region(|| train(&watched));
    assert_eq!(watched.expect("weights"), train(&plain).expect("weights"));
}
