//! Operations of the program's own.

use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape, Tensor, Var};
use candle_profiler::{backward, measured, profile_span};
use tests::capturing::capture;

use crate::{cut_in, cuts, loss_of, numbers, variable};

/// Twice its input.
struct Twice {
    backward: bool,
}

impl CustomOp1 for Twice {
    fn name(&self) -> &'static str {
        "twice"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let CpuStorage::F32(values) = storage else {
            candle_core::bail!("f32 only")
        };
        let twice = values.iter().map(|value| 2.0 * value).collect();
        Ok((CpuStorage::F32(twice), layout.shape().clone()))
    }

    fn bwd(&self, _: &Tensor, _: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        assert!(self.backward, "it has none");
        Ok(Some((gradient * 2.0)?))
    }
}

/// Whether it is tracked hangs on the helper, of which nothing is known by its text.
fn apply(x: &Tensor, backward: bool) -> Result<Tensor> {
    let twice = Twice { backward };
    match backward {
        true => x.apply_op1(twice),
        false => x.apply_op1_no_bwd(&twice),
    }
}

#[profile_span(name = "twice")]
fn twice(x: &Tensor, backward: bool) -> Result<Tensor> {
    apply(x, backward)
}

#[measured(name = "custom")]
fn step(w: &Var, x: &Tensor, with_backward: bool) -> Result<()> {
    let hidden = twice(&x.matmul(w)?, with_backward)?;
    backward(&loss_of(&hidden.matmul(w)?)?).map(drop)
}

#[test]
fn a_custom_operation_without_a_backward_pass_is_caught_and_one_with_is_not() {
    let (w, x) = (variable(&[4, 4], 1.0), numbers(&[3, 4], 2.0));
    let (ran, trace) = capture(|| step(&w, &x, false));
    ran.expect("a step");
    assert_eq!(cuts(&trace), [("twice".to_owned(), "none".to_owned())]);
    let (ran, trace) = capture(|| step(&w, &x, true));
    ran.expect("a step");
    assert_eq!(cut_in(&trace), [""; 0]);
}

#[test]
fn one_that_is_applied_in_the_function_itself_is_explained() {
    #[profile_span(name = "plainly")]
    fn plainly(x: Tensor) -> Result<Tensor> {
        x.apply_op1_no_bwd(&Twice { backward: false })
    }
    #[measured(name = "plain custom")]
    fn step(w: &Var) -> Result<()> {
        backward(&loss_of(&plainly(w.exp()?)?)?).map(drop)
    }
    let w = variable(&[5], 1.0);
    let (ran, trace) = capture(|| step(&w));
    ran.expect("a step");
    let [(span, twin)] = cuts(&trace).try_into().expect("one cut");
    assert_eq!(span, "plainly");
    assert!(twin.contains("bwd"), "{twin}");
}
