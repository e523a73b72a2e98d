//! An exact list of gradients, promised by `gradients = …` and judged.

use candle_core::{Result, Var};
use candle_profiler::candle::GradientCapturePlan;
use candle_profiler::{GradientFamilyContract, backward, measured, span};
use tests::capturing::capture;

use crate::{gradients, keys, var, weighed};

fn plan(vars: &[(&str, &Var)], inactive: &str) -> GradientCapturePlan {
    let named = vars
        .iter()
        .map(|(name, var)| ((*name).to_owned(), (*var).clone()));
    let family = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
    let mut names: Vec<String> = vars.iter().map(|(name, _)| family(name)).collect();
    names.sort();
    names.dedup();
    let families = names
        .into_iter()
        .map(|name| match name == inactive {
            true => GradientFamilyContract::inactive(name),
            false => GradientFamilyContract::active(name, 1),
        })
        .collect();
    GradientCapturePlan::from_named_vars("loss", named, family, families).expect("a plan")
}

#[measured(name = "promised", gradients = plan)]
fn step(plan: &GradientCapturePlan, a: &Var, weights: &[f32], passes: usize) -> Result<()> {
    let _span = span("work");
    for _ in 0..passes {
        backward(&weighed(a, weights)?)?;
    }
    Ok(())
}

#[test]
fn a_promise_that_is_kept_is_complete_by_the_judge() {
    let (a, b) = (var(&[1.0, 2.0]), var(&[1.0]));
    let plan = plan(&[("net.a", &a), ("frozen.b", &b)], "frozen");
    for passes in [1, 3] {
        // Read by the judge: valid, so exactly one event for each entry.
        let (ran, trace) = capture(|| step(&plan, &a, &[3.0, 4.0], passes));
        ran.expect("a step");
        let contract = &trace.meta()["capture_contract"];
        assert_eq!(contract["gradients"], "complete");
        assert_eq!(
            contract["gradient_contract"]["expected"]
                .as_array()
                .map(Vec::len),
            Some(2)
        );
        assert_eq!(
            gradients(&trace, "loss"),
            [
                ("frozen.b".to_owned(), "missing".to_owned(), None),
                ("net.a".to_owned(), "present".to_owned(), Some(5.0)),
            ]
        );
        assert_eq!(trace.reason(), None);
    }
}

#[test]
fn a_promise_that_is_broken_fails_with_a_reason_and_stays_valid() {
    let (a, b) = (var(&[1.0, 2.0]), var(&[1.0]));
    let both = plan(&[("net.a", &a), ("head.b", &b)], "");
    let alone = plan(&[("net.a", &a)], "");
    let none = plan(&[("net.a", &a)], "net");
    for (plan, weights, passes, reason) in [
        (
            &both,
            [3.0, 4.0],
            1,
            "family head has 0 that are not zero, promised are 1",
        ),
        (&alone, [3.0, 4.0], 0, "none was seen of net.a"),
        (&alone, [f32::NAN, 4.0], 1, "that of net.a is not finite"),
        (&alone, [0.0, 0.0], 1, "family net has 0"),
        (
            &none,
            [3.0, 4.0],
            1,
            "net.a has one, although its family net is to have none",
        ),
    ] {
        let (ran, trace) = capture(|| step(plan, &a, &weights, passes));
        ran.expect("the program's own result is its own");
        let said = trace.reason().expect("a reason");
        assert!(said.contains(reason), "{said}");
    }
}

#[test]
fn what_is_not_promised_is_not_recorded() {
    let (a, b) = (var(&[1.0, 2.0]), var(&[1.0]));
    candle_profiler::name_vars("unpromised", [("a", &a), ("b", &b)]);
    let plan = plan(&[("net.a", &a)], "");
    #[measured(name = "more than promised", gradients = plan)]
    fn step(plan: &GradientCapturePlan, a: &Var, b: &Var) -> Result<()> {
        backward(&(weighed(a, &[3.0, 4.0])? + weighed(b, &[1.0])?)?)?;
        candle_profiler::record_gradients("other", [("b", b.as_tensor())]);
        Ok(())
    }
    let (ran, trace) = capture(|| step(&plan, &a, &b));
    ran.expect("a step");
    assert_eq!(keys(&trace, "loss"), ["net.a"]);
    assert_eq!(trace.kind("gradient").len(), 1);
}
