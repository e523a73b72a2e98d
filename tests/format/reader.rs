//! Refusals name the file, the line, what is wrong and what is allowed.

use candle_profiler::trace::{TraceEvents, parse_trace, parse_trace_reader};
use tests::{folder, golden};

fn refusal(from: &str, to: &str) -> String {
    let golden = golden("all-events.trace10.jsonl");
    assert!(golden.contains(from), "{from:?} is in the golden trace");
    let folder = folder();
    let path = folder.path().join("broken.jsonl");
    std::fs::write(&path, golden.replacen(from, to, 1)).unwrap();
    let error = parse_trace(&path).unwrap_err().to_string();
    assert!(error.contains("broken.jsonl"), "{error}");
    error
}

#[test]
fn errors_say_where_and_what_and_what_else() {
    for (from, to, line, words) in [
        (
            r#"{"kind":"span_start","id":"s2""#,
            r#"{"kind":"span_begin","id":"s2""#,
            "line 3",
            &["span_begin", "span_start", "terminal"][..],
        ),
        (
            r#""id":"s3","#,
            r#""id":"s2","#,
            "line 4",
            &["\"s2\"", "twice"],
        ),
        (
            r#"{"kind":"span_end","id":"s5""#,
            r#"{"kind":"span_end","id":"s55""#,
            "line 12",
            &["\"s55\"", "started"],
        ),
        (
            r#""span_kind":"module""#,
            r#""span_kind":"modul""#,
            "line 5",
            &["modul", "function"],
        ),
        (r#""start_ns":16014,"#, "", "line 5", &["start_ns"]),
        (
            r#""elements":1,"#,
            r#""elements":2,"#,
            "line 15",
            &["loss/total", "elements is 2"],
        ),
        (
            r#""outcome":"complete""#,
            r#""outcome":"failed""#,
            "line 30",
            &["reason"],
        ),
        (
            "trace/10",
            "trace/11",
            "line 1",
            &["trace/11", "trace/10", "trace/9"],
        ),
        ("trace/10", "trace/9", "line 15", &["tensor_stats"]),
        // The name of the first schema in another place does not make it one.
        (
            r#""family":"trainable""#,
            r#""candle-graph/trace/6":"trainable""#,
            "line 1",
            &["missing field `family`"],
        ),
    ] {
        let error = refusal(from, to);
        assert!(error.contains(line), "{error} lacks {line}");
        for word in words {
            assert!(error.contains(word), "{error} lacks {word}");
        }
    }
}

#[test]
fn a_trace_without_its_end_is_none() {
    let golden = golden("failed.trace10.jsonl");
    let cut: String = golden.split_inclusive('\n').take(3).collect();
    let error = parse_trace_reader(cut.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("terminal"), "{error}");
    assert!(parse_trace_reader(&b""[..]).is_err());
    assert!(
        parse_trace("/no/such/trace.jsonl")
            .unwrap_err()
            .to_string()
            .contains("/no/such/trace.jsonl")
    );
}

#[test]
fn events_come_one_by_one_with_their_lines() {
    let text = golden("failed.trace10.jsonl").replace('\n', "\r\n\n");
    let mut events = TraceEvents::new(text.as_bytes());
    let mut lines = Vec::new();
    while let Some(event) = events.next() {
        event.unwrap();
        lines.push(events.line());
    }
    assert_eq!(lines, [1, 3, 5, 7]);
}

#[test]
fn spans_are_sorted_by_the_text_of_their_ids() {
    let mut lines: Vec<String> = golden("failed.trace10.jsonl")
        .lines()
        .map(String::from)
        .collect();
    for id in [
        "s10",
        "s9",
        "long-identity-b",
        "long-identity-a",
        "s123456789",
        "s12345678",
    ] {
        let line = lines[2].replace("\"s2\"", &format!("\"{id}\""));
        lines.insert(3, line);
    }
    let document = parse_trace_reader(lines.join("\n").as_bytes()).unwrap();
    let ids: Vec<&str> = document.spans.iter().map(|span| span.id.as_str()).collect();
    let mut sorted = ids.clone();
    sorted.sort_unstable();
    assert_eq!(ids, sorted);
    assert_eq!(ids.len(), 8);
}

/// The keys of a line may stand in any order, and others beside them.
#[test]
fn the_kind_of_a_line_may_stand_anywhere() {
    let events = |text: &str| -> Vec<_> {
        let events = TraceEvents::new(text.as_bytes());
        events.map(|event| event.expect("a record")).collect()
    };
    for name in [
        "all-events.trace10.jsonl",
        "all-events.trace6.jsonl",
        "failed.trace10.jsonl",
    ] {
        let golden = golden(name);
        // A map of JSON is sorted by its keys.
        let sorted: String = golden
            .lines()
            .map(|line| {
                let mut keys: serde_json::Map<String, serde_json::Value> =
                    serde_json::from_str(line).expect("an object");
                keys.insert(
                    "a".to_owned(),
                    serde_json::json!([{"kind": "op"}, -1.5, null]),
                );
                serde_json::to_string(&keys).expect("JSON") + "\n"
            })
            .collect();
        assert!(!sorted.contains("\n{\"kind\""));
        assert_eq!(events(&sorted), events(&golden), "{name}");
    }
}

#[test]
fn what_is_no_object_with_one_kind_is_no_record() {
    let end = r#"{"kind":"span_end","id":"s2","duration_ns":178053}"#;
    for (instead, word) in [
        (r#"["span_end","s2",178053]"#, "an object with a `kind`"),
        ("5", "an object with a `kind`"),
        (
            r#"{"id":"s2","duration_ns":178053}"#,
            "missing field `kind`",
        ),
        (
            r#"{"kind":"span_end","kind":"span_end","id":"s2","duration_ns":178053}"#,
            "duplicate field `kind`",
        ),
        (
            r#"{"kind":"edge","edge_kind":"flow","from_tensor":"a","to_tensor":"b"}"#,
            "unknown variant `flow`",
        ),
        (
            r#"{"kind":"span_end","id":"s2","duration_ns":178053,"x":"\ud800"}"#,
            "hex escape",
        ),
    ] {
        let error = refusal(end, instead);
        assert!(error.contains("line 26") && error.contains(word), "{error}");
    }
}
