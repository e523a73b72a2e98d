//! Calls that overlap in time: on threads side by side, and as futures that take turns. One that began later is not
//! inside another for that.

use std::sync::Barrier;
use std::thread;

use candle_core::{Result, Tensor, Var};
use candle_profiler::{backward, current, measured, profile_span};
use tests::capturing::capture;

use crate::{cut_in, loss_of, numbers, variable};

/// No word in the text of its callers tells what it does. Of three dimensions, its output is known again however many
/// tensors other tests make meanwhile.
fn cut(x: &Tensor) -> Result<Tensor> {
    candle_nn::ops::rms_norm(x, &numbers(&[8], 1.0), 1e-5)
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names
}

#[test]
fn calls_on_two_threads_do_not_explain_each_other() {
    /// Waits until the other one is open, and for longer than it.
    #[profile_span(name = "long")]
    fn long(x: &Tensor, both: &Barrier, one: &Barrier) -> Result<Tensor> {
        both.wait();
        let y = cut(x);
        one.wait();
        y
    }
    #[profile_span(name = "short")]
    fn short(x: &Tensor, both: &Barrier) -> Result<Tensor> {
        both.wait();
        cut(x)
    }
    #[measured(name = "two threads")]
    fn step(w: &Var) -> Result<()> {
        let x = &w.exp()?;
        let (both, one) = (&Barrier::new(2), &Barrier::new(2));
        let handle = &current();
        let (first, second) = thread::scope(|scope| {
            let first = scope.spawn(move || handle.run(|| long(x, both, one)));
            let second = scope.spawn(move || {
                let y = handle.run(|| short(x, both));
                one.wait();
                y
            });
            (first.join(), second.join())
        });
        let out = (first.expect("it ran")? + second.expect("it ran")?)?;
        backward(&loss_of(&(out + x)?)?).map(drop)
    }
    for _ in 0..4 {
        let w = variable(&[1, 3, 8], 1.0);
        let (ran, trace) = capture(|| step(&w));
        ran.expect("a step");
        assert_eq!(sorted(cut_in(&trace)), ["long", "short"]);
    }
}

#[test]
fn a_call_on_another_thread_explains_the_one_that_it_was_made_in() {
    #[profile_span(name = "outer")]
    fn outer(x: &Tensor) -> Result<Tensor> {
        let handle = &current();
        let inner = thread::scope(|scope| scope.spawn(move || handle.run(|| inner(x))).join());
        inner.expect("it ran")?.exp()
    }
    #[profile_span(name = "inner")]
    fn inner(x: &Tensor) -> Result<Tensor> {
        cut(x)
    }
    #[measured(name = "a thread inside")]
    fn step(w: &Var) -> Result<()> {
        let x = w.exp()?;
        let out = outer(&x)?;
        backward(&loss_of(&(out + x)?)?).map(drop)
    }
    for _ in 0..8 {
        let w = variable(&[1, 3, 8], 1.0);
        let (ran, trace) = capture(|| step(&w));
        ran.expect("a step");
        assert_eq!(cut_in(&trace), ["inner"]);
    }
}

/// A cut of all that is before it, on a thread that a handle was entered on.
mod elsewhere {
    use candle_core::Module;
    use candle_nn::{LayerNorm, Optimizer, SGD, VarMap};
    use candle_profiler::{backward_step, name_vars, profiled};

    use super::*;
    use crate::culprits::missing;
    use crate::healthy::layers;
    use crate::ones;

    type Between = fn(Tensor) -> Result<Tensor>;

    #[profile_span(name = "probabilities there")]
    fn probabilities(x: &Tensor) -> Result<Tensor> {
        candle_nn::ops::softmax_last_dim(x)
    }

    fn scoped(x: Tensor) -> Result<Tensor> {
        let handle = &current();
        let ran = thread::scope(|scope| {
            let there = scope.spawn(|| {
                let _entered = handle.enter();
                probabilities(&x)
            });
            there.join()
        });
        ran.expect("it ran")
    }

    fn blocking(x: Tensor) -> Result<Tensor> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .build();
        let handle = current();
        let there = tokio::task::spawn_blocking;
        let ran = runtime.expect("a runtime").block_on(async {
            there(move || {
                let _entered = handle.enter();
                probabilities(&x)
            })
            .await
        });
        ran.expect("it ran")
    }

    fn wrapped(x: Tensor) -> Result<Tensor> {
        let handle = &current();
        let norm = profiled(
            "probabilities there",
            LayerNorm::new(ones(&[8]), ones(&[8]), 1e-5),
        );
        let ran = thread::scope(|scope| {
            let there = scope.spawn(|| {
                let _entered = handle.enter();
                norm.forward(&x)
            });
            there.join()
        });
        ran.expect("it ran")
    }

    #[measured(name = "cut elsewhere")]
    fn step(layers: &[candle_nn::Linear], sgd: &mut SGD, between: Between) -> Result<()> {
        let x = numbers(&[8, 8], 1.0);
        let hidden = between(layers[0].forward(&x)?)?;
        backward_step(sgd, &loss_of(&layers[1].forward(&hidden)?)?)
    }

    #[test]
    fn is_told_with_what_it_takes_away() {
        for between in [scoped, blocking, wrapped] {
            let vars = VarMap::new();
            let layers = layers(&vars, &[8, 8, 8]).expect("layers");
            name_vars("elsewhere", vars.data());
            let mut sgd = SGD::new(vars.all_vars(), 0.1).expect("an optimizer");
            let (ran, trace) = capture(|| step(&layers, &mut sgd, between));
            ran.expect("a step");
            assert_eq!(cut_in(&trace), ["probabilities there"]);
            assert_eq!(
                missing(&trace),
                ["bias", "weight"].map(|name| (
                    format!("elsewhere.0.{name}"),
                    "cut in probabilities there".to_owned()
                ))
            );
        }
    }
}

#[test]
fn futures_that_take_turns_do_not_explain_each_other() {
    #[profile_span(name = "slow")]
    async fn slow(x: &Tensor) -> Result<Tensor> {
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
        cut(x)
    }
    #[profile_span(name = "quick")]
    async fn quick(x: &Tensor) -> Result<Tensor> {
        cut(x)
    }
    /// What it awaits explains it, though others take their turns meanwhile.
    #[profile_span(name = "caller")]
    async fn caller(x: &Tensor) -> Result<Tensor> {
        awaited(x).await?.exp()
    }
    #[profile_span(name = "awaited")]
    async fn awaited(x: &Tensor) -> Result<Tensor> {
        tokio::task::yield_now().await;
        cut(x)
    }
    #[measured(name = "taking turns")]
    async fn step(w: &Var) -> Result<()> {
        let x = w.exp()?;
        let (a, b, c) = tokio::join!(slow(&x), caller(&x), quick(&x));
        backward(&loss_of(&(((a? + b?)? + c?)? + x)?)?).map(drop)
    }
    let w = variable(&[1, 3, 8], 1.0);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    let (ran, trace) = capture(|| runtime.block_on(step(&w)));
    ran.expect("a step");
    assert_eq!(sorted(cut_in(&trace)), ["awaited", "quick", "slow"]);
}
