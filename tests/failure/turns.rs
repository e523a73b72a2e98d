//! Measured statements and loop turns fail with the `Err` that leaves them by `?`, and with no other.

use candle_profiler::{measured, profile_span, profile_step};
use tests::capturing::captures;
use tests::trace::Trace;

#[profile_step(forward)]
fn work(fails: bool) -> Result<u32, String> {
    if fails {
        Err("the loss is not finite".to_owned())
    } else {
        Ok(1)
    }
}

/// Epochs of batches, as in a `main`: an error may come in a turn or after the loop.
#[profile_span]
fn training(epochs: u32, fails_at: Option<u32>, saves: bool) -> Result<u32, String> {
    let mut sum = 0;
    for epoch in 0..epochs {
        #[measured(name = "turn")]
        for batch in 0..2 {
            let number = epoch * 2 + batch;
            if number == 1 {
                continue;
            }
            sum += work(fails_at == Some(number))?;
        }
    }
    if saves {
        return Ok(sum);
    }
    Err("the disk is full".to_owned())
}

/// A `break`, and an early `Ok`, out of a turn.
#[profile_span]
fn left(early: bool) -> Result<u32, String> {
    #[measured(name = "left")]
    loop {
        let one = work(false)?;
        if early {
            return Ok(one);
        }
        if one == 1 {
            break;
        }
    }
    Err("later".to_owned())
}

/// Statements, each one call.
#[profile_span]
fn statements(fails: bool) -> Result<u32, Box<dyn std::error::Error>> {
    #[measured(name = "bound")]
    let one = work(fails)?;
    #[measured(name = "block")]
    {
        work(one == 1)?;
    }
    Ok(one)
}

/// A turn of a closure's own loop ends the closure; what the function then does says nothing of it.
#[profile_span]
fn in_a_closure() -> Result<u32, String> {
    let run = |fails: bool| -> Result<u32, String> {
        #[measured(name = "apart")]
        for _turn in 0..1 {
            work(fails)?;
        }
        Ok(1)
    };
    let _ = run(true);
    Err("of the function".to_owned())
}

/// The function panics after a turn that was left.
#[profile_span]
fn panics() -> Result<u32, String> {
    let mut done = false;
    while !done {
        #[measured(name = "before a panic")]
        {
            work(false)?;
            done = true;
            continue;
        }
    }
    panic!("after the turn")
}

/// A panic in each place that `#[measured]` may stand on inside a function whose value tells of failures.
#[profile_span]
fn panics_in(place: &str) -> Result<u32, String> {
    #[measured(name = "for")]
    for turn in 0..1 {
        assert!(place != "for", "turn {turn} of for");
    }
    let mut left = 1;
    #[measured(name = "while")]
    while left > 0 {
        left -= 1;
        assert!(place != "while", "while {left} are left");
    }
    #[measured(name = "loop")]
    loop {
        assert!(place != "loop", "in the loop");
        left += 1;
        if left == 2 {
            break;
        }
    }
    #[measured(name = "let")]
    let one = work(place == "let").expect("the value of a let");
    #[measured(name = "block")]
    {
        assert!(place != "block", "in the block, {one}");
    }
    #[measured(name = "call")]
    assert_is_not("call", place);
    Ok(one)
}

fn assert_is_not(other: &str, place: &str) {
    assert!(place != other, "in the call");
}

/// The same where no value tells of failures.
#[profile_span]
fn panics_without_a_value(place: &str) {
    let closure = |place: &str| {
        #[measured(name = "closure")]
        for turn in 0..1 {
            assert!(place != "closure", "turn {turn} of a closure");
        }
    };
    closure(place);
    #[measured(name = "unit")]
    {
        assert!(place != "unit", "in a function of no value");
    }
}

#[profile_span]
async fn panics_in_a_future(place: &str) -> Result<u32, String> {
    #[measured(name = "turn of a future")]
    for turn in 0..1 {
        assert!(place != "turn", "turn {turn} of a future");
    }
    whole_future(place).await
}

#[measured(name = "future")]
async fn whole_future(place: &str) -> Result<u32, String> {
    assert!(place != "whole", "in the future");
    Ok(1)
}

/// A destructor that runs while its thread unwinds, with a panic of its own inside a turn.
#[profile_span]
fn fails_while_unwinding() -> Result<u32, String> {
    #[measured(name = "inner")]
    for turn in 0..1 {
        assert!(turn > 0, "the second panic");
    }
    Ok(1)
}

fn reasons(traces: &[Trace]) -> Vec<Option<&str>> {
    traces.iter().map(Trace::reason).collect()
}

#[test]
fn an_error_that_leaves_a_turn_fails_it() {
    let (value, traces) = captures(|| training(2, Some(2), true));
    assert_eq!(value, Err("the loss is not finite".to_owned()));
    assert_eq!(
        reasons(&traces),
        [None, None, Some("the loss is not finite")]
    );
    assert_eq!(traces[2].tree(), "turn*\n  failure::turns::work forward\n");
}

#[test]
fn an_error_after_the_loop_fails_no_turn() {
    let (value, traces) = captures(|| training(2, None, false));
    assert_eq!(value, Err("the disk is full".to_owned()));
    assert_eq!(reasons(&traces), [None; 4]);
    let (value, traces) = captures(|| training(1, None, true));
    assert_eq!(value, Ok(1));
    assert_eq!(reasons(&traces), [None; 2]);
}

#[test]
fn break_and_an_early_ok_are_no_failures() {
    let (value, traces) = captures(|| left(true));
    assert_eq!(value, Ok(1));
    assert_eq!(reasons(&traces), [None]);
    let (value, traces) = captures(|| left(false));
    assert_eq!(value, Err("later".to_owned()));
    assert_eq!(reasons(&traces), [None]);
}

#[test]
fn statements_fail_with_what_leaves_them() {
    let (value, traces) = captures(|| statements(true));
    assert!(value.is_err());
    assert_eq!(reasons(&traces), [Some("the loss is not finite")]);
    let (value, traces) = captures(|| statements(false));
    assert!(value.is_err());
    // In the order of their names.
    assert_eq!(reasons(&traces), [Some("the loss is not finite"), None]);
}

/// Why the last capture failed, without the file and the line.
fn last_reason(work: impl FnOnce()) -> String {
    let work = std::panic::AssertUnwindSafe(work);
    let (value, traces) = captures(|| std::panic::catch_unwind(work));
    assert!(value.is_err(), "the panic goes on");
    let failed: Vec<&str> = traces.iter().filter_map(Trace::reason).collect();
    let [reason] = failed.as_slice() else {
        panic!("{failed:?}");
    };
    let said = reason.strip_prefix("panicked at tests/failure/turns.rs:");
    let said = said.and_then(|said| said.split_once(": "));
    said.unwrap_or_else(|| panic!("{reason}")).1.to_owned()
}

#[test]
fn a_panic_that_leaves_a_statement_or_a_turn_is_its_reason() {
    for (place, said) in [
        ("for", "turn 0 of for"),
        ("while", "while 0 are left"),
        ("loop", "in the loop"),
        ("let", "the value of a let: \"the loss is not finite\""),
        ("block", "in the block, 1"),
        ("call", "in the call"),
    ] {
        assert_eq!(last_reason(|| drop(panics_in(place))), said, "{place}");
    }
    for (place, said) in [
        ("closure", "turn 0 of a closure"),
        ("unit", "in a function of no value"),
    ] {
        assert_eq!(last_reason(|| panics_without_a_value(place)), said);
    }
    for (place, said) in [("turn", "turn 0 of a future"), ("whole", "in the future")] {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let runtime = runtime.expect("a runtime");
        let future = panics_in_a_future(place);
        assert_eq!(last_reason(|| drop(runtime.block_on(future))), said);
    }
}

#[test]
fn a_panic_in_a_turn_that_runs_while_its_thread_unwinds_is_its_reason() {
    struct Last;
    impl Drop for Last {
        fn drop(&mut self) {
            // A second panic that left a destructor would end the process.
            let caught = std::panic::catch_unwind(fails_while_unwinding);
            assert!(caught.is_err());
        }
    }
    // The first capture of a program hears of panics from then on, and not where its thread unwinds already.
    captures(|| statements(false)).0.expect_err("it fails");
    let said = last_reason(|| {
        let _last = Last;
        panic!("the first panic");
    });
    assert_eq!(said, "the second panic");
}

#[test]
fn what_cannot_be_told_is_no_failure() {
    let (value, traces) = captures(in_a_closure);
    assert!(value.is_err());
    assert_eq!(reasons(&traces), [None]);
    let (value, traces) = captures(|| std::panic::catch_unwind(panics));
    assert!(value.is_err());
    assert_eq!(reasons(&traces), [None]);
}
