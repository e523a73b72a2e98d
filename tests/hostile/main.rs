//! Much bad or odd input: what reads it takes memory that the input's size explains. The fuzz targets ask the
//! same of inputs that are small.

#[path = "../../profiler/fuzz/src/counting.rs"]
mod counting;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use candle_profiler::trace::{SpanRecord, analyze_health, parse_trace_reader};
use candle_profiler::view::{RepairOptions, Repaired, export, repair, summary_text};

/// Bytes of each input, about.
const SIZE: usize = 512 << 10;

const META: &str = include_str!("../repair/meta.json");
/// The span that evidence is of.
const ROOT: &str =
    r#"{"kind":"span_start","id":"r","name":"","start_ns":0,"span_kind":"op","measured":false}"#;
const END: &str = r#"{"kind":"terminal","outcome":"complete","timestamp_ns":9}"#;

/// What an input is, whether it is a trace, and what it looks like.
struct Odd {
    what: &'static str,
    is_trace: bool,
    bytes: Vec<u8>,
}

fn good(what: &'static str, bytes: Vec<u8>) -> Odd {
    Odd {
        what,
        is_trace: true,
        bytes,
    }
}

fn bad(what: &'static str, bytes: Vec<u8>) -> Odd {
    Odd {
        is_trace: false,
        ..good(what, bytes)
    }
}

/// A trace with these lines in its midst, as many as make `size`.
fn trace_of(size: usize, line: impl FnMut(usize) -> String) -> Vec<u8> {
    let lines = repeated(size, line, "\n");
    format!("{}\n{ROOT}\n{lines}\n{END}\n", META.trim_end()).into_bytes()
}

fn trace(line: impl FnMut(usize) -> String) -> Vec<u8> {
    trace_of(SIZE, line)
}

fn repeated(size: usize, mut part: impl FnMut(usize) -> String, between: &str) -> String {
    let mut text = String::new();
    for number in 0.. {
        if text.len() >= size {
            break;
        }
        if number > 0 {
            text.push_str(between);
        }
        text.push_str(&part(number));
    }
    text
}

fn list(part: impl FnMut(usize) -> String) -> String {
    repeated(SIZE, part, ",")
}

/// A line that has a list or a map of [`SIZE`] somewhere.
fn trace_with(line: &str, part: impl FnMut(usize) -> String) -> Vec<u8> {
    let line = line.replace('@', &list(part));
    format!("{}\n{ROOT}\n{line}\n{END}\n", META.trim_end()).into_bytes()
}

/// The same of the last line.
fn ending_with(key: &str, part: impl FnMut(usize) -> String) -> Vec<u8> {
    let key = key.replace('@', &list(part));
    let end = END.replace('}', &format!(",{key}}}"));
    format!("{}\n{end}\n", META.trim_end()).into_bytes()
}

/// A capture that promises this.
fn with_contract(promise: &str, part: impl FnMut(usize) -> String) -> Vec<u8> {
    let promise = promise.replace('@', &list(part));
    let meta = META
        .trim_end()
        .replace(r#""required_semantic_labels":[]"#, &promise);
    assert!(meta.len() > SIZE);
    format!("{meta}\n{END}\n").into_bytes()
}

/// The same in the schema that came first, which had no promises.
fn legacy_with(line: &str, part: impl FnMut(usize) -> String) -> Vec<u8> {
    let (origin, rest) = META.split_once(r#""capture_contract":"#).expect("promises");
    let (_, tags) = rest.split_once(r#""tags":"#).expect("tags");
    let meta = format!(r#"{origin}"tags":{}"#, tags.trim_end()).replace("trace/10", "trace/6");
    let line = line.replace('@', &list(part));
    format!("{meta}\n{line}\n").into_bytes()
}

/// A span's first line, the shortest that there is.
fn start(id: usize, parent: &str) -> String {
    format!(
        r#"{{"kind":"span_start","id":"{id}","parent_id":"{parent}","name":"","start_ns":0,"span_kind":"op"}}"#
    )
}

fn end(id: usize) -> String {
    format!(r#"{{"kind":"span_end","id":"{id}","duration_ns":1}}"#)
}

/// Of spans one inside the other, the parent of this one.
fn above(number: usize) -> String {
    let above = number.checked_sub(1);
    above.map_or_else(|| "r".to_owned(), |above| above.to_string())
}

fn inputs() -> Vec<Odd> {
    let ended = |number: usize| match number % 2 {
        0 => start(number / 2, "r"),
        _ => end(number / 2),
    };
    let op = r#"{"kind":"op","span_id":"r","op_name":"","inputs":[@],"output":"","shape":[],"dtype":"","device":"","duration_ns":1,"timestamp_ns":1,"input_dense_bytes":1}"#;
    let tensor = r#"{"kind":"tensor","span_id":"r","tensor_id":"1","label":"","shape":[@],"dtype":"","device":"","requires_grad":false,"dense_bytes":null,"category":"other"}"#;
    let with_meta = |rest: &str, part: &dyn Fn(usize) -> String| {
        let (meta, _) = META.split_once(r#","tags":"#).expect("tags");
        let rest = rest.replace('@', &list(part));
        format!("{meta},{rest}}}\n{END}\n").into_bytes()
    };
    let one = |_| "1".to_owned();
    let empty = |_| r#""""#.to_owned();
    vec![
        good("spans that never end", trace(|number| start(number, "r"))),
        good("spans that end", trace(ended)),
        good(
            "spans one inside the other",
            trace(|number| start(number, &above(number))),
        ),
        good(
            "scalars",
            trace(|number| {
                format!(
                    r#"{{"kind":"tensor_stats","span_id":"r","label":"{number}","shape":[],"dtype":"f64","elements":1,"non_finite":0,"rms":1,"abs_max":1,"mean":1}}"#
                )
            }),
        ),
        good(
            "gradients",
            trace(|number| {
                format!(
                    r#"{{"kind":"gradient","event_id":"{number}","root":"","key":"{number}","state":"zero","norm":0}}"#
                )
            }),
        ),
        good(
            "edges",
            trace(|number| {
                format!(
                    r#"{{"kind":"edge","edge_kind":"data","from_tensor":"{number}","to_tensor":""}}"#
                )
            }),
        ),
        good(
            "memory",
            trace(|number| {
                format!(
                    r#"{{"kind":"memory","timestamp_ns":1,"storage_id":"{number}","tensor_id":"","span_id":"r","device":"","bytes":1,"action":"alloc","shape":[],"dtype":"","category":"other"}}"#
                )
            }),
        ),
        good("names of inputs", trace_with(op, empty)),
        good("a shape", trace_with(tensor, one)),
        good(
            "an unknown list",
            trace_with(
                r#"{"kind":"span_end","id":"r","duration_ns":1,"x":[@]}"#,
                one,
            ),
        ),
        good(
            "an unknown list before the kind",
            trace_with(
                r#"{"x":[@],"kind":"span_end","id":"r","duration_ns":1}"#,
                one,
            ),
        ),
        good(
            "an unknown list of an edge",
            trace_with(
                r#"{"kind":"edge","edge_kind":"data","from_tensor":"","to_tensor":"","x":[@]}"#,
                one,
            ),
        ),
        bad(
            "a list in the place of another value",
            trace_with(r#"{"kind":"span_end","id":[@],"duration_ns":1}"#, one),
        ),
        good(
            "a list that is foreign to a key of ours",
            trace_with(
                r#"{"kind":"span_end","id":"r","duration_ns":1,"busy_ns":[@]}"#,
                one,
            ),
        ),
        bad("a list alone", trace_with("[@]", one)),
        good("found cuts", ending_with(r#""cuts":[@]"#, empty)),
        good(
            "an unknown list of the origin",
            with_meta(r#""tags":{},"x":[@]"#, &one),
        ),
        good(
            "an unknown list of the old schema",
            legacy_with(
                r#"{"kind":"edge","from_span":"","to_span":"","duration_ns":1,"x":[@]}"#,
                one,
            ),
        ),
        good(
            "unknown keys",
            trace_with(
                r#"{"kind":"span_end","id":"r","duration_ns":1,@}"#,
                |number| format!("\"{number}\":1"),
            ),
        ),
        good(
            "one unknown key of the origin",
            with_meta(r#""tags":{},"@":1"#, &|_| r"\u0001".to_owned()),
        ),
        good(
            "what was left out",
            ending_with(r#""dropped":{@}"#, |number| format!("\"{number}\":1")),
        ),
        good(
            "tags",
            with_meta(r#""tags":{@}"#, &|number| format!("\"{number}\":\"\"")),
        ),
        good(
            "required labels",
            with_contract(r#""required_semantic_labels":[@]"#, empty),
        ),
        good(
            "promised gradients",
            with_contract(
                r#""required_semantic_labels":[],"gradient_contract":{"manifest_sha256":"","families":[],"expected":[@]}"#,
                |number| format!(r#"{{"root":"","key":"{number}","family":""}}"#),
            ),
        ),
        bad(
            "lists in lists",
            trace_with(
                r#"{"kind":"span_end","id":"r","duration_ns":1,"x":@}"#,
                |number| "[".repeat(if number == 0 { SIZE } else { 1 }),
            ),
        ),
        bad("empty objects", trace(|_| "{}".to_owned())),
        bad("blank lines", vec![b'\n'; SIZE]),
        bad("one line without an end", vec![b'{'; SIZE]),
        bad("bytes of zero", vec![0; SIZE]),
        bad("bytes that are no text", vec![0xff; SIZE]),
        good(
            "one name",
            trace_with(
                r#"{"kind":"span_start","id":"1","name":"@","start_ns":0,"span_kind":"op","measured":false}"#,
                |_| r"\u0001".to_owned(),
            ),
        ),
    ]
}

/// Memory is counted for the whole process, so that one test runs at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// So many times an input's size may be taken for it.
const TIMES: usize = 20;
/// Buffers that are there for any input.
const FIXED: usize = 256 << 10;

fn bounded<T>(what: &str, input: &[u8], work: impl FnOnce() -> T) -> T {
    bounded_by(what, input.len(), work)
}

fn bounded_by<T>(what: &str, size: usize, work: impl FnOnce() -> T) -> T {
    let (result, taken) = counting::peak(work);
    let times = taken as f64 / size as f64;
    assert!(
        taken <= TIMES * size + FIXED,
        "{what}: {times:.1} times the input"
    );
    result
}

#[test]
fn input_takes_memory_that_its_size_explains() {
    let _alone = alone();
    let (_, counted) = counting::peak(|| drop(std::hint::black_box(vec![1u8; SIZE])));
    assert!(counted >= SIZE, "the allocator does not count");

    let folder = tempfile::tempdir().expect("a folder");
    for Odd {
        what,
        is_trace,
        bytes: input,
    } in inputs()
    {
        let read = bounded(&format!("reading {what}"), &input, || {
            parse_trace_reader(input.as_slice())
        });
        assert_eq!(read.is_ok(), is_trace, "{what}: {:?}", read.err());
        let _ = read.map_err(|error| assert!(error.to_string().len() < 2000, "{error}"));

        let _ = bounded(&format!("a summary of {what}"), &input, || {
            summary_text(input.as_slice(), 80)
        });

        let broken = Broken::in_folder(folder.path());
        let repaired = broken.repaired(&format!("repairing {what}"), &input);
        assert!(repaired.is_some() || !is_trace, "{what}: no repair");

        // The same as the list of what is open, in a trace of the root alone.
        let first = input.iter().position(|byte| *byte == b'\n').unwrap_or(0);
        broken.list(&input[first..]);
        let begun = format!("{}\n{ROOT}\n", META.trim_end());
        let (trace, _) = broken
            .repaired_by(&format!("a list of {what}"), begun.as_bytes(), input.len())
            .expect("a repair");
        let verdict = parse_trace_reader(trace.as_slice()).map(|_| ());
        assert!(verdict.is_ok(), "a list of {what}: {verdict:?}");
    }
}

/// A trace that broke off.
struct Broken {
    trace: PathBuf,
    open: PathBuf,
}

impl Broken {
    fn in_folder(folder: &Path) -> Self {
        Self {
            trace: folder.join("t.jsonl.partial"),
            open: folder.join("t.jsonl.open"),
        }
    }

    /// What was open when it broke off.
    fn list(&self, lines: &[u8]) {
        let head = br#"{"run_id":"run-4194305-1"}"#.as_slice();
        fs::write(&self.open, [head, lines].concat()).expect("a file");
    }

    fn repaired(&self, what: &str, input: &[u8]) -> Option<(Vec<u8>, Repaired)> {
        self.repaired_by(what, input, input.len())
    }

    /// The whole trace, where there is one; memory is taken for `size` bytes.
    fn repaired_by(&self, what: &str, input: &[u8], size: usize) -> Option<(Vec<u8>, Repaired)> {
        fs::write(&self.trace, input).expect("a file");
        let mut options = RepairOptions::default();
        options.force = true;
        let repaired = bounded_by(what, size, || repair(&self.trace, &options));
        let whole = repaired.ok().map(|repaired| {
            let text = fs::read(&repaired.path).expect("the whole trace");
            fs::remove_file(&repaired.path).expect("to remove it");
            (text, repaired)
        });
        // They are gone where all went well.
        let _ = fs::remove_file(&self.trace);
        let _ = fs::remove_file(&self.open);
        whole
    }
}

/// Bytes of an input in which no span may be gone over for each other one: that would take minutes.
const MANY: usize = 8 << 20;

#[test]
fn spans_whose_parents_are_a_ring_are_walked_once() {
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a folder");
    for (what, ring) in [("rings of one", 0), ("rings of two", 1)] {
        let input = trace_of(MANY, |number| start(number, &(number ^ ring).to_string()));
        let read = bounded(&format!("reading {what}"), &input, || {
            parse_trace_reader(input.as_slice())
        });
        let read = read.expect("a trace");
        let count = read.spans.len();
        assert_eq!(read.build_summary().max_depth, ring, "{what}");
        let health = analyze_health(&read);
        let rings = health
            .issues
            .iter()
            .filter(|issue| issue.code == "span_cycle");
        // The last of the pairs may lack its partner.
        assert!(rings.count() + 2 >= count, "{what}");
        let read = [read];
        export::tensorboard(&read, &mut std::io::sink()).expect("an export");
        export::chrome(&read, &mut std::io::sink()).expect("an export");
        summary_text(input.as_slice(), 80).expect("a summary");

        let broken = Broken::in_folder(folder.path());
        let (_, repaired) = broken.repaired(what, &input).expect("a repair");
        assert_eq!(repaired.left_out, count as u64 - 1, "{what}");
        assert_eq!(repaired.kept, 3, "{what}: the origin, the root and the end");
    }
}

#[test]
fn a_deep_chain_is_walked_once_for_all_that_hangs_on_it() {
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a folder");
    let depth = MANY / 300;
    let starts = (0..depth).map(|number| start(number, &above(number)));
    let ends = (0..depth).rev().map(end);
    let lines: Vec<String> = starts.chain(ends).collect();
    let input = format!("{}\n{ROOT}\n{}\n", META.trim_end(), lines.join("\n"));
    let deepest = (depth - 1).to_string();
    let children: Vec<String> = (0..depth)
        .map(|number| start(depth + number, &deepest))
        .collect();

    let broken = Broken::in_folder(folder.path());
    broken.list(format!("\n{}\n", children.join("\n")).as_bytes());
    let size = 2 * input.len();
    let (whole, repaired) = broken
        .repaired_by("a deep chain", input.as_bytes(), size)
        .expect("a repair");
    assert_eq!(repaired.open_spans, depth as u64 + 1, "they and the root");
    let whole = parse_trace_reader(whole.as_slice()).expect("a trace");
    let of_root = |span: &&SpanRecord| span.parent_id.as_deref() == Some("r");
    assert_eq!(whole.spans.iter().filter(of_root).count(), depth + 1);
}
