//! What functions do with a store: return it, take it, empty it, clip it.

use candle_core::backprop::GradStore;
use candle_core::{DType, Device, Result, Tensor, Var};
use candle_profiler::{backward, measured, name_vars, profile_step, record_gradients};
use tests::capturing::{capture, region};

use crate::{extra, gradients, keys, number, var, weighed};

fn loss(a: &Var, b: &Var) -> Result<Tensor> {
    weighed(a, &[3.0, 4.0])? + weighed(b, &[0.0, 0.0])?
}

#[record_gradients(vars = vars, root = "returned")]
fn returned(loss: &Tensor, vars: &[(&str, &Var)]) -> Result<GradStore> {
    loss.backward()
}

#[test]
fn a_returned_store_is_read_when_it_is_there() {
    let (a, b, unused) = (var(&[1.0, 2.0]), var(&[5.0, 6.0]), var(&[0.5]));
    let (ran, trace) = region(|| {
        let vars = [("net.b", &b), ("net.a", &a), ("net.unused", &unused)];
        returned(&loss(&a, &b)?, &vars).map(drop)
    });
    ran.expect("gradients");
    let text = |key: &str, state: &str, norm| (key.to_owned(), state.to_owned(), norm);
    assert_eq!(
        gradients(&trace, "returned"),
        [
            text("net.b", "zero", Some(0.0)),
            text("net.a", "present", Some(5.0)),
            text("net.unused", "missing", None),
        ],
        "in the order of the list"
    );
    assert!((number(&trace, "returned/grad_norm") - 5.0).abs() < 1e-12);
    assert_eq!(
        extra(&trace, "net.unused", "reason").as_deref(),
        Some("the graph of the loss does not reach it")
    );
}

#[record_gradients(vars = vars, root = "twice")]
fn again(loss: &Tensor, vars: &[(&str, &Var)]) -> Result<GradStore> {
    loss.backward()
}

#[test]
fn a_gradient_that_stays_zero_says_so_from_the_second_capture_on() {
    let (a, b) = (var(&[1.0, 2.0]), var(&[5.0, 6.0]));
    let zero_before = || {
        let (ran, trace) = region(|| again(&loss(&a, &b)?, &[("a", &a), ("b", &b)]).map(drop));
        ran.expect("gradients");
        let gradients = trace.kind("gradient").into_iter();
        gradients
            .filter(|gradient| gradient["zero_before"] == true)
            .map(|gradient| gradient["key"].as_str().expect("a key").to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(zero_before(), [] as [&str; 0]);
    assert_eq!(zero_before(), ["b"]);
}

/// Takes what it needs out of the store.
#[profile_step(optimizer, name = "emptied")]
#[record_gradients(vars = [("a", a), ("b", b)], root = "emptied")]
fn emptied(mut grads: GradStore, a: &Var, b: &Var) -> Option<Tensor> {
    grads.remove(b);
    grads.remove(a)
}

#[test]
fn a_store_that_is_emptied_is_read_before() {
    let (a, b) = (var(&[1.0, 2.0]), var(&[5.0, 6.0]));
    let (ran, trace) = region(|| -> Result<Vec<f32>> {
        let grads = loss(&a, &b)?.backward()?;
        emptied(grads, &a, &b).expect("a gradient").to_vec1()
    });
    assert_eq!(ran.expect("gradients"), [3.0, 4.0]);
    let states: Vec<String> = gradients(&trace, "emptied")
        .into_iter()
        .map(|(_, state, _)| state)
        .collect();
    assert_eq!(states, ["present", "zero"]);
}

/// Scales all gradients so that their norm is at most `most`.
#[record_gradients(vars = vars, root = "clipped {most}")]
fn clip(grads: &mut GradStore, vars: &[Var], most: f64) -> Result<()> {
    let mut sum = 0.0;
    for var in vars {
        let gradient = grads.get(var).expect("a gradient");
        sum += f64::from(gradient.sqr()?.sum_all()?.to_scalar::<f32>()?);
    }
    for var in vars {
        let gradient = grads.remove(var).expect("a gradient");
        grads.insert(var, (gradient * (most / sum.sqrt()))?);
    }
    Ok(())
}

#[test]
fn a_store_that_is_clipped_in_place_is_read_before_and_its_norm_after() {
    let (a, b) = (var(&[1.0, 2.0]), var(&[5.0, 6.0]));
    name_vars("clipped", [("a", &a), ("b", &b)]);
    let (ran, trace) = region(|| -> Result<()> {
        let loss = (weighed(&a, &[3.0, 4.0])? + weighed(&b, &[12.0, 0.0])?)?;
        clip(&mut loss.backward()?, &[a.clone(), b.clone()], 1.5)
    });
    ran.expect("gradients");
    assert_eq!(keys(&trace, "clipped 1.5"), ["clipped.a", "clipped.b"]);
    assert!((number(&trace, "clipped 1.5/grad_norm") - 13.0).abs() < 1e-6);
    assert!((number(&trace, "clipped 1.5/grad_norm/after") - 1.5).abs() < 1e-6);
}

#[test]
fn statements_and_parameters_and_futures_take_the_attribute() {
    #[profile_step(backward, name = "inline")]
    fn inline(loss: &Tensor) -> Result<usize> {
        #[record_gradients(root = "bound")]
        let grads = loss.backward()?;
        look(&grads)
    }
    #[profile_step(optimizer, name = "look")]
    fn look(#[record_gradients(root = "argument")] grads: &GradStore) -> Result<usize> {
        Ok(grads.get_ids().count())
    }
    #[record_gradients(root = "awaited")]
    async fn awaited(loss: &Tensor) -> Result<GradStore> {
        loss.backward()
    }
    let (a, b) = (var(&[1.0, 2.0]), var(&[5.0, 6.0]));
    name_vars("statements", [("a", &a), ("b", &b)]);
    let (ran, trace) = region(|| -> Result<()> {
        let loss = loss(&a, &b)?;
        inline(&loss)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .expect("a runtime");
        runtime.block_on(awaited(&loss)).map(drop)
    });
    ran.expect("gradients");
    for root in ["bound", "argument", "awaited"] {
        assert_eq!(
            keys(&trace, root),
            ["statements.a", "statements.b"],
            "{root}"
        );
    }
}

#[test]
fn norms_are_no_false_zeros_and_no_infinities() {
    let (tiny, huge) = (var(&[1.0; 4]), var(&[1.0; 4]));
    let large = Var::new(&[1f64; 4], &Device::Cpu).expect("a variable");
    let (ran, trace) = region(|| -> Result<()> {
        backward(&(weighed(&tiny, &[1e-30; 4])? + weighed(&huge, &[1e30; 4])?)?)?;
        // Its square, and that of the sum, are beyond f64.
        let weights = Tensor::new(&[1e200f64; 4], &Device::Cpu)?;
        backward(&(large.as_tensor() * weights)?.sum_all()?).map(drop)
    });
    ran.expect("gradients");
    let norms: Vec<f64> = gradients(&trace, "loss")
        .into_iter()
        .map(|(_, state, norm)| {
            assert_eq!(state, "present");
            norm.expect("a norm")
        })
        .collect();
    for expected in [2e-30, 2e30, 2e200] {
        let near = |norm: &&f64| (**norm / expected - 1.0).abs() < 1e-6;
        assert_eq!(
            norms.iter().filter(near).count(),
            1,
            "{expected} of {norms:?}"
        );
    }
}

#[test]
fn gradients_that_are_not_finite_have_no_norm() {
    let a = var(&[1.0, 0.0]);
    let (ran, trace) = region(|| backward(&a.log()?.sum_all()?).map(drop));
    ran.expect("gradients");
    let [(_, state, norm)] = gradients(&trace, "loss").try_into().expect("one");
    assert_eq!((state.as_str(), norm), ("non_finite", None));
    assert!(!trace.labels().contains(&"loss/grad_norm"));
}

#[test]
fn accumulated_stores_are_read_each_time() {
    #[measured(name = "accumulating")]
    fn step(a: &Var) -> Result<()> {
        let mut sum: Option<Tensor> = None;
        for part in 1..=3u8 {
            let grads = backward(&weighed(a, &[f32::from(part), 0.0])?)?;
            let gradient = grads.get(a).expect("a gradient");
            sum = Some(match sum {
                Some(sum) => (sum + gradient)?,
                None => gradient.clone(),
            });
        }
        candle_profiler::record_gradients("sum", [("a", sum), ("none", None)]);
        Ok(())
    }
    let a = var(&[1.0, 2.0]);
    let (ran, trace) = capture(|| step(&a));
    ran.expect("gradients");
    let norms: Vec<Option<f64>> = gradients(&trace, "loss")
        .into_iter()
        .map(|(_, _, norm)| norm)
        .collect();
    assert_eq!(norms, [Some(1.0), Some(2.0), Some(3.0)]);
    assert_eq!(
        gradients(&trace, "sum"),
        [
            ("a".to_owned(), "present".to_owned(), Some(6.0)),
            ("none".to_owned(), "missing".to_owned(), None)
        ]
    );
}

#[test]
fn nothing_is_read_of_half_floats_wrongly() {
    let a = Var::ones(3, DType::BF16, &Device::Cpu).expect("a variable");
    let (ran, trace) = region(|| backward(&(a.as_tensor() * 2.0)?.sum_all()?).map(drop));
    ran.expect("gradients");
    let [(_, state, norm)] = gradients(&trace, "loss").try_into().expect("one");
    assert_eq!(state, "present");
    assert!((norm.expect("a norm") - 12f64.sqrt()).abs() < 1e-12);
}
