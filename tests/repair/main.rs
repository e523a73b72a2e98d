//! `repair`: a trace that broke off becomes one that the judge reads, and nothing that was good is lost or changed.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use candle_profiler::view::{LeftOut, RepairOptions, Repaired, repair};
use proptest::prelude::*;
use tests::{Verdict, folder, golden, judge};

const ALL: &str = "all-events.trace10.jsonl";

/// A file `name` that holds `text`, repaired.
fn repaired(folder: &Path, name: &str, text: &[u8]) -> anyhow::Result<Repaired> {
    let path = folder.join(name);
    fs::write(&path, text)?;
    repair(path, &RepairOptions::default())
}

fn text_of(repaired: &Repaired) -> String {
    fs::read_to_string(&repaired.path).expect("UTF-8")
}

fn names(folder: &Path) -> Vec<String> {
    tests::program::files(folder)
}

/// The judge finds no fault in the trace but that the capture failed.
fn assert_failed_and_valid(text: &str) {
    match judge(text) {
        Verdict::Judged {
            valid: true,
            complete: false,
            ..
        } => {}
        verdict => panic!("{verdict:?}:\n{text}"),
    }
}

const META: &str = include_str!("meta.json");

fn meta() -> String {
    format!("{}\n", META.trim())
}

fn start(id: &str, parent: &str, ns: u64) -> String {
    let parent = match parent {
        "" => String::new(),
        parent => format!(r#""parent_id":"{parent}","#),
    };
    let measured = id == "s2";
    format!(
        r#"{{"kind":"span_start","id":"{id}",{parent}"name":"n","start_ns":{ns},"span_kind":"function","measured":{measured}}}"#
    ) + "\n"
}

fn end(id: &str, ns: u64) -> String {
    format!(r#"{{"kind":"span_end","id":"{id}","duration_ns":{ns}}}"#) + "\n"
}

fn stats(span: &str) -> String {
    format!(
        r#"{{"kind":"tensor_stats","span_id":"{span}","label":"l","shape":[],"dtype":"f32","elements":1,"non_finite":0,"rms":1.0,"abs_max":1.0,"mean":1.0}}"#
    ) + "\n"
}

#[test]
fn a_trace_cut_anywhere_is_read_by_the_judge_and_keeps_its_lines() {
    let golden = golden(ALL);
    let first = golden.find('\n').expect("a line") + 1;
    let last = golden.trim_end().rfind('\n').expect("a line") + 1;
    let folder = folder();
    for cut in first..last {
        // A line that lacks only its end is whole.
        let end = match golden.as_bytes()[cut] {
            b'\n' => cut,
            _ => golden[..cut].rfind('\n').expect("a line"),
        };
        let whole = &golden[..=end];
        let repaired = repaired(folder.path(), "t.jsonl.partial", &golden.as_bytes()[..cut]);
        let repaired = repaired.expect("a repair");
        let text = text_of(&repaired);
        let added = text
            .strip_prefix(whole)
            .expect("every whole line, as it was");
        assert_eq!(added.lines().count(), 1, "{added}");
        assert_ne!(judge(&text), Verdict::Refused, "cut at {cut}:\n{text}");
        assert_eq!(repaired.kept, whole.lines().count() as u64);
        assert_eq!(repaired.left_out, u64::from(cut > whole.len()));
        assert!(repaired.removed);
        assert_eq!(names(folder.path()), ["t.jsonl"]);
        fs::remove_file(&repaired.path).expect("to remove it");
    }
}

#[test]
fn spans_stay_open_and_the_end_is_the_latest_time_named() {
    let folder = folder();
    let text = [
        meta(),
        start("s1", "", 0),
        start("s2", "s1", 5),
        start("s3", "s2", 10),
        end("s3", 20),
        start("s4", "s2", 25),
    ]
    .concat();
    let repaired = repaired(folder.path(), "t.jsonl.partial", text.as_bytes()).expect("a repair");
    let whole = text_of(&repaired);
    assert_failed_and_valid(&whole);
    assert_eq!(repaired.open_spans, 3);
    assert_eq!(
        whole.lines().last(),
        Some(
            r#"{"kind":"terminal","outcome":"failed","timestamp_ns":30,"reason":"the trace broke off before its end, and was repaired"}"#
        )
    );
}

#[test]
fn what_belongs_to_a_lost_span_is_left_out_and_told() {
    let folder = folder();
    let text = [
        meta(),
        start("s1", "", 0),
        start("s2", "s1", 5),
        start("s9", "s8", 6),
        end("s9", 1),
        stats("s8"),
        stats("s9"),
        stats("s2"),
        // Two that are each other's parents.
        start("s6", "s7", 7),
        start("s7", "s6", 7),
    ]
    .concat();
    let repaired = repaired(folder.path(), "t.jsonl.partial", text.as_bytes()).expect("a repair");
    assert_failed_and_valid(&text_of(&repaired));
    let told: Vec<u64> = repaired
        .left_out_lines
        .iter()
        .map(|left| left.line)
        .collect();
    assert_eq!(told, [4, 5, 6, 7, 9, 10]);
    assert_eq!(
        repaired.left_out_lines[2].reason,
        r#"span "s8", which it belongs to, has lost its start"#
    );
    assert!(
        !repaired.removed,
        "lines are missing, so the old file stays"
    );
    assert_eq!(names(folder.path()), ["t.jsonl", "t.jsonl.partial"]);
}

#[test]
fn lines_that_are_no_records_are_left_out() {
    let folder = folder();
    let mut text = [meta(), start("s1", "", 0), start("s2", "s1", 5)]
        .concat()
        .into_bytes();
    text.extend_from_slice(b"\n\0\0\0\0\n\xff\xfe\n{\"kind\":\"news\"}\n  \n");
    text.extend_from_slice(end("s2", 3).as_bytes());
    text.extend_from_slice(end("s2", 4).as_bytes());
    text.extend_from_slice(end("s5", 4).as_bytes());
    text.extend_from_slice(meta().as_bytes());
    text.extend_from_slice(end("s1", 9).trim_end().as_bytes());
    let repaired = repaired(folder.path(), "t.jsonl.partial", &text).expect("a repair");
    let whole = text_of(&repaired);
    assert_failed_and_valid(&whole);
    assert_eq!((repaired.kept, repaired.left_out), (5, 6));
    assert_eq!(
        repaired.open_spans, 0,
        "the last line lacks only its end, which it gets"
    );
}

#[test]
fn a_whole_trace_is_left_alone_but_for_its_name() {
    let folder = folder();
    let text = golden(ALL);
    let whole = repaired(folder.path(), "a.jsonl", text.as_bytes()).expect("a look");
    assert_eq!(whole.path, folder.path().join("a.jsonl"));
    assert_eq!(names(folder.path()), ["a.jsonl"]);
    let named = repaired(folder.path(), "b.jsonl.partial", text.as_bytes()).expect("a repair");
    assert_eq!(text_of(&named), text);
    assert_eq!(names(folder.path()), ["a.jsonl", "b.jsonl"]);
}

#[test]
fn a_whole_trace_without_its_last_lines_end_is_whole() {
    let folder = folder();
    let text = golden(ALL);
    let cut = text.trim_end();
    let whole = repaired(folder.path(), "a.jsonl", cut.as_bytes()).expect("a look");
    assert_eq!(
        (whole.path, whole.left_out),
        (folder.path().join("a.jsonl"), 0)
    );
    let named = repaired(folder.path(), "b.jsonl.partial", cut.as_bytes()).expect("a repair");
    assert_eq!(
        text_of(&named),
        text,
        "complete, and with the end of its line"
    );
    assert_eq!(named.kept, text.lines().count() as u64);
}

const OLD: &str = "all-events.trace6.jsonl";

/// Errors by the last release that read the old schema; `None`: it does not parse.
fn old_errors(text: &str) -> Option<Vec<String>> {
    use candle_graph_07::trace::{HealthSeverity, analyze_health, parse_trace};
    let folder = folder();
    let path = folder.path().join("t.jsonl");
    fs::write(&path, text).expect("a file");
    let document = parse_trace(&path).ok()?;
    let issues = analyze_health(&document).issues;
    let errors = issues
        .iter()
        .filter(|issue| issue.severity == HealthSeverity::Error);
    Some(errors.map(|issue| issue.code.clone()).collect())
}

#[test]
fn a_trace_of_the_old_schema_keeps_its_lines_and_gets_no_other() {
    let old = golden(OLD);
    let folder = folder();
    let first = old.find('\n').expect("a line") + 1;
    for cut in (first..old.len()).step_by(7) {
        let end = match old.as_bytes()[cut] {
            b'\n' => cut,
            _ => old[..cut].rfind('\n').expect("a line"),
        };
        let named = repaired(folder.path(), "t.jsonl.partial", &old.as_bytes()[..cut]);
        let named = named.expect("a repair");
        let text = text_of(&named);
        assert_eq!(text, old[..=end], "cut at {cut}");
        assert!(old_errors(&text).is_some(), "cut at {cut}:\n{text}");
        assert!(named.removed);
        fs::remove_file(&named.path).expect("to remove it");
    }
    let whole = repaired(folder.path(), "whole.jsonl", old.as_bytes()).expect("a look");
    assert_eq!(
        (whole.path, whole.open_spans),
        (folder.path().join("whole.jsonl"), 0)
    );
    let named = repaired(folder.path(), "t.jsonl.partial", old.as_bytes()).expect("a repair");
    assert_eq!(old_errors(&text_of(&named)), Some(Vec::new()));
    // A line that the old schema does not know is none of its.
    let terminal = r#"{"kind":"terminal","outcome":"complete","timestamp_ns":98386}"#;
    let more = format!("{old}{terminal}\n");
    let without = repaired(folder.path(), "u.jsonl.partial", more.as_bytes()).expect("a repair");
    assert_eq!((text_of(&without), without.left_out), (old, 1));
}

#[test]
fn nothing_is_overwritten() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("t.jsonl"), "mine").expect("a file");
    fs::write(path("t.jsonl.open"), "mine too").expect("a file");
    let text = meta() + &start("s1", "", 0);
    let numbered = repaired(folder.path(), "t.jsonl.partial", text.as_bytes()).expect("a repair");
    assert_eq!(numbered.path, path("t-2.jsonl"));
    let beside = repaired(folder.path(), "by-hand.jsonl", text.as_bytes()).expect("a repair");
    assert_eq!(beside.path, path("by-hand-repaired.jsonl"));
    assert!(!beside.removed);
    let mut options = RepairOptions::default();
    options.output = Some(path("t.jsonl"));
    let refused = repair(path("by-hand.jsonl"), &options).expect_err("a refusal");
    assert!(format!("{refused:#}").ends_with("t.jsonl: it exists, and is not overwritten"));
    assert_eq!(
        fs::read_to_string(path("t.jsonl")).expect("the file"),
        "mine"
    );
    assert_eq!(
        names(folder.path()),
        [
            "by-hand-repaired.jsonl",
            "by-hand.jsonl",
            "t-2.jsonl",
            "t.jsonl",
            "t.jsonl.open"
        ],
        "what is called like a list and is none of this run stays"
    );
}

#[test]
fn a_trace_that_is_being_written_is_not_touched() {
    let folder = folder();
    let own = format!("run-{}-1", std::process::id());
    let text = meta().replace("run-4194305-1", &own) + &start("s1", "", 0);
    let refused = repaired(folder.path(), "t.jsonl.partial", text.as_bytes());
    let said = format!("{:#}", refused.expect_err("a refusal"));
    assert!(said.contains("seems to be running"), "{said}");
    assert_eq!(names(folder.path()), ["t.jsonl.partial"]);
    let mut options = RepairOptions::default();
    options.force = true;
    repair(folder.path().join("t.jsonl.partial"), &options).expect("a repair");
    assert_eq!(names(folder.path()), ["t.jsonl"]);
}

#[test]
fn what_is_no_trace_is_refused_and_left_alone() {
    let folder = folder();
    for text in [
        "",
        "\n",
        "{}\n",
        "hello",
        &meta()[..40],
        &start("s1", "", 0),
    ] {
        let refused = repaired(folder.path(), "t.jsonl.partial", text.as_bytes());
        let said = format!("{:#}", refused.expect_err("a refusal"));
        assert!(
            said.contains("the first line is no whole `meta` record"),
            "{said}"
        );
        assert_eq!(names(folder.path()), ["t.jsonl.partial"]);
    }
    let missing = repair(
        folder.path().join("none.partial"),
        &RepairOptions::default(),
    );
    let said = format!("{:#}", missing.expect_err("a refusal"));
    assert!(said.contains("none.partial"), "{said}");
}

#[test]
fn the_list_of_open_spans_puts_right_what_hangs_in_the_air() {
    let folder = folder();
    let list = |run: &str| {
        let lines = [
            format!("{{\"run_id\":\"{run}\"}}\n"),
            // Its parent has ended since: it is the measured span's now.
            start("s5", "s3", 12),
            // It has its lines in the trace.
            start("s4", "s2", 11),
            start("s6", "s5", 13),
            start("s7", "s5", 14)[..20].to_owned(),
        ];
        fs::write(folder.path().join("t.jsonl.open"), lines.concat()).expect("a file");
    };
    let text = [
        meta(),
        start("s1", "", 0),
        start("s2", "s1", 5),
        start("s3", "s2", 10),
        start("s4", "s2", 11),
        end("s4", 1),
        start("s8", "s6", 15),
        stats("s8"),
        end("s3", 10),
    ]
    .concat();
    list("run-4194305-1");
    let with = repaired(folder.path(), "t.jsonl.partial", text.as_bytes()).expect("a repair");
    let whole = text_of(&with);
    assert_failed_and_valid(&whole);
    assert_eq!((with.kept, with.left_out, with.open_spans), (9, 0, 5));
    assert!(whole.contains(&start("s5", "s2", 12)) && whole.contains(&start("s6", "s5", 13)));
    assert_eq!(
        names(folder.path()),
        ["t.jsonl"],
        "the list goes with the broken trace"
    );

    list("run-4194305-2");
    let without = repaired(folder.path(), "t.jsonl.partial", text.as_bytes()).expect("a repair");
    assert_failed_and_valid(&text_of(&without));
    assert_eq!(
        (without.kept, without.left_out),
        (7, 2),
        "a list of another run"
    );
    let left = names(folder.path());
    assert!(
        left.iter().any(|name| name.ends_with(".open")),
        "it is not ours: {left:?}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever happens to the bytes of a trace: no panic, and what comes out is read by the judge.
    #[test]
    fn any_damage_is_repaired_or_refused(
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0usize..40), 1..8),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = golden(ALL).into_bytes();
        for (at, byte, removed) in edits {
            let at = at.index(bytes.len());
            let end = (at + removed).min(bytes.len());
            bytes.splice(at..end, [byte]);
        }
        bytes.truncate(cut.index(bytes.len()) + 1);
        let folder = folder();
        match repaired(folder.path(), "t.jsonl.partial", &bytes) {
            Ok(repaired) => prop_assert_ne!(judge(&text_of(&repaired)), Verdict::Refused),
            Err(_) => prop_assert_eq!(names(folder.path()), ["t.jsonl.partial"]),
        }
    }
}

/// A list that is far longer than memory would like is read line by line.
#[test]
fn a_line_without_end_does_not_take_all_memory() {
    let folder = folder();
    let path: PathBuf = folder.path().join("t.jsonl.partial");
    let file = fs::File::create(&path).expect("a file");
    fs::write(&path, meta() + &start("s1", "", 0)).expect("a file");
    // A hole of zeros takes no room on the disk.
    file.set_len(300 << 20).expect("a sparse file");
    let repaired = repair(&path, &RepairOptions::default()).expect("a repair");
    assert_failed_and_valid(&text_of(&repaired));
    assert_eq!(
        (repaired.kept, repaired.left_out, repaired.removed),
        (2, 1, true)
    );
}

/// One in the midst of the file is no torn end: a whole line is lost.
#[test]
fn a_line_that_is_too_long_is_lost() {
    let folder = folder();
    let path = folder.path().join("t.jsonl.partial");
    fs::write(&path, meta() + &start("s1", "", 0)).expect("a file");
    let file = fs::File::options().append(true).open(&path);
    let mut file = file.expect("the file");
    file.set_len(65 << 20).expect("a sparse file");
    let more = format!("\n{}{}", start("s2", "s1", 5), &end("s2", 9)[..20]);
    file.write_all(more.as_bytes()).expect("to append");
    let repaired = repair(&path, &RepairOptions::default()).expect("a repair");
    assert_failed_and_valid(&text_of(&repaired));
    let told: Vec<_> = repaired
        .left_out_lines
        .iter()
        .map(|left| (left.line, left.reason.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            (3, "the line is longer than 64.0 MiB, and no record is"),
            (5, "the line has no end")
        ]
    );
    assert!(!repaired.removed);
    assert_eq!(names(folder.path()), ["t.jsonl", "t.jsonl.partial"]);
}

fn terminal(ns: u64) -> String {
    format!(r#"{{"kind":"terminal","outcome":"complete","timestamp_ns":{ns}}}"#) + "\n"
}

#[test]
fn an_end_before_other_evidence_is_none() {
    let folder = folder();
    let begun = [
        meta(),
        start("s1", "", 0),
        start("s2", "s1", 5),
        end("s2", 100),
        end("s1", 105),
    ]
    .concat();
    let text = begun.clone() + &terminal(104) + &stats("s2");
    let without = repaired(folder.path(), "t.jsonl.partial", text.as_bytes()).expect("a repair");
    let whole = text_of(&without);
    assert_failed_and_valid(&whole);
    assert!(whole.contains(&stats("s2")), "it is not after the end");
    assert!(whole.ends_with(
        r#","timestamp_ns":105,"reason":"the trace broke off before its end, and was repaired"}
"#
    ));
    assert_eq!(
        (without.left_out, without.removed, without.left_out_lines),
        (
            1,
            false,
            vec![LeftOut {
                line: 6,
                reason: "the `terminal` record's timestamp_ns is 104, before host evidence at 105; it must not be \
                         before any"
                    .to_owned()
            }]
        )
    );
    fs::remove_file(without.path).expect("to remove it");

    // What comes after an end that is good is left out.
    let text = begun.clone() + &terminal(105) + &stats("s2") + &start("s3", "s2", 200);
    let ended = repaired(folder.path(), "t.jsonl.partial", text.as_bytes()).expect("a repair");
    assert_eq!(text_of(&ended), begun + &terminal(105));
    assert_eq!((ended.left_out, ended.removed), (2, false));
    assert!(judge(&text_of(&ended)).is_complete());
}

/// Each time that evidence of the host names holds the end back, as the judge has it too.
#[test]
fn a_whole_trace_with_any_other_end_is_read_by_the_judge() {
    let golden = golden(ALL);
    let (begun, end) = golden.trim_end().rsplit_once('\n').expect("lines");
    let (_, ns) = end.rsplit_once(r#""timestamp_ns":"#).expect("a time");
    let ns: u64 = ns.trim_end_matches('}').parse().expect("a number");
    let folder = folder();
    for at in (0..=ns + 1).step_by(997).chain([ns - 1, ns]) {
        let text = format!("{begun}\n{}", terminal(at));
        let repaired = repaired(folder.path(), "t.jsonl.partial", text.as_bytes());
        let repaired = repaired.expect("a repair");
        let good = judge(&text) != Verdict::Refused;
        assert_eq!(text_of(&repaired) == text, good, "ended at {at}");
        assert_eq!((repaired.left_out == 0, repaired.removed), (good, good));
        assert_ne!(
            judge(&text_of(&repaired)),
            Verdict::Refused,
            "ended at {at}"
        );
        fs::remove_file(&repaired.path).expect("to remove it");
        let _ = fs::remove_file(folder.path().join("t.jsonl.partial"));
    }
}

#[test]
fn what_hangs_on_nothing_that_is_open_is_dropped_with_its_records() {
    let folder = folder();
    let text = [
        meta(),
        start("s1", "", 0),
        start("s2", "s1", 5),
        // Of a parent that is lost, and open.
        start("s9", "s8", 6),
        stats("s6"),
        stats("s5"),
        stats("s4"),
        start("s3", "s6", 7),
    ]
    .concat();
    let list = [
        "{\"run_id\":\"run-4194305-1\"}\n".to_owned(),
        // It has no parent, as only the root has none; the next hangs on it, and one on that which is lost.
        start("s6", "", 6),
        start("s5", "s6", 6),
        start("s7", "s9", 6),
        start("s4", "s2", 8),
    ];
    fs::write(folder.path().join("t.jsonl.open"), list.concat()).expect("a file");
    let repaired = repaired(folder.path(), "t.jsonl.partial", text.as_bytes()).expect("a repair");
    let whole = text_of(&repaired);
    assert_failed_and_valid(&whole);
    let kept = [
        meta(),
        start("s1", "", 0),
        start("s2", "s1", 5),
        stats("s4"),
        start("s4", "s2", 8),
    ];
    assert!(whole.starts_with(&kept.concat()), "{whole}");
    assert_eq!((repaired.kept, repaired.left_out), (4, 4));
    assert_eq!(repaired.open_spans, 3, "s1, s2 and s4");
}

#[cfg(unix)]
fn pipe(path: &Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status();
    assert!(made.expect("mkfifo").success());
}

/// Where it is opened nevertheless, somebody writes what would be taken.
#[cfg(unix)]
#[test]
fn a_list_that_is_no_file_is_not_read() {
    let folder = folder();
    let list = folder.path().join("t.jsonl.open");
    let lines = "{\"run_id\":\"run-4194305-1\"}\n".to_owned() + &start("s3", "s2", 6);
    let text = meta() + &start("s1", "", 0) + &start("s2", "s1", 5);

    pipe(&list);
    let (to, written) = (list.clone(), lines.clone());
    std::thread::spawn(move || fs::write(to, written));
    let of_pipe = repaired(folder.path(), "t.jsonl.partial", text.as_bytes()).expect("a repair");
    assert_eq!(of_pipe.open_spans, 2);

    fs::remove_file(&list).expect("the pipe");
    let aside = folder.path().join("aside");
    fs::write(&aside, lines).expect("a file");
    std::os::unix::fs::symlink(&aside, &list).expect("a link");
    let of_link = repaired(folder.path(), "t.jsonl.partial", text.as_bytes()).expect("a repair");
    assert_eq!(of_link.open_spans, 2);
}

#[cfg(unix)]
#[test]
fn only_a_file_is_repaired() {
    let folder = folder();
    let path = folder.path().join("t.jsonl.partial");
    pipe(&path);
    let (to, text) = (path.clone(), meta());
    std::thread::spawn(move || fs::write(to, text));
    for no_file in [path.as_path(), folder.path(), Path::new("/dev/null")] {
        let refused = repair(no_file, &RepairOptions::default()).expect_err("a refusal");
        let said = format!("{refused:#}");
        let name = no_file.display();
        assert!(
            said.starts_with(&format!("{name}: it is no regular file")),
            "{said}"
        );
    }
    assert_eq!(names(folder.path()), ["t.jsonl.partial"]);
}

/// The process that writes it is not found here, since it is another machine's.
#[cfg(unix)]
#[test]
fn a_trace_that_somebody_writes_is_not_repaired_and_never_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t.jsonl.partial");
    let text = meta() + &start("s1", "", 0) + &start("s2", "s1", 1);
    fs::write(&path, text).expect("a file");
    let writer = fs::File::options().append(true).open(&path);
    let writer = writer.expect("the file");
    writer.lock().expect("a lock");
    let refused = repair(&path, &RepairOptions::default());
    let said = refused.expect_err("it is refused").to_string();
    assert!(said.contains("is running"), "{said}");
    assert_eq!(names(folder.path()), ["t.jsonl.partial"]);
    let mut options = RepairOptions::default();
    options.force = true;
    assert!(!repair(&path, &options).expect("a copy").removed);
    assert_eq!(names(folder.path()), ["t.jsonl", "t.jsonl.partial"]);
    drop(writer);
    let repaired = repair(&path, &RepairOptions::default());
    assert!(repaired.expect("a repair").removed);
}
