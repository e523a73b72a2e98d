//! Whose evidence it is, and what observing costs.

use candle_core::{DType, Device, Tensor};
use candle_profiler::{measured, profile_span, record_scalar, record_stats, span};
use tests::capturing::{capture, region};
use tests::trace::Trace;

fn large() -> Tensor {
    Tensor::ones((512, 512), DType::F32, &Device::Cpu).expect("a tensor")
}

#[profile_span(name = "outer")]
#[record_stats("outer's")]
fn outer() -> Tensor {
    let value = inner();
    bare();
    value
}

#[profile_span(name = "inner")]
#[record_stats("inner's")]
fn inner() -> Tensor {
    Tensor::new(1.0_f32, &Device::Cpu).expect("a tensor")
}

/// Without a span of its own.
#[record_scalar("bare")]
fn bare() -> u32 {
    3
}

#[measured(name = "measured")]
#[record_scalar("measured's")]
fn measured_with_a_value() -> u32 {
    let _ = outer();
    7
}

#[test]
fn a_returned_value_is_the_evidence_of_the_span_that_returned_it() {
    let (value, trace) = capture(measured_with_a_value);
    assert_eq!(value, 7);
    assert_eq!(
        trace.tree(),
        "measured*\n  = measured's\n  outer\n    = bare\n    = outer's\n    inner\n      = inner's\n"
    );
}

#[test]
fn free_functions_record_in_the_innermost_open_span() {
    let ((), trace) = region(|| {
        let first = span("first");
        candle_profiler::record_stats("in first", &large());
        drop(first);
        candle_profiler::record_scalar("after", &1);
        let _second = span("second");
        candle_profiler::record_scalar("in second", &2);
    });
    assert_eq!(
        trace.tree(),
        "region*\n  = after\n  first\n    = in first\n  second\n    = in second\n"
    );
}

#[profile_span(name = "turn {n}")]
#[record_scalar("result of {n}")]
fn recursive(n: u32) -> u32 {
    if n == 0 { 0 } else { recursive(n - 1) + 1 }
}

#[test]
fn each_turn_of_a_recursion_has_its_own() {
    let (value, trace) = region(|| recursive(2));
    assert_eq!(value, 2);
    for n in 0..3 {
        let stats = trace.stats(&format!("result of {n}"));
        assert_eq!(stats["span_id"], trace.span(&format!("turn {n}")).id);
        assert_eq!(stats["mean"], f64::from(n));
    }
}

fn overhead(trace: &Trace, name: &str) -> Option<u64> {
    trace.span(name).end["overhead_ns"].as_u64()
}

#[test]
fn what_observing_takes_is_told_on_all_spans_around_it() {
    let ((), trace) = region(|| {
        let tensor = large();
        let _outer = span("around");
        span("idle").end();
        let _busy = span("busy");
        candle_profiler::record_stats("large", &tensor);
        span("later").end();
    });
    let busy = overhead(&trace, "busy").expect("a cost");
    assert_eq!(overhead(&trace, "around"), Some(busy));
    assert_eq!(trace.measured().end["overhead_ns"], busy);
    assert_eq!(trace.spans[0].end["overhead_ns"], busy);
    assert_eq!(
        (overhead(&trace, "idle"), overhead(&trace, "later")),
        (None, None)
    );
    let span = trace.span("busy");
    assert!(busy <= span.time.1 - span.time.0);
}

#[test]
fn statistics_of_a_returned_value_are_taken_after_its_span() {
    #[profile_span(name = "quick")]
    #[record_stats("large")]
    fn quick(tensor: &Tensor) -> Tensor {
        tensor.clone()
    }
    let ((), trace) = region(|| drop(quick(&large())));
    // A look at what comes out, without its elements.
    let look = overhead(&trace, "quick").unwrap_or(0);
    let cost = trace.measured().end["overhead_ns"]
        .as_u64()
        .expect("a cost");
    let cost = cost - look;
    assert!(look < cost / 10, "{look} {cost}");
    let quick = trace.span("quick");
    let measured = trace.measured();
    assert!(
        quick.time.1 + cost <= measured.time.1,
        "the cost lies behind the span"
    );
}

#[test]
fn statistics_are_those_of_the_numbers() {
    let numbers = [1.0_f32, -2.0, 0.0, f32::NAN, 3.5, f32::INFINITY];
    let ((), trace) = region(|| {
        let tensor = Tensor::new(&numbers, &Device::Cpu).expect("a tensor");
        candle_profiler::record_stats("numbers", &tensor);
    });
    let stats = trace.stats("numbers");
    let finite: Vec<f64> = numbers
        .iter()
        .map(|n| f64::from(*n))
        .filter(|n| n.is_finite())
        .collect();
    let mean = finite.iter().sum::<f64>() / 4.0;
    let rms = (finite.iter().map(|n| n * n).sum::<f64>() / 4.0).sqrt();
    assert_eq!(stats["mean"].as_f64(), Some(mean));
    assert!((stats["rms"].as_f64().expect("a number") - rms).abs() < 1e-12);
    assert_eq!(stats["elements"], 6);
    for (key, count) in [
        ("non_finite", 2),
        ("nan", 1),
        ("pos_inf", 1),
        ("neg_inf", 0),
        ("zeros", 1),
    ] {
        assert_eq!(stats[key], count, "{key}");
    }
    for (key, value) in [("min", -2.0), ("max", 3.5), ("abs_max", 3.5)] {
        assert_eq!(stats[key], value, "{key}");
    }
}
