//! The first value that is not finite: found, named with its step, and what was there before.

use tests::program::{Ran, files, run, traces};
use tests::{TempDir, folder};

fn train(mode: &str, variables: &[(&str, &str)]) -> (TempDir, Ran) {
    let folder = folder();
    let mut all = vec![("CANDLE_PROFILE", "traces")];
    all.extend_from_slice(variables);
    let ran = run(
        env!("CARGO_BIN_EXE_train"),
        folder.path(),
        &[mode, "30"],
        &all,
    );
    (folder, ran)
}

/// The first steps at which the loss and the prediction are not finite, as the program itself prints it.
fn first_bad() -> (u32, u32) {
    let ran = run(
        env!("CARGO_BIN_EXE_train"),
        folder().path(),
        &["explode", "30"],
        &[],
    );
    let rows: Vec<Vec<f32>> = ran
        .stdout
        .lines()
        .map(|line| {
            line.split(' ')
                .map(|word| word.parse().expect("a number"))
                .collect()
        })
        .collect();
    let first = |column: usize| {
        let bad = rows.iter().position(|row| !row[column].is_finite());
        u32::try_from(bad.expect("the training explodes") + 1).expect("a step")
    };
    let (loss, prediction) = (first(1), first(2));
    assert!(
        loss > 3 && prediction > loss + 1,
        "step 2 is the captured one: {}",
        ran.stdout
    );
    (loss, prediction)
}

/// What the profiler said that contains these words.
fn lines_of<'a>(ran: &'a Ran, with: &str) -> Vec<&'a str> {
    let lines = ran.stderr.lines().filter(|line| line.contains(with));
    lines
        .filter(|line| !line.starts_with("tensors in order"))
        .collect()
}

#[test]
fn watched_steps_name_the_first_tensor_its_step_and_what_was_before() {
    let (folder, ran) = train("explode", &[("CANDLE_PROFILE_NONFINITE", "watch")]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let (step, _) = first_bad();
    let said = lines_of(&ran, "not finite");
    // The steps after it are bad too, and not said again.
    let [line] = said.as_slice() else {
        panic!("one line expected: {}", ran.stderr);
    };
    // The loss of that step is infinite while the prediction is not: its square is.
    assert!(line.contains("loss is inf"), "{line}");
    assert!(line.contains("in Exploding::train_step"), "{line}");
    assert!(line.contains("exploding.rs:"), "{line}");
    assert!(
        line.contains(&format!("step {step} of Exploding::train_step")),
        "{line}"
    );
    // The captured step was healthy.
    let traces = traces(folder.path());
    assert_eq!(traces.len(), 1);
    assert_eq!(traces[0].reason(), None);
}

#[test]
fn a_watched_tensor_comes_with_its_place_and_last_good_values() {
    let variables = [
        ("CANDLE_PROFILE_NONFINITE", "watch"),
        ("CANDLE_PROFILE_RECORD", "all,-scalars,-gradients"),
    ];
    let (_folder, ran) = train("explode", &variables);
    let said = lines_of(&ran, "not finite");
    let [line] = said.as_slice() else {
        panic!("one line expected: {}", ran.stderr);
    };
    let (_, step) = first_bad();
    assert!(line.contains("prediction (f32 [2, 1])"), "{line}");
    assert!(line.contains("in Exploding::forward"), "{line}");
    assert!(line.contains(&format!(", step {step} of ")), "{line}");
    assert!(line.contains(&format!("(step {})", step - 1)), "{line}");
    assert!(line.contains("before that rms "), "{line}");
    assert!(line.contains("first at [0, 0]"), "{line}");
}

#[test]
fn gradients_are_watched_where_the_optimizer_is_about_to_use_them() {
    let variables = [
        ("CANDLE_PROFILE_NONFINITE", "stop"),
        ("CANDLE_PROFILE_RECORD", "spans,gradients"),
    ];
    let (_folder, ran) = train("explode", &variables);
    assert_eq!(ran.code, Some(101), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("gradient of model.weight (f32 [3, 1])"),
        "{}",
        ran.stderr
    );
}

#[test]
fn without_watch_only_captured_steps_are_looked_at() {
    let (_folder, ran) = train("explode", &[]);
    assert_eq!(lines_of(&ran, "not finite"), Vec::<&str>::new());
    // The captured step is the one that goes bad.
    let (_, step) = first_bad();
    let steps = step.to_string();
    let variables = [("CANDLE_PROFILE_STEPS", steps.as_str())];
    let (folder, ran) = train("explode", &variables);
    let said = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("first value that is not finite: prediction (f32 [2, 1] in"),
        "{said}"
    );
    assert!(
        said.contains("Exploding::train_step > Exploding::forward"),
        "{said}"
    );
    assert_eq!(traces(folder.path())[0].reason(), None);
}

#[test]
fn the_last_good_values_come_from_the_captured_step_before() {
    let (_, bad) = first_bad();
    let steps = format!("2,{bad}");
    let (_folder, ran) = train("explode", &[("CANDLE_PROFILE_STEPS", &steps)]);
    let said = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    let after = said
        .split("first value that is not finite")
        .nth(1)
        .expect("it is said");
    assert!(after.contains("before that rms "), "{after}");
    assert!(after.contains("(step 2)"), "{after}");
}

#[test]
fn last_good_values_are_those_of_the_same_tensor() {
    // A label stands for the tensor of each layer, and for those of another region.
    let expected = "before that rms 280000, abs max 280000 (step 28)";
    let (_folder, ran) = train("layers", &[("CANDLE_PROFILE_NONFINITE", "watch")]);
    let said = lines_of(&ran, "not finite");
    let [line] = said.as_slice() else {
        panic!("one line expected: {}", ran.stderr);
    };
    assert!(line.contains("step 29 of "), "{line}");
    assert!(line.contains(expected), "{line}");
    // And where both steps are captured, of which the summary tells.
    let (_folder, ran) = train("layers", &[("CANDLE_PROFILE_STEPS", "28,29")]);
    let said = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains(expected), "{said}");
}

#[test]
fn where_the_summary_is_not_on_stderr_one_line_is() {
    let (bad, _) = first_bad();
    let bad = bad.to_string();
    let variables = [
        ("CANDLE_PROFILE_STEPS", bad.as_str()),
        ("CANDLE_PROFILE_SUMMARY", "off"),
    ];
    let (_folder, ran) = train("explode", &variables);
    assert_eq!(lines_of(&ran, "not finite").len(), 1, "{}", ran.stderr);
}

#[test]
fn stop_closes_the_trace_as_failed_and_panics() {
    let (bad, _) = first_bad();
    let steps = bad.to_string();
    let variables = [
        ("CANDLE_PROFILE_NONFINITE", "stop"),
        ("CANDLE_PROFILE_STEPS", steps.as_str()),
    ];
    let (folder, ran) = train("explode-caught", &variables);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.ends_with("stopped\n"), "{}", ran.stdout);
    let traces = traces(folder.path());
    let reason = traces[0].reason().expect("it failed");
    assert!(reason.contains("loss is inf"), "{reason}");
    assert!(
        reason.contains(&format!("step {bad} of Exploding::train_step")),
        "{reason}"
    );
    assert!(
        files(folder.path())
            .iter()
            .all(|name| name.ends_with(".jsonl"))
    );
}

#[test]
fn stop_also_stops_a_step_that_is_not_captured() {
    let (folder, ran) = train("explode", &[("CANDLE_PROFILE_NONFINITE", "stop")]);
    assert_eq!(ran.code, Some(101), "{}", ran.stderr);
    assert!(ran.stderr.contains("loss is inf"), "{}", ran.stderr);
    assert_eq!(traces(folder.path())[0].reason(), None);
}

#[test]
fn masks_and_infinities_that_are_meant_are_silent() {
    for how in ["report", "watch"] {
        let (_folder, ran) = train("masks", &[("CANDLE_PROFILE_NONFINITE", how)]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert_eq!(lines_of(&ran, "not finite"), Vec::<&str>::new(), "{how}");
    }
    let (_folder, ran) = train("masks", &[("CANDLE_PROFILE_NONFINITE", "inf")]);
    assert!(!lines_of(&ran, "not finite").is_empty(), "{}", ran.stderr);
    let (_folder, ran) = train("masks", &[("CANDLE_PROFILE_NONFINITE", "inf,stop")]);
    assert_eq!(ran.code, Some(101));
    assert!(ran.stderr.contains("mask (f32 [4, 4])"), "{}", ran.stderr);
    assert!(ran.stderr.contains("first at [0, 1]"), "{}", ran.stderr);
}

/// candle's issues 1307 and 2480 are of NaNs whose origin nobody could tell; two ways to get some, and where they come
/// from.
#[test]
fn a_row_that_sees_nothing_is_named_and_its_mask_is_not() {
    let (_folder, ran) = train("masked-row", &[("CANDLE_PROFILE_STEPS", "1")]);
    let said = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    let first = "first value that is not finite: weights (f32 [4, 4] in train::exploding::attend): \
                 4 of 16 values (4 NaN), first at [1, 0]";
    assert!(said.contains(first), "{said}");
}

#[test]
fn a_logarithm_of_zero_is_found_in_the_step_in_which_it_happens() {
    let watch = [
        ("CANDLE_PROFILE_NONFINITE", "watch"),
        ("CANDLE_PROFILE_RECORD", "all,-gradients"),
    ];
    let (_folder, ran) = train("log-zero", &watch);
    let said = lines_of(&ran, "not finite");
    let [line] = said.as_slice() else {
        panic!("one line expected: {}", ran.stderr);
    };
    // exp(-40 n) leaves the range of f32 at its third step, where -inf itself is no alarm.
    let found = "products (f32 [2, 2]): 1 of 4 values (1 NaN), first at [1, 1]";
    assert!(line.contains(found), "{line}");
    assert!(line.contains(", step 3 of "), "{line}");
    assert!(line.contains("(step 2)"), "{line}");
}

#[test]
fn gradients_of_a_step_without_optimizer_are_a_skipped_step() {
    let (_folder, ran) = train("skipped", &[("CANDLE_PROFILE_NONFINITE", "stop")]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let said = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("the step was skipped"), "{said}");
    assert!(!said.contains("first value that is not finite"), "{said}");
}
