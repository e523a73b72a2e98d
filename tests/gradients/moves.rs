//! Variables that an optimizer does not move: told where it moved them before while it moves others, and where the model
//! was made anew; of what may be meant, nothing is said.

use candle_core::backprop::GradStore;
use candle_core::{Result, Tensor, Var};
use candle_nn::{Optimizer, SGD};
use candle_profiler::{backward_step, measured, name_vars};
use tests::program::run;

use crate::{var, weighed};

/// The program below, all of whose steps are captured: what its summaries say about variables that stand still.
fn told(program: &str) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let own = std::env::current_exe().expect("this program");
    let ran = run(
        own.to_str().expect("a path"),
        folder.path(),
        &[program, "--exact", "--ignored", "--nocapture"],
        &[
            ("CANDLE_PROFILE", "traces"),
            ("CANDLE_PROFILE_STEPS", "1..19"),
        ],
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("train step 3"), "{}", ran.stderr);
    let mut problems = Vec::new();
    let mut inside = false;
    for line in ran.stderr.lines() {
        inside = line == "problems" || (inside && !line.is_empty());
        if inside && line != "problems" {
            problems.push(line.trim().to_owned());
        }
    }
    problems
}

#[measured]
fn step<O: Optimizer>(loss: impl Fn() -> Result<Tensor>, optimizers: &mut [O]) -> Result<()> {
    optimizers
        .iter_mut()
        .try_for_each(|optimizer| backward_step(optimizer, &loss()?))
}

fn sgd(vars: &[&Var]) -> SGD {
    let vars = vars.iter().map(|&var| var.clone()).collect();
    SGD::new(vars, 0.1).expect("an optimizer")
}

/// Two optimizers as one; the second may be left out, and so may whole steps.
struct Pair {
    first: SGD,
    second: SGD,
    with_second: bool,
    /// Steps only once in so many times.
    every: usize,
    steps: usize,
}

impl Pair {
    fn of(first: &Var, second: &Var) -> Self {
        Self {
            first: sgd(&[first]),
            second: sgd(&[second]),
            with_second: true,
            every: 1,
            steps: 0,
        }
    }
}

impl Optimizer for Pair {
    type Config = ();

    fn new(_: Vec<Var>, (): ()) -> Result<Self> {
        unreachable!("it is made by hand")
    }

    fn step(&mut self, grads: &GradStore) -> Result<()> {
        self.steps += 1;
        if !self.steps.is_multiple_of(self.every) {
            return Ok(());
        }
        if self.with_second {
            self.second.step(grads)?;
        }
        self.first.step(grads)
    }

    fn learning_rate(&self) -> f64 {
        self.first.learning_rate()
    }

    fn set_learning_rate(&mut self, rate: f64) {
        self.first.set_learning_rate(rate);
        self.second.set_learning_rate(rate);
    }
}

#[test]
#[ignore = "a program of the tests below"]
fn two_optimizers() {
    let (critic, maker) = (var(&[1.0, 2.0]), var(&[3.0]));
    name_vars("", [("critic", &critic), ("maker", &maker)]);
    let mut sgds = [sgd(&[&critic]), sgd(&[&maker])];
    for _ in 0..4 {
        step(
            || weighed(&critic, &[1.0, 1.0])? + weighed(&maker, &[1.0])?,
            &mut sgds,
        )
        .expect("a step");
    }
}

#[test]
#[ignore = "a program of the tests below"]
fn stopped() {
    let (small, large) = (var(&[1.0]), var(&[3.0]));
    name_vars("", [("large", &large), ("small", &small)]);
    let mut pair = [Pair::of(&small, &large)];
    for _ in 0..4 {
        step(
            || weighed(&small, &[1.0])? + weighed(&large, &[1.0])?,
            &mut pair,
        )
        .expect("a step");
        pair[0].with_second = pair[0].steps < 3;
    }
}

#[test]
#[ignore = "a program of the tests below"]
fn rounded() {
    let (small, large) = (var(&[1.0]), var(&[3.0]));
    name_vars("", [("large", &large), ("small", &small)]);
    let mut sgds = [sgd(&[&small, &large])];
    for weight in [1.0, 1.0, 1e-9, 1e-9, 1e-7] {
        step(
            || weighed(&small, &[weight])? + weighed(&large, &[1.0])?,
            &mut sgds,
        )
        .expect("a step");
    }
}

/// A schedule that ends at 0 goes by rates that a number of this type cannot tell from it.
#[test]
#[ignore = "a program of the tests below"]
fn scheduled() {
    let (small, large) = (var(&[1e-3]), var(&[3.0]));
    name_vars("", [("large", &large), ("small", &small)]);
    let mut sgds = [sgd(&[&small, &large])];
    for rate in [1e-1, 1e-2, 1e-8, 1e-12, 0.0, 1e-8] {
        sgds[0].set_learning_rate(rate);
        step(
            || weighed(&small, &[1.0])? + weighed(&large, &[1.0])?,
            &mut sgds,
        )
        .expect("a step");
    }
}

/// It waits while gradients accumulate, also right after the model was made anew, as it was itself.
#[test]
#[ignore = "a program of the tests below"]
fn accumulating() {
    let (a, b) = (var(&[1.0]), var(&[3.0]));
    name_vars("", [("a", &a), ("b", &b)]);
    let mut pair = [Pair::of(&a, &b)];
    pair[0].every = 4;
    for _ in 0..12 {
        step(|| weighed(&a, &[1.0])? + weighed(&b, &[1.0])?, &mut pair).expect("a step");
    }
}

#[test]
#[ignore = "a program of the tests below"]
fn frozen() {
    let (body, head) = (var(&[1.0]), var(&[3.0]));
    name_vars("", [("body", &body), ("head", &head)]);
    let mut sgds = [sgd(&[&head])];
    for _ in 0..4 {
        step(
            || weighed(&body, &[1.0])? + weighed(&head, &[1.0])?,
            &mut sgds,
        )
        .expect("a step");
    }
}

/// The optimizer keeps the variables of the first model.
#[test]
#[ignore = "a program of the tests below"]
fn made_anew() {
    let (mut a, mut b) = (var(&[1.0]), var(&[3.0]));
    name_vars("", [("a", &a), ("b", &b)]);
    let mut sgds = [sgd(&[&a, &b])];
    for turn in 0..5 {
        if turn == 2 {
            (a, b) = (var(&[1.0]), var(&[3.0]));
            name_vars("", [("a", &a), ("b", &b)]);
        }
        step(|| weighed(&a, &[1.0])? + weighed(&b, &[1.0])?, &mut sgds).expect("a step");
    }
}

#[test]
fn what_may_be_meant_is_not_said_to_stand_still() {
    for program in [
        "two_optimizers",
        "rounded",
        "scheduled",
        "accumulating",
        "frozen",
    ] {
        assert_eq!(told(&format!("moves::{program}")), [""; 0], "{program}");
    }
}

#[test]
fn what_its_optimizer_leaves_out_is_told() {
    let line = "the optimizer no longer moves large, although they have gradients";
    assert_eq!(told("moves::stopped"), [line]);
}

#[test]
fn an_optimizer_that_holds_the_variables_of_an_earlier_model_is_told() {
    let line = "the optimizer moves none of a, b, although they have gradients: it moved other variables of these names \
                before, so it may hold those of an earlier model";
    // In the second and third step of three.
    assert_eq!(told("moves::made_anew").join(" "), format!("{line} {line}"));
}
