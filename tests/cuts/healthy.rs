//! Programs in which tensors lose their graph for good reasons: none of them gets a word.

use candle_core::{D, DType, Device, Module, ModuleT, Result, Tensor, Var};
use candle_nn::{
    AdamW, BatchNorm, Embedding, LayerNorm, Linear, Optimizer, SGD, VarBuilder, VarMap,
};
use candle_profiler::{
    backward, backward_step, detached, measured, profile_span, profile_step, record_scalar,
    record_stats,
};
use tests::capturing::captures;

use crate::{cut_in, loss_of, numbers, ones, variable};

/// Runs a program; fails where one of its traces says that a graph is cut.
pub(crate) fn healthy(program: impl FnOnce() -> Result<()>) {
    let (ran, traces) = captures(program);
    ran.expect("it runs");
    assert!(!traces.is_empty(), "something was captured");
    for trace in traces {
        assert_eq!(cut_in(&trace), [""; 0], "in {}", trace.measured().name);
    }
}

fn labels(count: u32) -> Tensor {
    Tensor::arange(0, count, &Device::Cpu)
        .expect("labels")
        .affine(1.0, 0.0)
        .expect("labels")
}

#[profile_step(forward, name = "network")]
fn network(layers: &[Linear], x: &Tensor) -> Result<Tensor> {
    let mut x = x.clone();
    for (at, layer) in layers.iter().enumerate() {
        x = layer.forward(&x)?;
        if at + 1 < layers.len() {
            x = x.relu()?;
        }
    }
    Ok(x)
}

pub(crate) fn layers(vars: &VarMap, sizes: &[usize]) -> Result<Vec<Linear>> {
    let vb = VarBuilder::from_varmap(vars, DType::F32, &Device::Cpu);
    let pairs = sizes.windows(2).enumerate();
    pairs
        .map(|(at, pair)| candle_nn::linear(pair[0], pair[1], vb.pp(format!("{at}"))))
        .collect()
}

pub(crate) fn adam(vars: &VarMap) -> Result<AdamW> {
    AdamW::new_lr(vars.all_vars(), 1e-2)
}

/// 1: a classifier that counts what it tells right before the backward pass, as numbers and as tensors.
mod accuracy {
    use super::*;

    #[profile_span]
    #[record_scalar("accuracy")]
    fn accuracy(logits: &Tensor, labels: &Tensor) -> Result<Tensor> {
        let right = logits.argmax(D::Minus1)?.eq(labels)?;
        right.to_dtype(DType::F32)?.mean_all()
    }

    #[profile_span]
    fn each_right(logits: &Tensor, labels: &Tensor) -> Result<Tensor> {
        logits.argmax(D::Minus1)?.eq(labels)?.to_dtype(DType::F32)
    }

    #[profile_span]
    fn confidence(logits: &Tensor) -> Result<Tensor> {
        candle_nn::ops::softmax_last_dim(logits)?
            .max(D::Minus1)?
            .mean_all()
    }

    #[profile_span]
    fn loss_and_accuracy(logits: &Tensor, labels: &Tensor) -> Result<(Tensor, Tensor)> {
        let loss = candle_nn::loss::cross_entropy(logits, labels)?;
        Ok((loss, accuracy(logits, labels)?))
    }

    #[measured]
    fn train_step(layers: &[Linear], optimizer: &mut AdamW) -> Result<()> {
        let (x, labels) = (numbers(&[6, 8], 1.0), labels(6));
        let logits = network(layers, &x)?;
        each_right(&logits, &labels)?;
        confidence(&logits)?;
        let (loss, _) = loss_and_accuracy(&logits, &labels)?;
        backward_step(optimizer, &loss)
    }

    #[test]
    fn is_silent() {
        healthy(|| {
            let vars = VarMap::new();
            let layers = layers(&vars, &[8, 16, 6])?;
            let mut optimizer = adam(&vars)?;
            (0..3).try_for_each(|_| train_step(&layers, &mut optimizer))
        });
    }
}

/// 2: Q-learning with a target network whose variables are tracked like any others, and detached targets.
mod q_learning {
    use super::*;

    #[profile_span]
    fn targets(next: &Tensor, rewards: &Tensor) -> Result<Tensor> {
        (rewards + next.max(D::Minus1)?.detach().affine(0.9, 0.0)?)?
            .detach()
            .contiguous()
    }

    /// Calls another that detaches: the text of this one does not say so.
    #[profile_span]
    fn temporal_difference(q: &Tensor, next: &Tensor, rewards: &Tensor) -> Result<Tensor> {
        let targets = targets(next, rewards)?;
        loss_of(&(q.max(D::Minus1)? - targets)?)
    }

    #[profile_span]
    fn blended(target: &Var, online: &Var) -> Result<Tensor> {
        (target.as_tensor() * 0.9)? + (online.as_tensor() * 0.1)?
    }

    #[measured]
    fn learn(
        online: &VarMap,
        target: &VarMap,
        nets: &[Vec<Linear>; 2],
        optimizer: &mut AdamW,
    ) -> Result<()> {
        let (now, next) = (numbers(&[5, 4], 1.0), numbers(&[5, 4], 2.0));
        let q = network(&nets[0], &now)?;
        let next = network(&nets[1], &next)?;
        let loss = temporal_difference(&q, &next, &numbers(&[5], 3.0))?;
        backward_step(optimizer, &loss)?;
        let online = online.data().lock().expect("the map");
        for (name, var) in target.data().lock().expect("the map").iter() {
            let mixed = blended(var, &online[name])?.detach();
            var.set(&mixed.copy()?)?;
        }
        Ok(())
    }

    #[test]
    fn is_silent() {
        healthy(|| {
            let (online, target) = (VarMap::new(), VarMap::new());
            let nets = [layers(&online, &[4, 8, 3])?, layers(&target, &[4, 8, 3])?];
            let mut optimizer = adam(&online)?;
            (0..2).try_for_each(|_| learn(&online, &target, &nets, &mut optimizer))
        });
    }
}

/// 3: PPO: old policies as numbers, advantages computed outside of the graph from what the critic says.
mod policy_gradient {
    use super::*;

    #[profile_span]
    fn log_probs(logits: &Tensor, actions: &Tensor) -> Result<Tensor> {
        candle_nn::ops::log_softmax(logits, D::Minus1)?
            .gather(&actions.unsqueeze(1)?, 1)?
            .squeeze(1)
    }

    #[profile_span]
    fn old_log_probs(logits: &Tensor, actions: &Tensor) -> Result<Tensor> {
        Ok(log_probs(logits, actions)?.detach())
    }

    #[profile_span]
    fn advantages(values: &Tensor, rewards: &[f32]) -> Result<Tensor> {
        let values: Vec<f32> = values.to_vec1()?;
        let advantages: Vec<f32> = rewards.iter().zip(values).map(|(r, v)| r - v).collect();
        Tensor::new(advantages, &Device::Cpu)
    }

    #[measured]
    fn improve(actor: &[Linear], critic: &[Linear], optimizers: &mut [AdamW; 2]) -> Result<()> {
        let states = numbers(&[4, 4], 1.0);
        let actions = labels(4).to_dtype(DType::U32)?.clamp(0u32, 2u32)?;
        let old = old_log_probs(&network(actor, &states)?, &actions)?;
        let values = network(critic, &states)?.squeeze(1)?;
        let rewards = [1.0, 0.5, -0.5, 0.25];
        let advantages = advantages(&values, &rewards)?;
        let ratio = (log_probs(&network(actor, &states)?, &actions)? - old)?.exp()?;
        let actor_loss = (ratio * advantages)?.mean_all()?.neg()?;
        backward_step(&mut optimizers[0], &actor_loss)?;
        let critic_loss =
            loss_of(&(values - Tensor::new(&rewards, &Device::Cpu)?.to_dtype(DType::F32)?)?)?;
        backward_step(&mut optimizers[1], &critic_loss)
    }

    #[test]
    fn is_silent() {
        healthy(|| {
            let (actor, critic) = (VarMap::new(), VarMap::new());
            let mut optimizers = {
                layers(&actor, &[4, 8, 3])?;
                layers(&critic, &[4, 8, 1])?;
                [adam(&actor)?, adam(&critic)?]
            };
            let (actor, critic) = (layers(&actor, &[4, 8, 3])?, layers(&critic, &[4, 8, 1])?);
            improve(&actor, &critic, &mut optimizers)
        });
    }
}

/// 4: a transformer of differentiable parts: masks and positions are made from tracked tensors, tokens are integers.
mod transformer {
    use super::*;

    struct Model {
        embedding: Embedding,
        positions: Tensor,
        projection: Linear,
        norm: LayerNorm,
        head: Linear,
    }

    impl Model {
        #[profile_step(forward)]
        fn forward(&self, tokens: &Tensor) -> Result<Tensor> {
            let x = self.embed(tokens)?;
            let x = self.place(&x)?;
            let x = (&x + self.attend(&x)?)?;
            self.head.forward(&self.normalize(&x)?)
        }

        #[profile_span]
        fn embed(&self, tokens: &Tensor) -> Result<Tensor> {
            self.embedding.forward(tokens)
        }

        #[profile_span]
        fn place(&self, x: &Tensor) -> Result<Tensor> {
            x.broadcast_add(&self.table(x)?)
        }

        /// Takes a tracked tensor for its length alone.
        #[profile_span]
        fn table(&self, x: &Tensor) -> Result<Tensor> {
            self.positions.narrow(0, 0, x.dim(1)?)
        }

        #[profile_span]
        #[record_stats("attended")]
        fn attend(&self, x: &Tensor) -> Result<Tensor> {
            let q = self.projection.forward(x)?;
            let scores = q.matmul(&q.t()?)?;
            let scores = scores.broadcast_add(&self.mask(&scores)?)?;
            candle_nn::ops::softmax(&scores, D::Minus1)?.matmul(&q)
        }

        #[profile_span]
        fn mask(&self, scores: &Tensor) -> Result<Tensor> {
            let length = scores.dim(D::Minus1)?;
            let mask = triangle(length);
            Tensor::from_vec(mask, (length, length), scores.device())
        }

        #[profile_span]
        fn normalize(&self, x: &Tensor) -> Result<Tensor> {
            let (weight, bias) = (self.norm.weight(), self.norm.bias().expect("a bias"));
            candle_nn::ops::layer_norm_slow(x, weight, bias, 1e-5)
        }
    }

    fn triangle(length: usize) -> Vec<f32> {
        let cell = |at: usize| {
            if at % length > at / length {
                f32::NEG_INFINITY
            } else {
                0.0
            }
        };
        (0..length * length).map(cell).collect()
    }

    #[measured]
    fn train_step(model: &Model, optimizer: &mut AdamW) -> Result<()> {
        let tokens = Tensor::new(&[[1u32, 2, 3, 4], [4, 3, 2, 1]], &Device::Cpu)?;
        let logits = model.forward(&tokens)?.flatten_to(1)?;
        let loss = candle_nn::loss::cross_entropy(&logits, &tokens.flatten_all()?)?;
        backward_step(optimizer, &loss)
    }

    #[test]
    fn is_silent() {
        healthy(|| {
            let vars = VarMap::new();
            let vb = VarBuilder::from_varmap(&vars, DType::F32, &Device::Cpu);
            let model = Model {
                embedding: candle_nn::embedding(7, 8, vb.pp("embedding"))?,
                positions: numbers(&[32, 8], 1.0),
                projection: candle_nn::linear(8, 8, vb.pp("projection"))?,
                norm: candle_nn::layer_norm(8, 1e-5, vb.pp("norm"))?,
                head: candle_nn::linear(8, 7, vb.pp("head"))?,
            };
            let mut optimizer = adam(&vars)?;
            train_step(&model, &mut optimizer)
        });
    }
}

/// 5: evaluation and generation between and after the training steps, in the region and outside, with fast layers.
mod evaluation {
    use super::*;

    #[profile_span]
    fn fast(layers: &[Linear], norm: &LayerNorm, x: &Tensor) -> Result<Tensor> {
        candle_nn::ops::softmax_last_dim(&norm.forward(&network(layers, x)?)?)
    }

    #[profile_span]
    fn sharpen(x: &Tensor) -> Result<Tensor> {
        candle_nn::ops::softmax_last_dim(x)
    }

    #[measured]
    fn train_step(layers: &[Linear], norm: &LayerNorm, sgd: &mut SGD) -> Result<()> {
        let x = numbers(&[6, 8], 1.0);
        let logits = network(layers, &x)?;
        // Looked at, not learned from.
        sharpen(&logits)?;
        backward_step(sgd, &loss_of(&logits)?)?;
        let out = fast(
            layers,
            norm,
            &network(layers, &x)?
                .narrow(1, 0, 6)?
                .pad_with_zeros(1, 0, 2)?,
        )?;
        sharpen(&sharpen(&out)?).map(drop)
    }

    #[measured(infer)]
    fn generate(layers: &[Linear], norm: &LayerNorm) -> Result<()> {
        let mut x = numbers(&[1, 8], 2.0);
        for _ in 0..3 {
            x = fast(layers, norm, &x)?.pad_with_zeros(1, 0, 2)?;
        }
        Ok(())
    }

    #[measured]
    fn evaluate_only(layers: &[Linear], norm: &LayerNorm) -> Result<()> {
        let hidden = network(layers, &numbers(&[6, 8], 1.0))?;
        fast(layers, norm, &hidden.pad_with_zeros(1, 0, 2)?).map(drop)
    }

    #[test]
    fn is_silent() {
        healthy(|| {
            let vars = VarMap::new();
            let layers = layers(&vars, &[8, 6])?;
            let norm = LayerNorm::new(ones(&[6]), ones(&[6]), 1e-5);
            let mut sgd = SGD::new(vars.all_vars(), 0.1)?;
            for _ in 0..2 {
                train_step(&layers, &norm, &mut sgd)?;
                generate(&layers, &norm)?;
                evaluate_only(&layers, &norm)?;
            }
            Ok(())
        });
    }
}

/// 6: a GAN: two networks, two losses, the fakes detached for one of them.
mod adversaries {
    use super::*;

    #[profile_span]
    fn judged(critic: &[Linear], real: &Tensor, fake: &Tensor) -> Result<Tensor> {
        let fake = fake.detach();
        let scores = (network(critic, &fake)? - network(critic, real)?)?;
        scores.mean_all()
    }

    #[profile_span]
    fn frozen(fake: &Tensor) -> Result<Tensor> {
        Ok(fake.detach())
    }

    #[measured]
    fn train_step(maker: &[Linear], critic: &[Linear], optimizers: &mut [AdamW; 2]) -> Result<()> {
        let fake = network(maker, &numbers(&[5, 3], 1.0))?;
        frozen(&fake)?;
        backward_step(
            &mut optimizers[0],
            &judged(critic, &numbers(&[5, 4], 2.0), &fake)?,
        )?;
        backward_step(
            &mut optimizers[1],
            &network(critic, &fake)?.neg()?.mean_all()?,
        )
    }

    #[test]
    fn is_silent() {
        healthy(|| {
            let (makers, critics) = (VarMap::new(), VarMap::new());
            let (maker, critic) = (layers(&makers, &[3, 8, 4])?, layers(&critics, &[4, 8, 1])?);
            train_step(&maker, &critic, &mut [adam(&critics)?, adam(&makers)?])
        });
    }
}

/// 7: a convolutional network with batch norm and dropout.
mod convolutions {
    use super::*;

    struct Model {
        convolution: candle_nn::Conv2d,
        norm: BatchNorm,
        head: Linear,
    }

    impl Model {
        #[profile_step(forward)]
        fn forward(&self, x: &Tensor) -> Result<Tensor> {
            let x = self.normalize(&self.convolution.forward(x)?)?.relu()?;
            let x = self.drop_out(&x)?.max_pool2d(2)?;
            self.head.forward(&x.flatten_from(1)?)
        }

        #[profile_span]
        fn normalize(&self, x: &Tensor) -> Result<Tensor> {
            self.norm.forward_t(x, true)
        }

        #[profile_span]
        fn drop_out(&self, x: &Tensor) -> Result<Tensor> {
            x * self.kept(x)?
        }

        /// A mask of the shape of its argument, made by a helper.
        #[profile_span]
        fn kept(&self, x: &Tensor) -> Result<Tensor> {
            coins(x)
        }
    }

    fn coins(x: &Tensor) -> Result<Tensor> {
        let kept: Vec<f32> = (0..x.elem_count())
            .map(|n| if n % 5 == 0 { 0.0 } else { 1.25 })
            .collect();
        Tensor::from_vec(kept, x.shape(), x.device())
    }

    #[measured]
    fn train_step(model: &Model, optimizer: &mut AdamW) -> Result<()> {
        let logits = model.forward(&numbers(&[2, 1, 6, 6], 1.0))?;
        backward_step(
            optimizer,
            &candle_nn::loss::cross_entropy(&logits, &labels(2))?,
        )
    }

    #[test]
    fn is_silent() {
        healthy(|| {
            let vars = VarMap::new();
            let vb = VarBuilder::from_varmap(&vars, DType::F32, &Device::Cpu);
            let model = Model {
                convolution: candle_nn::conv2d(1, 3, 3, Default::default(), vb.pp("c"))?,
                norm: candle_nn::batch_norm(3, 1e-5, vb.pp("n"))?,
                head: candle_nn::linear(12, 4, vb.pp("h"))?,
            };
            train_step(&model, &mut adam(&vars)?)
        });
    }
}

/// 8: a recurrent network over a sequence, its state made from its input, cut between sequences.
mod recurrence {
    use super::*;

    #[profile_span]
    fn cell(w: &Var, u: &Var, x: &Tensor, state: &Tensor) -> Result<Tensor> {
        (x.matmul(w)? + state.matmul(u)?)?.tanh()
    }

    #[profile_span]
    fn start(x: &Tensor) -> Result<Tensor> {
        x.zeros_like()
    }

    #[profile_span]
    fn carried(state: &Tensor) -> Result<Tensor> {
        Ok(state.detach())
    }

    #[measured]
    fn train_step(w: &Var, u: &Var, kept: &mut Option<Tensor>, sgd: &mut SGD) -> Result<()> {
        let first = numbers(&[2, 4], 1.0).matmul(w)?;
        let mut state = match kept.take() {
            Some(state) => state,
            None => start(&first)?,
        };
        for turn in 0..4 {
            state = cell(w, u, &numbers(&[2, 4], f64::from(turn)), &state)?;
        }
        backward_step(sgd, &loss_of(&state)?)?;
        *kept = Some(carried(&state)?);
        Ok(())
    }

    #[test]
    fn is_silent() {
        healthy(|| {
            let (w, u) = (variable(&[4, 4], 1.0), variable(&[4, 4], 2.0));
            let mut sgd = SGD::new(vec![w.clone(), u.clone()], 0.1)?;
            let mut kept = None;
            (0..3).try_for_each(|_| train_step(&w, &u, &mut kept, &mut sgd))
        });
    }
}

/// 9: distillation: soft targets of a teacher whose variables are tracked, said to be meant; and rounded numbers.
mod distillation {
    use super::*;

    #[profile_span(detached)]
    fn soft_targets(teacher: &[Linear], x: &Tensor) -> Result<Tensor> {
        candle_nn::ops::softmax_last_dim(&soften(&network(teacher, x)?)?)
    }

    #[profile_span]
    fn soften(logits: &Tensor) -> Result<Tensor> {
        logits / 2.0
    }

    #[profile_span]
    fn hardened(targets: &Tensor) -> Result<Tensor> {
        targets.round()?.ge(0.5)?.to_dtype(DType::F32)
    }

    #[profile_span]
    fn hinted(teacher: &[Linear], x: &Tensor) -> Result<Tensor> {
        let hidden = network(teacher, x)?;
        let _meant = detached();
        spread(&hidden)
    }

    #[profile_span]
    fn spread(x: &Tensor) -> Result<Tensor> {
        candle_nn::ops::softmax_last_dim(x)
    }

    #[measured]
    fn train_step(teacher: &[Linear], student: &[Linear], optimizer: &mut AdamW) -> Result<()> {
        let x = numbers(&[4, 5], 1.0);
        let (targets, hints) = (soft_targets(teacher, &x)?, hinted(teacher, &x)?);
        let learned = candle_nn::ops::log_softmax(&network(student, &x)?, D::Minus1)?;
        hardened(&learned.exp()?)?;
        let loss = ((targets + hints)? * learned)?
            .sum(D::Minus1)?
            .neg()?
            .mean_all()?;
        backward_step(optimizer, &loss)
    }

    #[test]
    fn is_silent() {
        healthy(|| {
            let (teachers, students) = (VarMap::new(), VarMap::new());
            let (teacher, student) = (layers(&teachers, &[5, 6])?, layers(&students, &[5, 6])?);
            train_step(&teacher, &student, &mut adam(&students)?)
        });
    }
}

/// 10: accumulated gradients, clipped by a norm that takes variables and gives an untracked number; diffusion noise.
mod accumulation {
    use candle_core::backprop::GradStore;

    use super::*;

    #[profile_span]
    fn norm_of(vars: &[Var], grads: &GradStore) -> Result<Tensor> {
        let mut sum = Tensor::zeros((), DType::F32, &Device::Cpu)?;
        for var in vars {
            if let Some(gradient) = grads.get(var) {
                sum = (sum + gradient.sqr()?.sum_all()?)?;
            }
        }
        sum.sqrt()
    }

    #[profile_span]
    fn gradient_of(var: &Var, grads: &GradStore) -> Result<Tensor> {
        grads.get(var).expect("a gradient").contiguous()
    }

    #[profile_span]
    fn noise(x: &Tensor) -> Result<Tensor> {
        x.randn_like(0.0, 1.0)
    }

    #[profile_span]
    fn noised(x: &Tensor) -> Result<Tensor> {
        x + noise(x)?
    }

    #[profile_step(optimizer)]
    fn update(var: &Var, gradient: &Tensor) -> Result<()> {
        var.set(&(var.as_tensor() - (gradient * 0.1)?)?)
    }

    #[measured]
    fn train_step(vars: &[Var]) -> Result<()> {
        let mut sums: Vec<Option<Tensor>> = vec![None; vars.len()];
        for part in 0..3 {
            let hidden = numbers(&[4, 4], f64::from(part)).matmul(&vars[0])?;
            let grads = backward(&loss_of(&noised(&hidden)?.matmul(&vars[1])?)?)?;
            norm_of(vars, &grads)?;
            for (sum, var) in sums.iter_mut().zip(vars) {
                let gradient = gradient_of(var, &grads)?;
                *sum = Some(match sum.take() {
                    Some(sum) => (sum + gradient)?,
                    None => gradient,
                });
            }
        }
        for (sum, var) in sums.iter().flatten().zip(vars) {
            update(var, sum)?;
        }
        Ok(())
    }

    #[test]
    fn is_silent() {
        healthy(|| {
            let vars = [variable(&[4, 4], 1.0), variable(&[4, 2], 2.0)];
            (0..2).try_for_each(|_| train_step(&vars))
        });
    }
}

/// 11: numbers that are taken out of the graph, worked on, and made a tensor again by somebody else.
mod numbers_taken_out {
    use super::*;

    fn tensor_of(numbers: Vec<f32>) -> Result<Tensor> {
        Tensor::new(numbers, &Device::Cpu)
    }

    #[profile_span]
    fn returns(values: &Tensor) -> Result<Tensor> {
        let mut sum = 0.0;
        let discounted = values.to_vec1::<f32>()?.into_iter().rev().map(|value| {
            sum = 0.9 * sum + value;
            sum
        });
        tensor_of(discounted.collect())
    }

    /// As many times the mean as there are values.
    #[profile_span]
    fn baseline(values: &Tensor) -> Result<Tensor> {
        let mean = values.mean_all()?.to_scalar::<f32>()?;
        Tensor::full(mean, values.shape(), values.device())
    }

    #[measured]
    fn improve(critic: &[Linear], optimizer: &mut AdamW) -> Result<()> {
        let values = network(critic, &numbers(&[4, 4], 1.0))?.squeeze(1)?;
        let targets = (returns(&values)? - baseline(&values)?)?;
        backward_step(optimizer, &loss_of(&(values - targets)?)?)
    }

    #[test]
    fn is_silent() {
        healthy(|| {
            let critic = VarMap::new();
            let nets = layers(&critic, &[4, 8, 1])?;
            let mut optimizer = adam(&critic)?;
            (0..2).try_for_each(|_| improve(&nets, &mut optimizer))
        });
    }
}
