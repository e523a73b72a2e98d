//! `diff`.

use super::sample::simple;
use super::{json, put, refused, tool, well};

#[test]
fn the_first_label_that_parts_is_named() {
    let folder = tests::folder();
    let path = folder.path();
    put(path, "a.jsonl", &simple(2, 1_000_000, 1.0));
    put(path, "b.jsonl", &simple(2, 1_200_000, 1.25));
    assert_eq!(
        well(path, &["diff", "a.jsonl", "b.jsonl"]),
        "\
train_step: a.jsonl → b.jsonl

numbers
  part first at hidden, record 2 of step 2: rms 1 → 1.25, 20% apart
  2 of 3 records part

time by call site              before    after  change
  train_step                  1.00 ms  1.20 ms  +20.0%
  forward                      500 µs   600 µs  +20.0%
"
    );
    let same = well(path, &["diff", "a.jsonl", "a.jsonl"]);
    assert!(same.contains("\nnumbers\n  3 records agree\n"), "{same}");
    let near = well(path, &["diff", "a.jsonl", "b.jsonl", "--tolerance", "25%"]);
    assert!(
        near.contains("  3 records agree; hidden is furthest, 20% apart\n"),
        "{near}"
    );
    let value = json(path, &["diff", "--json", "a.jsonl", "b.jsonl"]);
    assert_eq!(value["schema"], "candle-profiler/diff/1");
    assert_eq!(value["numerics"]["first"]["label"], "hidden");
    assert_eq!(
        (&value["numerics"]["compared"], &value["numerics"]["parted"]),
        (&3.into(), &2.into())
    );
    assert_eq!(value["times"][0]["ratio"], 1.2);
}

#[test]
fn limits_that_are_passed_end_with_1() {
    let folder = tests::folder();
    let path = folder.path();
    put(path, "a.jsonl", &simple(2, 1_000_000, 1.0));
    put(path, "b.jsonl", &simple(2, 1_200_000, 1.25));
    for (flag, limit, fault) in [
        (
            "--max-slowdown",
            "10%",
            Some("train_step is 20% slower, allowed is 10%"),
        ),
        (
            "--max-slowdown",
            "0.1",
            Some("train_step is 20% slower, allowed is 10%"),
        ),
        ("--max-slowdown", "0.3", None),
        (
            "--tolerance",
            "0.1",
            Some("the numbers part at hidden: rms 1 → 1.25, 20% apart (allowed is 10%)"),
        ),
        ("--tolerance", "0.3", None),
    ] {
        let ran = tool(path, &["diff", "a.jsonl", "b.jsonl", flag, limit]);
        assert_eq!(
            (ran.code, ran.stderr.as_str()),
            (Some(i32::from(fault.is_some())), ""),
            "{flag} {limit}"
        );
        match fault {
            Some(fault) => assert!(
                ran.stdout.contains(&format!("limits passed\n  {fault}\n")),
                "{}",
                ran.stdout
            ),
            None => assert!(!ran.stdout.contains("limits passed"), "{}", ran.stdout),
        }
    }
    let other = simple(2, 1_000_000, 1.0).replace("\"hidden\"", "\"inner\"");
    put(path, "c.jsonl", &other);
    let ran = tool(path, &["diff", "a.jsonl", "c.jsonl", "--tolerance", "100%"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stdout.contains("  only one side has hidden, inner\n"),
        "{}",
        ran.stdout
    );
    for wrong in [
        // A factor, or a share? One unit for both, and nothing to be taken for the other.
        ["--max-slowdown", "1.1"],
        ["--max-slowdown", "10"],
        ["--tolerance", "1"],
        ["--tolerance", "-1"],
        ["--max-slowdown", "fast"],
    ] {
        let ran = tool(
            path,
            &[&["diff", "a.jsonl", "b.jsonl"], &wrong[..]].concat(),
        );
        assert_eq!(ran.code, Some(2), "{wrong:?}");
    }
}

#[test]
fn shapes_types_and_what_is_not_finite_part_whatever_the_tolerance() {
    let folder = tests::folder();
    let path = folder.path();
    let trace = simple(2, 1_000, 1.0);
    put(path, "a.jsonl", &trace);
    for (name, text, how) in [
        (
            "dtype",
            trace.replace("\"f32\"", "\"bf16\""),
            "type f32 → bf16",
        ),
        (
            "shape",
            trace.replace("\"shape\":[2,3]", "\"shape\":[3,2]"),
            "shape [2, 3] → [3, 2]",
        ),
        (
            "finite",
            trace.replace("\"non_finite\":0", "\"non_finite\":1"),
            "values that are not finite 0 → 1",
        ),
    ] {
        put(path, name, &text);
        let text = well(path, &["diff", "a.jsonl", name]);
        assert!(
            text.contains(&format!("part first at input, record 1 of step 2: {how}\n")),
            "{text}"
        );
    }
    let text = well(path, &["diff", "a.jsonl", "dtype", "--any-dtype"]);
    assert!(text.contains("3 records agree"), "{text}");
}

#[test]
fn sets_are_compared_by_their_medians_step_by_step() {
    let folder = tests::folder();
    let path = folder.path();
    for (side, base, parts_at) in [("before", 1_000_000, u64::MAX), ("after", 1_500_000, 4)] {
        std::fs::create_dir(path.join(side)).expect("a folder");
        for step in 1..=9 {
            let rms = if step >= parts_at { 2.0 } else { 1.0 };
            put(
                path,
                &format!("{side}/t-step{step}.jsonl"),
                &simple(step, base + step * 1_000, rms),
            );
        }
    }
    let text = well(path, &["diff", "before", "after"]);
    assert!(
        text.starts_with("train_step: 9 traces → 9 traces\n"),
        "{text}"
    );
    assert!(
        text.contains("part first at hidden, record 2 of step 4: rms 1 → 2, 50% apart\n"),
        "{text}"
    );
    assert!(text.contains("95% interval"), "{text}");
    let all = [
        "before/*.jsonl",
        "--",
        "after/t-step1.jsonl",
        "after/t-step2.jsonl",
        "after/t-step3.jsonl",
    ];
    let text = well(path, &[&["diff"], &all[..]].concat());
    assert!(text.contains("  9 records agree\n"), "{text}");
    let value = json(path, &["diff", "--json", "before", "after"]);
    let measured = &value["times"][0];
    assert_eq!(
        (&measured["before"], &measured["after"]),
        (&1_005_000.0.into(), &1_505_000.0.into())
    );
    let interval = measured["interval"].as_array().expect("an interval");
    assert!(
        interval[0].as_f64() > Some(1.4) && interval[1].as_f64() < Some(1.6),
        "{interval:?}"
    );
    assert_eq!(
        refused(path, &["diff", "before"]),
        "candle-profile: diff takes two arguments, not 1; of sets, `--` parts the sides"
    );
}
