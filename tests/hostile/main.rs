//! Much bad or odd input: what reads it takes memory that the input's size explains. The fuzz targets ask the
//! same of inputs that are small.

#[path = "../../profiler/fuzz/src/counting.rs"]
mod counting;

use std::fs;

use candle_profiler::trace::parse_trace_reader;
use candle_profiler::view::{RepairOptions, repair, summary_text};

/// Bytes of each input, about.
const SIZE: usize = 512 << 10;

const META: &str = include_str!("../repair/meta.json");
const END: &str = r#"{"kind":"terminal","outcome":"complete","timestamp_ns":9}"#;

/// A trace with these lines in its midst, as many as make [`SIZE`].
fn trace(line: impl FnMut(usize) -> String) -> Vec<u8> {
    let lines = repeated(line, "\n");
    format!("{}\n{lines}\n{END}\n", META.trim_end()).into_bytes()
}

fn repeated(mut part: impl FnMut(usize) -> String, between: &str) -> String {
    let mut text = String::new();
    for number in 0.. {
        if text.len() >= SIZE {
            break;
        }
        if number > 0 {
            text.push_str(between);
        }
        text.push_str(&part(number));
    }
    text
}

/// A line that has a list or a map of [`SIZE`] somewhere.
fn trace_with(line: &str, part: impl FnMut(usize) -> String) -> Vec<u8> {
    let line = line.replace('@', &repeated(part, ","));
    format!("{}\n{line}\n{END}\n", META.trim_end()).into_bytes()
}

/// A capture that promises this.
fn with_contract(promise: &str, part: impl FnMut(usize) -> String) -> Vec<u8> {
    let promise = promise.replace('@', &repeated(part, ","));
    let meta = META
        .trim_end()
        .replace(r#""required_semantic_labels":[]"#, &promise);
    assert!(meta.len() > SIZE);
    format!("{meta}\n{END}\n").into_bytes()
}

/// The same in the schema that came first.
fn legacy_with(line: &str, part: impl FnMut(usize) -> String) -> Vec<u8> {
    let meta = META.trim_end().replace("trace/10", "trace/6");
    let line = line.replace('@', &repeated(part, ","));
    format!("{meta}\n{line}\n").into_bytes()
}

/// What the inputs are, and what they look like.
fn inputs() -> Vec<(&'static str, Vec<u8>)> {
    let span = |number: usize| {
        format!(
            r#"{{"kind":"span_start","id":"{number}","name":"","start_ns":0,"span_kind":"op","measured":false}}"#
        )
    };
    let ended = |number: usize| match number % 2 {
        0 => span(number / 2),
        _ => format!(
            r#"{{"kind":"span_end","id":"{}","duration_ns":1}}"#,
            number / 2
        ),
    };
    let nested = |number: usize| {
        format!(
            r#"{{"kind":"span_start","id":"{}","parent_id":"{number}","name":"{number}","start_ns":0,"span_kind":"op","measured":true}}"#,
            number + 1
        )
    };
    let op = r#"{"kind":"op","span_id":"1","op_name":"","inputs":[@],"output":"","shape":[],"dtype":"","device":"","duration_ns":1,"timestamp_ns":1}"#;
    let tensor = r#"{"kind":"tensor","span_id":"1","tensor_id":"1","label":"","shape":[@],"dtype":"","device":"","requires_grad":false,"dense_bytes":null,"category":"other"}"#;
    let with_meta = |rest: &str, part: &dyn Fn(usize) -> String| {
        let (meta, _) = META.split_once(r#","tags":"#).expect("tags");
        let rest = rest.replace('@', &repeated(part, ","));
        format!("{meta},{rest}}}\n{END}\n").into_bytes()
    };
    vec![
        ("spans that never end", trace(span)),
        ("spans that end", trace(ended)),
        ("spans one inside the other", trace(nested)),
        (
            "scalars",
            trace(|number| {
                format!(
                    r#"{{"kind":"tensor_stats","span_id":"1","label":"{number}","shape":[],"dtype":"f64","elements":1,"non_finite":0,"rms":1,"abs_max":1,"mean":1}}"#
                )
            }),
        ),
        (
            "gradients",
            trace(|number| {
                format!(
                    r#"{{"kind":"gradient","event_id":"{number}","root":"","key":"{number}","state":"zero","norm":0}}"#
                )
            }),
        ),
        (
            "edges",
            trace(|number| {
                format!(
                    r#"{{"kind":"edge","edge_kind":"data","from_tensor":"{number}","to_tensor":""}}"#
                )
            }),
        ),
        (
            "memory",
            trace(|number| {
                format!(
                    r#"{{"kind":"memory","timestamp_ns":1,"storage_id":"{number}","device":"","bytes":1,"action":"alloc","shape":[],"dtype":"","category":"other"}}"#
                )
            }),
        ),
        ("names of inputs", trace_with(op, |_| r#""""#.to_owned())),
        ("a shape", trace_with(tensor, |_| "1".to_owned())),
        (
            "an unknown list",
            trace_with(
                r#"{"kind":"span_end","id":"1","duration_ns":1,"x":[@]}"#,
                |_| "1".to_owned(),
            ),
        ),
        (
            "an unknown list before the kind",
            trace_with(
                r#"{"x":[@],"kind":"span_end","id":"1","duration_ns":1}"#,
                |_| "1".to_owned(),
            ),
        ),
        (
            "an unknown list of an edge",
            trace_with(
                r#"{"kind":"edge","edge_kind":"data","from_tensor":"","to_tensor":"","x":[@]}"#,
                |_| "1".to_owned(),
            ),
        ),
        (
            "a list in the place of another value",
            trace_with(r#"{"kind":"span_end","id":[@],"duration_ns":1}"#, |_| {
                "1".to_owned()
            }),
        ),
        (
            "a list that is foreign to a key of ours",
            trace_with(
                r#"{"kind":"span_end","id":"1","duration_ns":1,"busy_ns":[@]}"#,
                |_| "1".to_owned(),
            ),
        ),
        ("a list alone", trace_with("[@]", |_| "1".to_owned())),
        (
            "found cuts",
            trace_with(
                r#"{"kind":"terminal","outcome":"complete","timestamp_ns":9,"cuts":[@]}"#,
                |_| r#""""#.to_owned(),
            ),
        ),
        (
            "an unknown list of the origin",
            with_meta(r#""tags":{},"x":[@]"#, &|_| "1".to_owned()),
        ),
        (
            "an unknown list of the old schema",
            legacy_with(
                r#"{"kind":"edge","from_span":"","to_span":"","duration_ns":1,"x":[@]}"#,
                |_| "1".to_owned(),
            ),
        ),
        (
            "unknown keys",
            trace_with(
                r#"{"kind":"span_end","id":"1","duration_ns":1,@}"#,
                |number| format!("\"{number}\":1"),
            ),
        ),
        (
            "what was left out",
            trace_with(
                r#"{"kind":"terminal","outcome":"complete","timestamp_ns":9,"dropped":{@}}"#,
                |number| format!("\"{number}\":1"),
            ),
        ),
        (
            "tags",
            with_meta(r#""tags":{@}"#, &|number| format!("\"{number}\":\"\"")),
        ),
        (
            "required labels",
            with_contract(r#""required_semantic_labels":[@]"#, |_| r#""""#.to_owned()),
        ),
        (
            "promised gradients",
            with_contract(
                r#""gradient_contract":{"manifest_sha256":"","families":[],"expected":[@]}"#,
                |number| format!(r#"{{"root":"","key":"{number}","family":""}}"#),
            ),
        ),
        (
            "lists in lists",
            trace_with(r#"{"kind":"span_end","id":@}"#, |_| "[".to_owned()),
        ),
        ("empty objects", trace(|_| "{}".to_owned())),
        ("blank lines", vec![b'\n'; SIZE]),
        ("one line without an end", vec![b'{'; SIZE]),
        ("bytes of zero", vec![0; SIZE]),
        ("bytes that are no text", vec![0xff; SIZE]),
        (
            "one name",
            trace_with(
                r#"{"kind":"span_start","id":"1","name":"@","start_ns":0,"span_kind":"op","measured":false}"#,
                |_| r"\u0001".to_owned(),
            ),
        ),
    ]
}

/// So many times an input's size may be taken for it.
const TIMES: usize = 20;
/// Buffers that are there for any input.
const FIXED: usize = 256 << 10;

fn bounded<T>(what: &str, input: &[u8], work: impl FnOnce() -> T) -> T {
    let (result, taken) = counting::peak(work);
    let times = taken as f64 / input.len() as f64;
    assert!(
        taken <= TIMES * input.len() + FIXED,
        "{what}: {times:.1} times the input"
    );
    result
}

#[test]
fn input_takes_memory_that_its_size_explains() {
    let (_, counted) = counting::peak(|| drop(std::hint::black_box(vec![1u8; SIZE])));
    assert!(counted >= SIZE, "the allocator does not count");

    let folder = tempfile::tempdir().expect("a folder");
    for (what, input) in inputs() {
        let read = bounded(&format!("reading {what}"), &input, || {
            parse_trace_reader(input.as_slice())
        });
        let _ = read.map_err(|error| assert!(error.to_string().len() < 2000, "{error}"));

        let _ = bounded(&format!("a summary of {what}"), &input, || {
            summary_text(input.as_slice(), 80)
        });

        let broken = folder.path().join("t.jsonl.partial");
        fs::write(&broken, &input).expect("a file");
        let mut options = RepairOptions::default();
        options.force = true;
        let repaired = bounded(&format!("repairing {what}"), &input, || {
            repair(&broken, &options)
        });
        if let Ok(repaired) = repaired {
            fs::remove_file(repaired.path).expect("to remove it");
        }
        let _ = fs::remove_file(&broken);

        // The same as the list of what is open.
        fs::write(&broken, META).expect("a file");
        let list = folder.path().join("t.jsonl.open");
        let lines = input.iter().position(|byte| *byte == b'\n');
        let lines = &input[lines.unwrap_or(0)..];
        let head = br#"{"run_id":"run-4194305-1"}"#.as_slice();
        fs::write(&list, [head, lines].concat()).expect("a file");
        let repaired = bounded(&format!("a list of {what}"), &input, || {
            repair(&broken, &options)
        });
        if let Ok(repaired) = repaired {
            fs::remove_file(repaired.path).expect("to remove it");
        }
        let _ = fs::remove_file(&broken);
        let _ = fs::remove_file(&list);
    }
}
