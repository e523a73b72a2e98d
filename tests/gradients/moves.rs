//! Variables that an optimizer no longer moves: told of the optimizer that moved them before, and of no other.

use candle_core::Result;
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
            ("CANDLE_PROFILE_STEPS", "1..9"),
        ],
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("train step 3"), "{}", ran.stderr);
    let lines = ran.stderr.lines().map(|line| line.trim().to_owned());
    lines
        .filter(|line| line.contains("no longer moves"))
        .collect()
}

#[measured]
fn step(loss: impl Fn() -> Result<candle_core::Tensor>, sgds: &mut [SGD]) -> Result<()> {
    sgds.iter_mut()
        .try_for_each(|sgd| backward_step(sgd, &loss()?))
}

#[test]
#[ignore = "a program of the test below"]
fn two_optimizers() {
    let (critic, maker) = (var(&[1.0, 2.0]), var(&[3.0]));
    name_vars("", [("critic", &critic), ("maker", &maker)]);
    let mut sgds =
        [&critic, &maker].map(|var| SGD::new(vec![var.clone()], 0.1).expect("an optimizer"));
    for _ in 0..4 {
        step(
            || weighed(&critic, &[1.0, 1.0])? + weighed(&maker, &[1.0])?,
            &mut sgds,
        )
        .expect("a step");
    }
}

#[test]
#[ignore = "a program of the test below"]
fn stopped() {
    let (small, large) = (var(&[1.0]), var(&[3.0]));
    name_vars("", [("large", &large), ("small", &small)]);
    let mut sgds = [SGD::new(vec![small.clone(), large.clone()], 0.1).expect("an optimizer")];
    for weight in [1.0, 1.0, 1e-9, 1e-9] {
        step(
            || weighed(&small, &[weight])? + weighed(&large, &[1.0])?,
            &mut sgds,
        )
        .expect("a step");
        if weight < 1.0 {
            sgds[0].set_learning_rate(0.0);
        }
    }
}

#[test]
fn what_belongs_to_another_optimizer_is_not_said_to_stand_still() {
    assert_eq!(told("moves::two_optimizers"), [""; 0]);
}

#[test]
fn what_its_optimizer_stops_to_move_is_told_and_rounding_is_not() {
    let line = "the optimizer no longer moves large, although they have gradients";
    assert_eq!(told("moves::stopped"), [line]);
}
