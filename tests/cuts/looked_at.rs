//! What is computed beside the loss: evaluated, generated or measured with the same layers before the update, and
//! targets that the caller detaches. None of it gets a word; a cut on the way into the loss does.

use candle_core::{D, Module, Result, Tensor};
use candle_nn::{AdamW, Linear, VarMap, loss, ops};
use candle_profiler::{backward_step, measured, name_vars, profile_span, record_scalar};
use tests::capturing::capture;

use crate::culprits::missing;
use crate::healthy::{adam, healthy, layers};
use crate::{cut_in, numbers, ones};

/// Two layers of eight.
struct Model {
    a: Linear,
    b: Linear,
}

impl Model {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.b.forward(&self.a.forward(x)?)
    }

    fn loss(&self, x: &Tensor) -> Result<Tensor> {
        loss::mse(&self.forward(x)?, x)
    }
}

fn model(name: &str) -> Result<(Model, AdamW)> {
    let vars = VarMap::new();
    let mut made = layers(&vars, &[8, 8, 8])?;
    name_vars(name, vars.data());
    let (b, a) = (made.remove(1), made.remove(0));
    Ok((Model { a, b }, adam(&vars)?))
}

fn data(seed: f64) -> Tensor {
    numbers(&[8, 8], seed)
}

#[profile_span]
fn probs(logits: &Tensor) -> Result<Tensor> {
    ops::softmax_last_dim(logits)
}

#[profile_span]
fn norm(x: &Tensor) -> Result<Tensor> {
    ops::rms_norm(x, &ones(&[8]), 1e-5)
}

/// Runs the step twice on a model that is called `name`.
fn silent(name: &str, step: fn(&Model, &mut AdamW) -> Result<()>) {
    healthy(|| {
        let (model, mut optimizer) = model(name)?;
        (0..2).try_for_each(|_| step(&model, &mut optimizer))
    });
}

mod evaluated_first {
    use super::*;

    #[profile_span]
    fn error(model: &Model) -> Result<f32> {
        let x = data(1.0);
        let off = (probs(&model.forward(&x)?)? - x)?;
        off.sqr()?.mean_all()?.to_scalar()
    }

    fn plain_error(model: &Model) -> Result<f32> {
        error_of(&probs(&model.forward(&data(1.0))?)?)
    }

    fn error_of(probs: &Tensor) -> Result<f32> {
        (probs - data(1.0))?.sqr()?.mean_all()?.to_scalar()
    }

    fn confidence(model: &Model) -> Result<f32> {
        let best = probs(&model.forward(&data(1.0))?)?.max(1)?;
        best.mean_all()?.to_scalar()
    }

    /// What follows at once is the data of the training step, of the same size.
    fn first(model: &Model) -> Result<f32> {
        let all = probs(&model.forward(&data(1.0))?)?.to_vec2::<f32>()?;
        Ok(all[0][0])
    }

    #[measured]
    fn train_step(
        model: &Model,
        optimizer: &mut AdamW,
        look: fn(&Model) -> Result<f32>,
    ) -> Result<()> {
        look(model)?;
        backward_step(optimizer, &model.loss(&data(2.0))?)?;
        look(model).map(drop)
    }

    #[test]
    fn is_silent() {
        for look in [error, plain_error, confidence, first] {
            healthy(|| {
                let (model, mut optimizer) = model("evaluated")?;
                (0..2).try_for_each(|_| train_step(&model, &mut optimizer, look))
            });
        }
    }

    /// Its number scales the loss.
    #[measured]
    fn weighed(model: &Model, optimizer: &mut AdamW) -> Result<()> {
        let weight = f64::from(error(model)?);
        backward_step(optimizer, &(model.loss(&data(2.0))? * weight)?)
    }

    #[test]
    fn a_number_of_it_may_go_into_the_loss() {
        silent("weighed", weighed);
    }

    /// The evaluation runs a layer that the training has another form of.
    #[measured]
    fn with_norm(model: &Model, optimizer: &mut AdamW) -> Result<()> {
        let logits = model.b.forward(&norm(&model.a.forward(&data(1.0))?)?)?;
        logits.argmax(D::Minus1)?.to_vec1::<u32>()?;
        backward_step(optimizer, &model.loss(&data(2.0))?)
    }

    #[test]
    fn with_a_fast_norm_is_silent() {
        silent("evaluated norm", with_norm);
    }
}

/// Text that the policy makes is trained on, with the probabilities that chose it long gone.
#[measured]
fn rollout(model: &Model, optimizer: &mut AdamW) -> Result<()> {
    let x = data(1.0);
    let mut actions = Vec::new();
    for row in probs(&model.forward(&x)?)?.to_vec2::<f32>()? {
        let likely = row.iter().position(|share| *share > 0.125).unwrap_or(0);
        actions.push(u32::try_from(likely).expect("one of eight"));
    }
    let actions = Tensor::new(actions, x.device())?;
    let scores = ops::log_softmax(&model.forward(&x)?, D::Minus1)?;
    backward_step(optimizer, &loss::nll(&scores, &actions)?)
}

#[test]
fn a_rollout_is_silent() {
    silent("rollout", rollout);
}

#[profile_span]
#[record_scalar("confidence")]
fn confidence(probs: &Tensor) -> Result<Tensor> {
    probs.max(1)?.mean_all()
}

/// The loss does not use what the second head says.
#[measured]
fn measured_head(model: &Model, optimizer: &mut AdamW) -> Result<()> {
    let x = data(1.0);
    let hidden = model.a.forward(&x)?;
    confidence(&probs(&model.b.forward(&x)?)?)?;
    backward_step(optimizer, &loss::mse(&hidden, &x)?)
}

#[test]
fn a_head_that_is_only_measured_is_silent() {
    silent("measured", measured_head);
    let (made, trace) = capture(|| {
        let (model, mut optimizer) = model("measured once")?;
        measured_head(&model, &mut optimizer)
    });
    made.expect("a step");
    let reasons = missing(&trace);
    assert_eq!(
        reasons,
        ["bias", "weight"].map(|name| (
            format!("measured once.1.{name}"),
            "the graph of the loss does not reach it".to_owned()
        ))
    );
}

/// Targets of the network itself.
mod own_targets {
    use super::*;

    fn cross_entropy(model: &Model, target: &Tensor, x: &Tensor) -> Result<Tensor> {
        let strong = model.a.forward(&(x + 0.1)?)?;
        let scores = ops::log_softmax(&strong, D::Minus1)?;
        let loss = (target * scores)?.sum(1)?.mean_all()?.neg()?;
        loss + loss::mse(&model.b.forward(x)?, x)?
    }

    #[measured]
    fn consistent(model: &Model, optimizer: &mut AdamW) -> Result<()> {
        let x = data(1.0);
        let target = probs(&model.a.forward(&x)?)?.detach();
        backward_step(optimizer, &cross_entropy(model, &target, &x)?)
    }

    #[profile_span]
    fn sharpen(logits: &Tensor) -> Result<Tensor> {
        let squared = ops::softmax_last_dim(logits)?.sqr()?;
        squared.broadcast_div(&squared.sum_keepdim(1)?)
    }

    #[measured]
    fn sharpened(model: &Model, optimizer: &mut AdamW) -> Result<()> {
        let x = data(1.0);
        let weak = model.a.forward(&x)?;
        let target = (sharpen(&weak.detach())? + sharpen(&weak)?.detach())?;
        backward_step(optimizer, &cross_entropy(model, &target, &x)?)
    }

    #[test]
    fn that_the_caller_detaches_are_silent() {
        silent("consistent", consistent);
        silent("sharpened", sharpened);
    }
}

/// The same functions, on the way into the loss.
mod told {
    use super::*;

    fn told(step: fn(&Model, &mut AdamW) -> Result<()>) -> (Vec<String>, Vec<String>) {
        let (made, trace) = capture(|| {
            let (model, mut optimizer) = model("told")?;
            step(&model, &mut optimizer)
        });
        made.expect("a step");
        let lost = missing(&trace).into_iter().map(|(key, reason)| {
            assert!(reason.starts_with("cut in "), "{key}: {reason}");
            key
        });
        (cut_in(&trace), lost.collect())
    }

    /// Nothing is missing: what goes around the cut reaches the same variables.
    #[measured]
    fn gated(model: &Model, optimizer: &mut AdamW) -> Result<()> {
        let x = data(1.0);
        let hidden = model.a.forward(&x)?;
        let gated = (&hidden * (probs(&hidden)? * 2.0)?)?;
        backward_step(optimizer, &loss::mse(&model.b.forward(&gated)?, &x)?)
    }

    #[measured]
    fn normed_beside(model: &Model, optimizer: &mut AdamW) -> Result<()> {
        let x = data(1.0);
        let hidden = model.a.forward(&x)?;
        let normed = model
            .b
            .forward(&norm(&hidden)?.narrow(0, 0, 4)?.t()?.contiguous()?.t()?)?;
        let out = (hidden.narrow(0, 4, 4)? + normed)?;
        backward_step(optimizer, &out.sqr()?.mean_all()?)
    }

    /// After an evaluation with the same functions, which is not what is told.
    #[measured]
    fn pooled(model: &Model, optimizer: &mut AdamW) -> Result<()> {
        probs(&model.forward(&data(3.0))?)?.to_vec2::<f32>()?;
        let x = data(1.0);
        let pooled = probs(&model.a.forward(&x)?)?.mean_keepdim(0)?;
        backward_step(optimizer, &model.b.forward(&pooled)?.sqr()?.mean_all()?)
    }

    #[test]
    fn what_goes_into_the_loss_is_told() {
        let name = |function: &str| {
            vec![format!(
                "{}::{function}",
                module_path!().trim_end_matches("::told")
            )]
        };
        assert_eq!(told(gated), (name("probs"), vec![]));
        assert_eq!(told(normed_beside), (name("norm"), vec![]));
        let lost = ["told.0.bias", "told.0.weight"].map(str::to_owned);
        assert_eq!(told(pooled), (name("probs"), lost.to_vec()));
    }
}

/// Where the graph ends in what the program wrote itself, nothing is accused, and what has no gradient says where.
mod places_of_missing {
    use candle_core::{DType, Device};
    use candle_nn::kv_cache::Cache;

    use super::*;

    type Between = fn(&Tensor) -> Result<Tensor>;

    #[profile_span(name = "rectified")]
    fn rectified(x: &Tensor) -> Result<Tensor> {
        x.detach().relu()
    }

    #[profile_span(name = "scaled")]
    fn scaled(x: &Tensor) -> Result<Tensor> {
        let most = x.abs()?.max_all()?.to_scalar::<f32>()?;
        Tensor::new(x.to_vec2::<f32>()?, &Device::Cpu)? / f64::from(most)
    }

    #[profile_span(name = "copied")]
    fn copied(x: &Tensor) -> Result<Tensor> {
        let copy = Tensor::zeros((8, 8), DType::F32, &Device::Cpu)?;
        copy.slice_set(&x.contiguous()?, 0, 0)?;
        Ok(copy)
    }

    #[profile_span(name = "cached")]
    fn cached(x: &Tensor) -> Result<Tensor> {
        let mut cache = Cache::new(0, 16);
        cache.append(x)?;
        Ok(cache.current_data()?.expect("data"))
    }

    #[measured]
    fn train_step(model: &Model, optimizer: &mut AdamW, between: Between) -> Result<()> {
        let x = data(1.0);
        let hidden = between(&model.a.forward(&x)?)?;
        backward_step(optimizer, &loss::mse(&model.b.forward(&hidden)?, &x)?)
    }

    #[measured]
    fn called(model: &Model, optimizer: &mut AdamW) -> Result<()> {
        let x = data(1.0);
        let hidden = probs(&model.a.forward(&x)?)?.detach();
        backward_step(optimizer, &loss::mse(&model.b.forward(&hidden)?, &x)?)
    }

    fn reason(step: impl FnOnce(&Model, &mut AdamW) -> Result<()>) -> String {
        let (made, trace) = capture(|| {
            let (model, mut optimizer) = model("placed")?;
            step(&model, &mut optimizer)
        });
        made.expect("a step");
        assert_eq!(cut_in(&trace), [""; 0]);
        let [(first, reason), (second, same)] = missing(&trace).try_into().expect("two");
        assert_eq!(
            (first.as_str(), second.as_str()),
            ("placed.0.bias", "placed.0.weight")
        );
        assert_eq!(reason, same);
        reason
    }

    #[test]
    fn are_named() {
        let between: [(Between, &str); 4] = [
            (rectified, "detached in rectified"),
            (scaled, "taken out of the graph as numbers in scaled"),
            (copied, "perhaps cut in copied"),
            (cached, "perhaps cut in cached"),
        ];
        for (between, expected) in between {
            let found = reason(|model, optimizer| train_step(model, optimizer, between));
            assert_eq!(found, expected);
        }
        assert_eq!(
            reason(called),
            "detached where cuts::looked_at::probs is called"
        );
    }
}
