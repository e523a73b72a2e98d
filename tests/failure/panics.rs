//! A panic that leaves the measured call fails it; one caught inside marks the spans it went through.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use candle_profiler::{measured, profile_span, profile_step, record_scalar, span};
use tests::capturing::{capture, captures, region};
use tests::trace::Trace;

struct Cleaner;

impl Drop for Cleaner {
    fn drop(&mut self) {
        clean();
    }
}

#[profile_span]
fn clean() {
    sweep();
}

#[profile_span]
fn sweep() {}

#[profile_step(forward)]
fn forward(fails: bool) {
    let _cleaner = Cleaner;
    layer(fails);
}

#[profile_span]
fn layer(fails: bool) {
    let _held = span("held");
    assert!(!fails, "weights are gone");
}

#[measured]
fn step() {
    span("before").end();
    forward(true);
    span("never").end();
}

#[measured]
fn careful_step() {
    let caught = catch_unwind(|| forward(true));
    record(caught.is_err());
    forward(false);
}

#[record_scalar("caught")]
fn record(caught: bool) -> u32 {
    u32::from(caught)
}

fn caught(work: impl FnOnce()) -> Trace {
    let (value, trace) = capture(|| catch_unwind(AssertUnwindSafe(work)));
    assert!(value.is_err(), "the panic goes on");
    trace
}

const UNWOUND: &str = "panics::forward forward!panicked\n    \
    failure::panics::layer!panicked\n      \
      held!panicked\n    \
    failure::panics::clean\n      \
      failure::panics::sweep\n";

#[test]
fn a_panic_that_leaves_the_call_is_the_reason_with_message_and_place() {
    let trace = caught(step);
    let line = include_str!("panics.rs")
        .lines()
        .position(|line| line.contains("assert!(!fails"))
        .expect("the line");
    let reason = trace.reason().expect("a reason");
    let place = format!("panicked at tests/failure/panics.rs:{}:5", line + 1);
    assert_eq!(reason, format!("{place}: weights are gone"));
}

#[test]
fn all_spans_end_and_those_that_the_panic_went_through_are_marked() {
    let trace = caught(step);
    let expected = format!("failure::panics::step*!panicked\n  before\n  failure::{UNWOUND}");
    assert_eq!(trace.tree(), expected);
    let root = &trace.spans[0];
    assert_eq!(trace.terminal()["timestamp_ns"], root.end["duration_ns"]);
}

#[test]
fn a_panic_caught_inside_marks_its_spans_and_fails_nothing() {
    let ((), trace) = capture(careful_step);
    assert_eq!(trace.reason(), None);
    let good = UNWOUND.replace("!panicked", "");
    assert_eq!(
        trace.tree(),
        format!(
            "failure::panics::careful_step*\n  = caught\n  failure::{UNWOUND}  failure::{good}"
        )
    );
    assert_eq!(trace.stats("caught")["mean"], 1.0);
}

#[test]
fn a_payload_without_text_and_a_panic_begun_elsewhere_are_reasons_too() {
    let trace = caught(|| {
        let _measured = candle_profiler::measure("odd payload");
        std::panic::panic_any(7_u32);
    });
    let reason = trace.reason().expect("a reason");
    assert!(
        reason.starts_with("panicked at ") && reason.ends_with(": (no text)"),
        "{reason}"
    );
    let trace = caught(|| {
        let _measured = candle_profiler::measure("resumed");
        resume_unwind(Box::new("of another thread"));
    });
    assert_eq!(trace.reason(), Some("panicked"));
}

#[test]
fn a_panic_that_goes_on_after_it_was_caught_keeps_its_reason() {
    let trace = caught(|| {
        let _measured = candle_profiler::measure("caught for a moment");
        let payload = catch_unwind(|| panic!("the first")).unwrap_err();
        resume_unwind(payload);
    });
    let reason = trace.reason().expect("a reason");
    assert!(reason.ends_with(": the first"), "{reason}");
}

#[test]
fn a_panic_of_an_earlier_call_is_not_a_later_ones_reason() {
    let ((), trace) = capture(|| {
        let _measured = candle_profiler::measure("sound");
        let _ = catch_unwind(|| panic!("the first"));
    });
    assert_eq!(trace.reason(), None);
    let trace = caught(|| {
        let _measured = candle_profiler::measure("resumed later");
        resume_unwind(Box::new(()));
    });
    assert_eq!(trace.reason(), Some("panicked"));
}

#[test]
fn a_panic_without_a_message_marks_its_spans_after_an_earlier_one_was_caught() {
    let trace = caught(|| {
        let _measured = candle_profiler::measure("two panics");
        let _ = catch_unwind(|| forward(true));
        forward(false);
        let _held = span("held to the end");
        resume_unwind(Box::new(()));
    });
    assert!(trace.span("held to the end").is("panicked"));
    assert!(trace.measured().is("panicked"));
}

#[test]
fn a_call_made_while_its_thread_unwinds_is_captured_like_any_other() {
    struct Last;
    impl Drop for Last {
        fn drop(&mut self) {
            careful();
        }
    }
    #[measured]
    fn careful() {
        span("saving").end();
    }
    let (value, traces) = captures(|| {
        catch_unwind(|| {
            let _last = Last;
            panic!("before any measured call");
        })
    });
    assert!(value.is_err());
    assert_eq!(traces.len(), 1);
    assert_eq!(traces[0].reason(), None, "the call itself went well");
    assert_eq!(traces[0].named("saving").len(), 1);
    assert!(!traces[0].measured().is("panicked"));
}

/// What a person would see of it fails.
struct Shy;

impl std::fmt::Display for Shy {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        panic!("not for everybody's eyes")
    }
}

#[measured(tags(shy = Shy, epoch = epoch.unwrap(), late = 1))]
fn tagged(epoch: Option<u32>) -> u32 {
    span(format!("{}", epoch.unwrap_or(0))).end();
    7
}

#[measured(name = "called by {shy}")]
fn named(shy: Shy) -> u32 {
    let _ = shy;
    span("inside").end();
    8
}

#[measured(step = epoch.unwrap())]
fn stepped(epoch: Option<u32>) -> u32 {
    epoch.unwrap_or(9)
}

/// Without the profiler these expressions are never evaluated.
#[test]
fn a_panic_in_what_is_only_evaluated_for_the_profiler_ends_nobody() {
    // Inside a capture it is a span, whose name and step are asked for all the same.
    let (value, _) = region(|| stepped(None));
    assert_eq!(value, 9);
    let (values, traces) = captures(|| (tagged(Some(3)), tagged(None), named(Shy)));
    assert_eq!(values, (7, 7, 8));
    let [named, whole, cut] = traces.as_slice() else {
        panic!("three traces: {}", traces.len());
    };
    for trace in &traces {
        assert_eq!(trace.reason(), None);
        assert!(trace.spans.iter().all(|span| !span.end.is_null()));
        assert!(trace.spans.iter().all(|span| !span.is("panicked")));
    }
    assert_eq!(whole.meta()["tags"]["epoch"], "3");
    assert_eq!(whole.meta()["tags"]["late"], "1");
    assert!(cut.meta()["tags"]["epoch"].is_null());
    assert_eq!(named.meta()["entrypoint"], "called by ");
}
