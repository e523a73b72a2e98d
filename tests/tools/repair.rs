//! `repair`.

use tests::{golden, judge};

use super::{get, json, put, refused, tool, well};

#[test]
fn a_trace_that_broke_off_becomes_whole() {
    let folder = tests::folder();
    let path = folder.path();
    let text = golden("all-events.trace10.jsonl").replace("\"run-7514-", "\"run-0-");
    let lines: Vec<&str> = text.lines().collect();
    let broken = lines[..12].join("\n") + "\n{\"kind\":\"span_e";
    put(path, "x.jsonl.partial", &broken);
    let said = well(path, &["repair", "x.jsonl.partial"]);
    assert!(said.starts_with("x.jsonl: 12 lines kept, "), "{said}");
    let whole = get(path, "x.jsonl");
    assert!(whole.starts_with(&lines[..12].join("\n")));
    assert!(judge(&whole).is_valid() && !judge(&whole).is_complete());
    assert!(well(path, &["check", "x.jsonl"]).starts_with("x.jsonl: valid, failed, "));
    assert!(well(path, &["summary", "x.jsonl"]).contains("still open at the end: "));

    put(path, "y.jsonl.partial", &broken);
    let value = json(path, &["repair", "--json", "y.jsonl.partial"]);
    assert_eq!((&value[0]["path"], &value[0]["kept"]), (&"y.jsonl".into(), &12.into()));
}

#[test]
fn nothing_is_overwritten_and_what_is_no_trace_is_refused() {
    let folder = tests::folder();
    let path = folder.path();
    put(path, "no.partial", "nothing\n");
    let line = refused(path, &["repair", "no.partial"]);
    assert!(line.contains("no.partial"), "{line}");
    assert_eq!(get(path, "no.partial"), "nothing\n");
    assert!(refused(path, &["repair", "-"]).contains("repair takes files"));
    let ran = tool(path, &["repair", "a", "b", "-o", "c"]);
    assert_eq!(ran.code, Some(2));
}
