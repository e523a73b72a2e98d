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
    assert_eq!(
        (&value[0]["valid"], &value[0]["complete"]),
        (&true.into(), &true.into())
    );
    assert_eq!(
        (&value[1]["valid"], &value[1]["complete"]),
        (&true.into(), &false.into())
    );
}

#[test]
fn what_was_left_out_for_the_budget_is_told() {
    let folder = tests::folder();
    let path = folder.path();
    let text = golden("all-events.trace10.jsonl").replace(
        "\"kind\":\"terminal\"",
        "\"kind\":\"terminal\",\"dropped\":{\"backward, … (src/main.rs:52)\":2,\"softmax\":1200}",
    );
    assert!(judge(&text).is_valid());
    put(path, "small.jsonl", &text);
    let line = "small.jsonl: valid, complete, 8 spans, 1,202 spans and records left out";
    let plain = well(path, &["check", "small.jsonl"]);
    assert_eq!(one_line(&plain), format!("{line} (-w shows them)"));
    let twice = well(path, &["check", "small.jsonl", "small.jsonl"]);
    assert_eq!(one_line(&twice), format!("{line} (-w shows them) {line}"));
    let shown = well(path, &["check", "-w", "small.jsonl"]);
    assert_eq!(
        one_line(&shown),
        format!(
            "small.jsonl: 1,202 spans and records were left out to keep within the budget (a larger \
             CANDLE_PROFILE_BUDGET keeps more): 1,200 of softmax, 2 of backward and others (src/main.rs:52) {line}"
        )
    );
    let value = json(path, &["check", "--json", "small.jsonl"]);
    assert_eq!(value[0]["left_out"]["softmax"], 1200);
}

/// Sentences as they were before they were broken into lines.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_file_that_cannot_be_read_is_no_invalid_trace_and_the_others_are_judged() {
    let folder = tests::folder();
    let path = folder.path();
    put(path, "all.jsonl", &golden("all-events.trace10.jsonl"));
    std::fs::write(path.join("bin.jsonl"), b"\x7fELF\xff\xfe\n").expect("to write");
    let ran = tool(
        path,
        &["check", "all.jsonl", "gone.jsonl", "bin.jsonl", "all.jsonl"],
    );
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.only_line()
            .starts_with("candle-profile: open gone.jsonl: "),
        "{}",
        ran.stderr
    );
    let valid = "all.jsonl: valid, complete, 8 spans\n";
    assert_eq!(
        ran.stdout,
        format!(
            "{valid}bin.jsonl, line 1: byte 5 is no UTF-8; a trace is text\nbin.jsonl: invalid\n{valid}"
        )
    );
    let ran = tool(
        path,
        &["check", "--json", "gone.jsonl", "bin.jsonl", "all.jsonl"],
    );
    assert_eq!(ran.code, Some(2));
    let list: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let valid = [&list[0]["valid"], &list[1]["valid"], &list[2]["valid"]];
    assert_eq!(
        valid,
        [&serde_json::Value::Null, &false.into(), &true.into()]
    );
    assert!(
        list[0]["fault"]
            .as_str()
            .expect("a fault")
            .starts_with("open gone.jsonl: ")
    );
}

/// What opens but cannot be read: a folder as standard input.
#[cfg(unix)]
#[test]
fn standard_input_that_cannot_be_read_ends_with_2() {
    let folder = tests::folder();
    let here = std::fs::File::open(folder.path()).expect("the folder");
    for command in ["check", "summary"] {
        let mut command = tests::program::command(
            env!("CARGO_BIN_EXE_tool"),
            folder.path(),
            &[command, "-"],
            &[],
        );
        let output = command
            .stdin(here.try_clone().expect("it"))
            .output()
            .expect("its end");
        assert_eq!(output.status.code(), Some(2));
        assert!(output.stdout.is_empty());
    }
    let mut command = tests::program::command(
        env!("CARGO_BIN_EXE_tool"),
        folder.path(),
        &["check", "-"],
        &[],
    );
    let output = command.stdin(here).output().expect("its end");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.starts_with("candle-profile: read standard input: "),
        "{said}"
    );
}

#[test]
fn an_invalid_trace_ends_with_1_and_each_rule_is_named() {
    let folder = tests::folder();
    let path = folder.path();
    let broken = golden("all-events.trace10.jsonl")
        .replace("\"duration_ns\":82612", "\"duration_ns\":120000");
    assert!(!judge(&broken).is_valid());
    put(path, "broken.jsonl", &broken);
    put(path, "all.jsonl", &golden("all-events.trace10.jsonl"));
    let ran = tool(path, &["check", "broken.jsonl", "all.jsonl"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), ""));
    assert_eq!(
        ran.stdout,
        "broken.jsonl: error: span s4 runs from 16014 to 136014 ns, beyond its parent s3,\n  \
         which runs from 9144 to 124344 ns (child_outside_parent)\n\
         broken.jsonl: invalid, complete, 8 spans, 1 error\n\
         all.jsonl: valid, complete, 8 spans\n"
    );
    put(path, "no.jsonl", "{}\n");
    let ran = tool(path, &["check", "no.jsonl"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stdout.starts_with("no.jsonl, line 1: "),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stdout.ends_with("no.jsonl: invalid\n"),
        "{}",
        ran.stdout
    );
    let ran = tool(path, &["check", "--json", "no.jsonl"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stdout.contains("\"fault\": \"no.jsonl, line 1: "),
        "{}",
        ran.stdout
    );
}
