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

#[test]
fn what_cannot_be_told_is_no_failure() {
    let (value, traces) = captures(in_a_closure);
    assert!(value.is_err());
    assert_eq!(reasons(&traces), [None]);
    let (value, traces) = captures(|| std::panic::catch_unwind(panics));
    assert!(value.is_err());
    assert_eq!(reasons(&traces), [None]);
}
