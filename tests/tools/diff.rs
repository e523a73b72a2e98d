//! `diff`.

use serde_json::json;

use super::sample::{Lines, STAMP, simple};
use super::{json as value_of, put, refused, tool, well};

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
    let value = value_of(path, &["diff", "--json", "a.jsonl", "b.jsonl"]);
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
            "1.1",
            Some("train_step is 20% slower, allowed is 10%"),
        ),
        ("--max-slowdown", "1.3", None),
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
    let ran = tool(path, &["diff", "a.jsonl", "c.jsonl", "--tolerance", "1"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stdout.contains("  only one side has hidden, inner\n"),
        "{}",
        ran.stdout
    );
    for wrong in [
        ["--max-slowdown", "0.9"],
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
    let value = value_of(path, &["diff", "--json", "before", "after"]);
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
        "candle-profile: diff takes two arguments, one was given; of sets, `--` parts the sides"
    );
}

#[test]
fn the_regions_time_is_its_own_though_a_call_has_its_name() {
    let folder = tests::folder();
    let path = folder.path();
    // What has the region's name and is no region takes the same time in both.
    for (name, measured) in [("a.jsonl", 1_000), ("b.jsonl", 1_485)] {
        let trace = Lines::new(2, 2_000, json!({}), STAMP)
            .measured("train_step", (10, 10 + measured), json!({}))
            .span(
                "s3",
                Some("s2"),
                "train_step",
                (20, 920),
                json!({}),
                json!({}),
            );
        put(path, name, &trace.end());
    }
    let ran = tool(
        path,
        &["diff", "a.jsonl", "b.jsonl", "--max-slowdown", "40%"],
    );
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    let fault = "\nlimits passed\n  train_step is 48.5% slower, allowed is 40%\n";
    assert!(ran.stdout.contains(fault), "{}", ran.stdout);
    let value = value_of(path, &["diff", "--json", "a.jsonl", "b.jsonl"]);
    let rows: Vec<_> = value["times"].as_array().expect("rows").iter().collect();
    let figures: Vec<_> = rows
        .iter()
        .map(|row| {
            (
                row["measured"].clone(),
                row["before"].clone(),
                row["after"].clone(),
            )
        })
        .collect();
    assert_eq!(
        figures,
        [
            (json!(true), json!(1_000.0), json!(1_485.0)),
            (json!(false), json!(900.0), json!(900.0)),
        ]
    );
}

/// One side of a comparison of two regions, each with a label of its own.
fn two_regions(path: &std::path::Path, side: &str, train_ns: u64, eval_ns: u64) {
    std::fs::create_dir(path.join(side)).expect("a folder");
    let evaluated = simple(2, eval_ns, 1.0)
        .replace("\"entrypoint\":\"train_step\"", "\"entrypoint\":\"eval\"")
        .replace("\"phase\":\"train\"", "\"phase\":\"infer\"")
        .replace("\"name\":\"train_step\"", "\"name\":\"eval\"")
        .replace("\"hidden\"", "\"seen\"");
    put(path, &format!("{side}/a.jsonl"), &evaluated);
    put(path, &format!("{side}/b.jsonl"), &simple(2, train_ns, 1.0));
}

#[test]
fn every_region_has_to_keep_the_limit() {
    let folder = tests::folder();
    let path = folder.path();
    two_regions(path, "before", 1_000_000, 900_000);
    two_regions(path, "after", 3_000_000, 100_000);
    let ran = tool(path, &["diff", "before", "after", "--max-slowdown", "10%"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    assert_eq!(
        ran.stdout,
        "\
eval, train_step: 2 traces → 2 traces

limits passed
  train_step is 200% slower, allowed is 10%

numbers
  6 records agree

time by call site              before    after   change
  train_step                  1.00 ms  3.00 ms  +200.0%
  eval                         900 µs   100 µs   -88.9%
  forward (in train_step)      500 µs  1.50 ms  +200.0%
  forward (in eval)            450 µs  50.0 µs   -88.9%
"
    );
    std::fs::remove_file(path.join("after/b.jsonl")).expect("to remove");
    let ran = tool(path, &["diff", "before", "after", "--max-slowdown", "10%"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    for part in [
        "\n  the time of train_step cannot be compared: only before has it\n",
        "\ncautions\n  the regions are not the same: eval, train_step → eval\n",
    ] {
        assert!(ran.stdout.contains(part), "{part}\n{}", ran.stdout);
    }
}

#[test]
fn a_region_with_another_name_is_compared_where_it_is_the_only_one() {
    let folder = tests::folder();
    let path = folder.path();
    let text = simple(2, 1_000, 1.0);
    put(path, "a.jsonl", &text);
    put(
        path,
        "b.jsonl",
        &simple(2, 2_000, 1.0).replace("\"train_step\"", "\"step\""),
    );
    let ran = tool(
        path,
        &["diff", "a.jsonl", "b.jsonl", "--max-slowdown", "10%"],
    );
    assert!(
        ran.stdout
            .contains("  train_step → step is 100% slower, allowed is 10%\n"),
        "{}",
        ran.stdout
    );
}

#[test]
fn traces_without_a_partner_are_named_and_no_agreement() {
    let folder = tests::folder();
    let path = folder.path();
    for (side, steps) in [("before", [2, 10]), ("after", [2, 20])] {
        std::fs::create_dir(path.join(side)).expect("a folder");
        for step in steps {
            let name = format!("{side}/t-step{step}.jsonl");
            put(path, &name, &simple(step, 1_000, 1.0));
        }
    }
    let text = well(path, &["diff", "before", "after"]);
    let told = "not compared, for the other side has no trace of the same step:";
    assert!(
        text.contains(&format!("  3 records agree\n  {told}\n")),
        "{text}"
    );
    let ran = tool(path, &["diff", "before", "after", "--tolerance", "1%"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    let value = value_of(path, &["diff", "--json", "before", "after"]);
    let numerics = &value["numerics"];
    assert_eq!(
        (
            &numerics["not_compared_before"],
            &numerics["not_compared_after"]
        ),
        (
            &json!(["before/t-step10.jsonl"]),
            &json!(["after/t-step20.jsonl"])
        )
    );
    // The same step of another region is no partner.
    two_regions(path, "regions", 1_000, 1_000);
    let all = [
        "before/t-step2.jsonl",
        "before/t-step10.jsonl",
        "--",
        "regions",
    ];
    let value = value_of(path, &[&["diff", "--json"], &all[..]].concat());
    assert_eq!(
        value["numerics"]["not_compared_after"],
        json!(["regions/a.jsonl"])
    );
    assert_eq!(value["numerics"]["compared"], 3);
}

#[test]
fn cautions_stand_apart_from_limits_and_one_record_agrees() {
    let folder = tests::folder();
    let path = folder.path();
    let trace = |measured: u64| {
        Lines::new(2, 9_000, json!({}), STAMP)
            .measured("train_step", (10, 10 + measured), json!({}))
            .stats("s2", "hidden", 1.0)
            .end()
    };
    put(path, "a.jsonl", &trace(1_000));
    put(
        path,
        "b.jsonl",
        &trace(2_000).replace("\"cpu\"", "\"cuda:0\""),
    );
    let ran = tool(
        path,
        &["diff", "a.jsonl", "b.jsonl", "--max-slowdown", "50%"],
    );
    assert!(
        ran.stdout.contains(
            "\nlimits passed\n  train_step is 100% slower, allowed is 50%\n\ncautions\n  \
             the devices are not the same: cpu → cuda:0\n\nnumbers\n  1 record agrees\n"
        ),
        "{}",
        ran.stdout
    );
}
