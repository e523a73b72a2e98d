//! An `Err` fails its call, with the best text there is.

use std::fmt;

use candle_profiler::{measure, measure_with, measured, profile_span, span};
use tests::capturing::{capture, captures};

struct Shown;

impl fmt::Display for Shown {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the batch is empty")
    }
}

#[derive(Debug)]
#[allow(dead_code, reason = "read by Debug")]
struct Debugged {
    batch: u32,
}

struct Silent;

#[profile_span]
fn work() {}

#[measured]
fn displayed(fails: bool) -> Result<u32, Shown> {
    work();
    if fails { Err(Shown) } else { Ok(1) }
}

#[measured]
fn debugged() -> Result<(), Debugged> {
    Err(Debugged { batch: 7 })
}

#[measured]
fn typed() -> Result<(), Silent> {
    Err(Silent)
}

#[measured]
fn generic<E>(error: E) -> Result<(), E> {
    Err(error)
}

#[measured]
fn with_a_question_mark() -> candle_core::Result<()> {
    work();
    candle_core::bail!("shapes do not fit")
}

#[measured]
fn optional() -> Option<u32> {
    None
}

#[measured]
fn blank() -> Result<(), String> {
    Err(String::new())
}

struct Explosive;

impl fmt::Display for Explosive {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("the error's own text panics")
    }
}

#[measured]
fn explosive() -> Result<(), Explosive> {
    Err(Explosive)
}

#[test]
fn an_error_that_can_be_displayed_says_so_itself() {
    let (value, trace) = capture(|| displayed(true));
    assert!(value.is_err());
    assert_eq!(trace.reason(), Some("the batch is empty"));
    assert_eq!(
        trace.tree(),
        "failure::errors::displayed*\n  failure::errors::work\n"
    );
    let (value, trace) = capture(|| displayed(false));
    assert!(value.is_ok());
    assert_eq!(trace.reason(), None);
}

#[test]
fn other_errors_are_debugged_or_called_by_their_type() {
    let (_, trace) = capture(debugged);
    assert_eq!(trace.reason(), Some("Debugged { batch: 7 }"));
    let (_, trace) = capture(typed);
    assert_eq!(trace.reason(), Some("failure::errors::Silent"));
    let (_, trace) = capture(|| generic(Shown));
    // The bounds of a generic function are all that is known of its error.
    assert_eq!(trace.reason(), Some("failure::errors::Shown"));
    let (_, trace) = capture(with_a_question_mark);
    let reason = trace.reason().expect("a reason");
    assert!(reason.starts_with("shapes do not fit"), "{reason}");
}

#[test]
fn nothing_else_fails() {
    let (_, trace) = capture(optional);
    assert_eq!(trace.reason(), None);
}

#[test]
fn a_reason_is_never_empty() {
    let (_, trace) = capture(blank);
    assert_eq!(trace.reason(), Some("the call failed without a word"));
}

#[test]
fn an_error_whose_text_panics_harms_nobody() {
    let (value, trace) = capture(explosive);
    assert!(value.is_err());
    assert_eq!(
        trace.reason(),
        Some("an error whose text could not be made")
    );
}

#[test]
fn the_free_functions_see_failure_too() {
    let (value, trace) = capture(|| measure_with("fetch", || Err::<(), _>(Shown)));
    assert!(value.is_err());
    assert_eq!(trace.reason(), Some("the batch is empty"));
    let ((), trace) = capture(|| {
        let measured = measure("fetch by hand");
        let _span = span("work");
        measured.fail("no data left");
    });
    assert_eq!(trace.reason(), Some("no data left"));
    assert_eq!(trace.tree(), "fetch by hand*\n  work!cut\n");
}

#[test]
fn an_inner_error_that_is_handled_fails_nothing() {
    let ((), traces) = captures(|| {
        let _measured = measure("outer");
        let _ = displayed(true);
    });
    assert_eq!(traces.len(), 1);
    assert_eq!(traces[0].reason(), None);
    assert_eq!(
        traces[0].tree(),
        "outer*\n  failure::errors::displayed\n    failure::errors::work\n"
    );
}
