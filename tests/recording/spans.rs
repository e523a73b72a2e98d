//! Spans: parents, kinds, steps, places; guards in any order.

use candle_core::{DType, Device, Tensor};
use candle_profiler::{ExecutionStep, profile_span, profile_step, span, step_span};
use serde_json::Value;
use tests::capturing::region;

#[profile_step(forward, kind = module)]
fn forward() {
    inner();
    inner();
}

#[profile_span(kind = op)]
fn inner() {}

#[profile_step(bwd)]
fn backward() {}

#[profile_step(optim, name = "update")]
fn optimizer() {}

#[test]
fn nested_calls_are_children_and_carry_kind_and_step() {
    let ((), trace) = region(|| {
        forward();
        backward();
        optimizer();
    });
    assert_eq!(
        trace.tree(),
        "region*\n  \
           recording::spans::forward module forward\n    \
             recording::spans::inner op\n    \
             recording::spans::inner op\n  \
           recording::spans::backward backward\n  \
           update optimizer\n"
    );
}

#[test]
fn a_child_lies_inside_its_parent_and_siblings_follow_each_other() {
    let ((), trace) = region(forward);
    for span in &trace.spans[1..] {
        let parent = trace
            .spans
            .iter()
            .find(|other| Some(&other.id) == span.parent.as_ref());
        let parent = parent.expect("a parent");
        assert!(parent.time.0 <= span.time.0 && span.time.1 <= parent.time.1);
    }
    let inner = trace.named("recording::spans::inner");
    assert!(inner[0].time.1 <= inner[1].time.0);
    assert_eq!(trace.spans[0].time.0, 0);
    assert_eq!(trace.spans[0].parent, None);
}

#[test]
fn the_first_span_of_a_place_says_where_it_is() {
    let ((), trace) = region(|| {
        forward();
        let _span = span("free");
    });
    let line = |text: &str| {
        let at = include_str!("spans.rs")
            .lines()
            .position(|line| line.contains(text));
        Value::from(at.expect("the line") + 1)
    };
    let inner = trace.named("recording::spans::inner");
    assert_eq!(inner[0].start["file"], "tests/recording/spans.rs");
    // The attribute or the function's own line, depending on where the compiler says that the expansion is.
    let told = inner[0].start["line"].as_u64().expect("a line");
    let at = line("fn inner() {}").as_u64().expect("a line");
    assert!((at - 1..=at).contains(&told), "{told}");
    assert!(inner[1].start["file"].is_null() && inner[1].start["line"].is_null());
    let free = trace.span("free");
    assert_eq!(free.start["line"], line("let _span = span(\"free\")"));
}

#[profile_span(name = "count {n}")]
fn count(n: u32) -> u32 {
    if n == 0 {
        return 0;
    }
    1 + count(n - 1)
}

#[test]
fn recursion_nests() {
    let (depth, trace) = region(|| count(3));
    assert_eq!(depth, 3);
    let innermost = trace.span("count 0");
    assert_eq!(
        trace.path(innermost),
        ["region", "region", "count 3", "count 2", "count 1"]
    );
}

#[profile_span]
fn early(n: i32) -> Result<i32, std::num::TryFromIntError> {
    inner();
    if n == 0 {
        return Ok(0);
    }
    let small = u8::try_from(n)?;
    inner();
    Ok(i32::from(small))
}

#[test]
fn every_way_out_ends_the_span() {
    let (values, trace) = region(|| (early(0).ok(), early(-1).ok(), early(5).ok()));
    assert_eq!(values, (Some(0), None, Some(5)));
    let early = "  recording::spans::early\n";
    let inner = "    recording::spans::inner op\n";
    assert_eq!(
        trace.tree(),
        format!("region*\n{early}{inner}{early}{inner}{early}{inner}{inner}")
    );
    assert_eq!(
        trace.reason(),
        None,
        "an inner `Err` is no failure of the call"
    );
}

#[test]
fn ending_a_span_ends_what_is_open_above_it() {
    let ((), trace) = region(|| {
        let outer = span("outer");
        let middle = span("middle");
        let top = span("top");
        drop(outer);
        let after = span("after");
        // Late guards do nothing, not even to a span that stands where theirs stood.
        drop(middle);
        drop(top);
        inner();
        drop(after);
    });
    assert_eq!(
        trace.tree(),
        "region*\n  outer\n    middle!cut\n      top!cut\n  after\n    recording::spans::inner op\n"
    );
    let end = trace.span("outer").time.1;
    assert_eq!(
        (trace.span("middle").time.1, trace.span("top").time.1),
        (end, end)
    );
}

#[test]
fn a_guard_that_outlives_its_call_does_nothing() {
    let mut kept = None;
    let ((), trace) = region(|| kept = Some(span("kept")));
    assert_eq!(trace.tree(), "region*\n  kept!cut\n");
    let (_, trace) = region(|| {
        let _span = span("next");
        drop(kept.take());
        inner();
    });
    assert_eq!(
        trace.tree(),
        "region*\n  next\n    recording::spans::inner op\n"
    );
}

#[test]
fn free_functions_open_spans_too() {
    let ((), trace) = region(|| {
        let _forward = step_span("forward", ExecutionStep::Forward);
        span(String::from("owned")).end();
        span("  ").end();
    });
    let tree = trace.tree();
    assert!(
        tree.starts_with("region*\n  forward forward\n    owned\n    tests/recording/spans.rs:"),
        "{tree}"
    );
}

#[test]
fn backward_and_its_step_are_spans() {
    let variable = candle_core::Var::ones(4, DType::F32, &Device::Cpu).expect("a variable");
    let mut optimizer = candle_nn::SGD::new(vec![variable.clone()], 0.5).expect("an optimizer");
    let ((), trace) = region(|| {
        let loss = variable.sqr().and_then(|x| x.sum_all()).expect("a loss");
        candle_profiler::backward_step(&mut optimizer, &loss).expect("a step");
        let loss = variable.sum_all().expect("a loss");
        let grads = candle_profiler::backward(&loss).expect("gradients");
        assert!(grads.get(&variable).is_some());
    });
    assert_eq!(
        trace.tree(),
        "region*\n  backward backward\n    = loss/grad_norm\n  optimizer optimizer\n  backward backward\n    = loss/grad_norm\n"
    );
    let moved: Vec<f32> = Tensor::to_vec1(&variable).expect("numbers");
    assert_eq!(moved, [0.0; 4], "1 - 0.5 × 2");
}
use candle_nn::Optimizer as _;
