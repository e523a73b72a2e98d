//! `check`.

use tests::{golden, judge};

use super::{json, put, tool, well};

#[test]
fn a_valid_trace_is_valid_and_its_gaps_are_shown_on_request() {
    let folder = tests::folder();
    let path = folder.path();
    put(path, "all.jsonl", &golden("all-events.trace10.jsonl"));
    put(path, "failed.jsonl", &golden("failed.trace10.jsonl"));
    assert_eq!(
        well(path, &["check", "all.jsonl"]),
        "all.jsonl: valid, complete, 8 spans\n"
    );
    let text = well(path, &["check", "--warnings", "failed.jsonl"]);
    assert!(text.contains("failed.jsonl: warning: "), "{text}");
    assert!(text.contains("failed.jsonl: valid, failed, "), "{text}");
    let value = json(path, &["check", "--json", "all.jsonl", "failed.jsonl"]);
    assert_eq!(value[0]["schema"], "candle-profiler/check/1");
    assert_eq!((&value[0]["valid"], &value[0]["complete"]), (&true.into(), &true.into()));
    assert_eq!((&value[1]["valid"], &value[1]["complete"]), (&true.into(), &false.into()));
}

#[test]
fn an_invalid_trace_ends_with_1_and_each_rule_is_named() {
    let folder = tests::folder();
    let path = folder.path();
    let broken = golden("all-events.trace10.jsonl").replace("\"duration_ns\":82612", "\"duration_ns\":182612");
    assert!(!judge(&broken).is_valid());
    put(path, "broken.jsonl", &broken);
    put(path, "all.jsonl", &golden("all-events.trace10.jsonl"));
    let ran = tool(path, &["check", "broken.jsonl", "all.jsonl"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), ""));
    assert_eq!(
        ran.stdout,
        "broken.jsonl: error: span s4 runs from 16014 to 198626 ns, beyond its parent s3, which runs from 9144 to \
         124344 ns (child_outside_parent)\n\
         broken.jsonl: invalid, complete, 8 spans, 1 error\n\
         all.jsonl: valid, complete, 8 spans\n"
    );
    put(path, "no.jsonl", "{}\n");
    let ran = tool(path, &["check", "no.jsonl"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stdout.starts_with("no.jsonl, line 1: "), "{}", ran.stdout);
    assert!(ran.stdout.ends_with("no.jsonl: invalid\n"), "{}", ran.stdout);
    let ran = tool(path, &["check", "--json", "no.jsonl"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stdout.contains("\"fault\": \"no.jsonl, line 1: "), "{}", ran.stdout);
}
