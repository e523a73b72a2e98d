//! The process's resident bytes from call to call.

use tests::folder;
use tests::program::{Ran, run};

fn train(mode: &str, variables: &[(&str, &str)]) -> Ran {
    let folder = folder();
    let mut all = vec![("CANDLE_PROFILE", "traces")];
    all.extend_from_slice(variables);
    run(
        env!("CARGO_BIN_EXE_train"),
        folder.path(),
        &[mode, "20"],
        &all,
    )
}

#[cfg(target_os = "linux")]
#[test]
fn growth_is_a_row_and_a_line_at_the_end() {
    let ran = train("leak", &[("CANDLE_PROFILE_STEPS", "2,20")]);
    let summaries: Vec<&str> = ran.stderr.split("train step ").collect();
    assert!(
        !summaries[1].contains("resident memory grew"),
        "{}",
        ran.stderr
    );
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    // Nineteen steps have kept something by the end of step 20.
    let last = words(summaries[2]);
    assert!(last.contains("resident memory grew 7"), "{last}");
    assert!(last.contains("from call 1 to call 20"), "{last}");
    let end = ran.stderr.lines().last().unwrap_or_default();
    assert!(
        end.starts_with("candle-profiler: train::model::train_step: resident memory grew 7"),
        "{end}"
    );
}

#[test]
fn a_program_that_keeps_nothing_has_no_such_row() {
    let ran = train("plain", &[("CANDLE_PROFILE_STEPS", "2,20")]);
    assert!(!ran.stderr.contains("resident memory"), "{}", ran.stderr);
    let variables = [
        ("CANDLE_PROFILE_STEPS", "20"),
        ("CANDLE_PROFILE_RECORD", "-memory"),
    ];
    let ran = train("leak", &variables);
    assert!(!ran.stderr.contains("resident memory"), "{}", ran.stderr);
}
