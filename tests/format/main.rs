//! What is written is the format, byte for byte, and reads back.

use candle_profiler::trace::{parse_trace, parse_trace_reader, write_jsonl};
use tests::{folder, golden};

mod extra;
mod reader;
mod sequences;

/// Keys whose values are measured, by kind of event.
fn measured_keys(kind: &str) -> &'static [&'static str] {
    match kind {
        "meta" => &["run_id", "timestamp"],
        "span_start" => &["start_ns"],
        "span_end" => &["duration_ns"],
        "op" => &["duration_ns", "timestamp_ns"],
        "memory" | "device_memory" | "terminal" => &["timestamp_ns"],
        "edge" => &["host_duration_ns"],
        _ => &[],
    }
}

/// The lines with measured values taken out of the text; everything else stays as it is, byte for
/// byte.
fn normalised(text: &str) -> Vec<String> {
    assert!(text.ends_with('\n'), "the last line ends");
    text.lines().map(without_measured).collect()
}

fn without_measured(line: &str) -> String {
    let kind = line
        .strip_prefix(r#"{"kind":""#)
        .and_then(|rest| rest.split('"').next())
        .expect("kind is the first key");
    let mut line = line.to_owned();
    for key in measured_keys(kind) {
        let key = format!("\"{key}\":");
        let Some(at) = line.find(&key) else { continue };
        let start = at + key.len();
        let length = line[start..]
            .find([',', '}'])
            .expect("a value ends somewhere");
        line.replace_range(start..start + length, "*");
    }
    line
}

fn text_of(path: impl AsRef<std::path::Path>) -> String {
    std::fs::read_to_string(path).expect("a trace")
}

#[test]
fn all_events_equal_the_golden_lines_and_the_references() {
    let folder = folder();
    let ours = sequences::all_events_ours(&folder.path().join("ours.jsonl"));
    let reference = sequences::all_events_reference(&folder.path().join("reference.jsonl"));
    let ours = normalised(&text_of(ours));
    assert_eq!(ours, normalised(&golden("all-events.trace10.jsonl")));
    assert_eq!(ours, normalised(&text_of(reference)));
}

#[test]
fn a_failed_trace_equals_the_golden_lines_and_the_references() {
    let folder = folder();
    let ours = sequences::failed_ours(&folder.path().join("ours.jsonl"));
    let reference = sequences::failed_reference(&folder.path().join("reference.jsonl"));
    let ours = normalised(&text_of(ours));
    assert_eq!(ours, normalised(&golden("failed.trace10.jsonl")));
    assert_eq!(ours, normalised(&text_of(reference)));
}

#[test]
fn what_is_left_out_is_filled_in_as_the_reference_does() {
    let folder = folder();
    let ours = sequences::defaults_ours(&folder.path().join("ours.jsonl"));
    let reference = sequences::defaults_reference(&folder.path().join("reference.jsonl"));
    assert_eq!(normalised(&text_of(ours)), normalised(&text_of(reference)));
}

#[test]
fn documents_and_events_turn_into_each_other() {
    let folder = folder();
    for name in ["all-events.trace10.jsonl", "failed.trace10.jsonl"] {
        let document = parse_trace_reader(golden(name).as_bytes()).unwrap();
        let path = folder.path().join("deep/er").join(name);
        write_jsonl(&path, &document.to_events()).unwrap();
        assert_eq!(parse_trace(&path).unwrap(), document);
        assert_eq!(
            candle_graph::parse_trace(&path).unwrap().build_summary(),
            serde_json::from_value(serde_json::to_value(document.build_summary()).unwrap())
                .unwrap()
        );
    }
}

#[test]
fn the_judge_reads_the_same_document() {
    let text = golden("all-events.trace10.jsonl");
    let folder = folder();
    let path = folder.path().join("trace.jsonl");
    std::fs::write(&path, text).unwrap();
    let ours = serde_json::to_value(parse_trace(&path).unwrap()).unwrap();
    let theirs = serde_json::to_value(candle_graph::parse_trace(&path).unwrap()).unwrap();
    assert_eq!(ours, theirs);
}
