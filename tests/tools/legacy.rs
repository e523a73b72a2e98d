//! `candle-graph/trace/6`, judged by the release that wrote it.

use std::collections::BTreeSet;
use std::io::Write;

use candle_graph_07 as judge;
use candle_profiler::phase::ExecutionStep;
use candle_profiler::trace::MemoryCategory;
use candle_profiler::{
    DeviceMemoryRecord, MemoryRecord, OpRecord, ProfileRun, SpanKind, TensorRecord, TraceSession,
};
use tests::golden;

use super::{put, tool, well};

/// Codes of the errors; `None`: it does not parse.
type Errors = Option<BTreeSet<String>>;

fn judged(text: &str) -> Errors {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(text.as_bytes()).expect("to write");
    let document = judge::trace::parse_trace(file.path()).ok()?;
    let health = judge::trace::analyze_health(&document);
    let errors = health
        .issues
        .iter()
        .filter(|issue| issue.severity == judge::trace::HealthSeverity::Error);
    Some(errors.map(|issue| issue.code.clone()).collect())
}

fn ours(text: &str) -> Errors {
    let document = candle_profiler::trace::parse_trace_reader(text.as_bytes()).ok()?;
    let health = candle_profiler::trace::analyze_health(&document);
    let errors = health.of(candle_profiler::trace::HealthSeverity::Error);
    Some(errors.map(|issue| issue.code.clone()).collect())
}

#[test]
fn the_golden_trace_is_read_as_what_it_says() {
    let text = golden("all-events.trace6.jsonl");
    assert_eq!(judged(&text), Some(BTreeSet::new()));
    assert_eq!(ours(&text), Some(BTreeSet::new()));
    let document = candle_profiler::trace::parse_trace_reader(text.as_bytes()).expect("it parses");
    assert_eq!(document.spans.len(), 4);
    assert_eq!(document.ops[0].output_dense_bytes, Some(32_768));
    assert_eq!(document.ops[0].input_dense_bytes, 49_152);
    assert_eq!(document.memory[0].storage_id, "t3");
    assert_eq!(document.terminal.timestamp_ns, 98_386);
    let folder = tests::folder();
    put(folder.path(), "old.jsonl", &text);
    assert_eq!(
        well(folder.path(), &["check", "old.jsonl"]),
        "old.jsonl: valid, complete, 4 spans, 2 warnings (-w shows them)\n"
    );
    let summary = well(folder.path(), &["summary", "old.jsonl"]);
    assert!(
        summary.starts_with("train::step: train step 3 on cpu, 95.7 µs\n"),
        "{summary}"
    );
    assert!(
        summary.contains("gradient norm                0.42\n"),
        "{summary}"
    );
    for format in ["chrome", "speedscope", "folded"] {
        well(folder.path(), &["export", "old.jsonl", "--to", format]);
    }
    assert_eq!(
        tool(folder.path(), &["diff", "old.jsonl", "old.jsonl"]).code,
        Some(0)
    );
}

#[test]
fn what_is_open_in_an_old_trace_lasts_until_the_last_that_is_told() {
    let whole = golden("all-events.trace6.jsonl");
    let lines = whole.lines().filter(|line| {
        let open = ["s1", "s2", "s3"].map(|id| format!("\"span_end\",\"id\":\"{id}\""));
        !open.iter().any(|end| line.contains(end))
    });
    let text: String = lines.map(|line| format!("{line}\n")).collect();
    let document = candle_profiler::trace::parse_trace_reader(text.as_bytes()).expect("it parses");
    assert_eq!(document.terminal.timestamp_ns, 85_176);
    let folder = tests::folder();
    put(folder.path(), "open.jsonl", &text);
    let value = super::json(folder.path(), &["summary", "--json", "open.jsonl"]);
    // The region starts at 441 ns.
    assert_eq!(value["measured_ns"], 85_176 - 441);
    let summary = well(folder.path(), &["summary", "open.jsonl"]);
    let problem = "still open at the end: train::step, train::step/forward\n";
    assert!(summary.contains(problem), "{summary}");
}

#[test]
fn trace_9_is_read_too() {
    let text = golden("all-events.trace10.jsonl").replace("trace/10", "trace/9");
    let without: String = text
        .lines()
        .filter(|line| !line.contains("tensor_stats"))
        .map(|line| format!("{line}\n"))
        .collect();
    let folder = tests::folder();
    put(folder.path(), "nine.jsonl", &without);
    assert_eq!(
        well(folder.path(), &["check", "nine.jsonl"]),
        "nine.jsonl: valid, complete, 8 spans\n"
    );
    put(folder.path(), "stats.jsonl", &text);
    assert_eq!(tool(folder.path(), &["check", "stats.jsonl"]).code, Some(1));
}

#[test]
fn broken_ones_get_the_verdict_of_the_judge() {
    let text = golden("all-events.trace6.jsonl");
    let lines: Vec<&str> = text.lines().collect();
    let without = |part: &str| -> String {
        lines
            .iter()
            .filter(|line| !line.contains(part))
            .map(|line| format!("{line}\n"))
            .collect()
    };
    let edge = |from: &str, to: &str| {
        format!(
            "{{\"kind\":\"edge\",\"from_span\":\"{from}\",\"to_span\":\"{to}\",\"duration_ns\":1}}\n"
        )
    };
    let start = |id: &str, parent: &str| {
        format!(
            "{{\"kind\":\"span_start\",\"id\":\"{id}\",\"parent_id\":\"{parent}\",\"name\":\"x\",\"start_ns\":9000,\
             \"span_kind\":\"op\",\"measured\":false}}\n{{\"kind\":\"span_end\",\"id\":\"{id}\",\"duration_ns\":10}}\n"
        )
    };
    let variants: [(&str, String, Option<&str>); 22] = [
        ("no meta", without("\"meta\""), None),
        (
            "meta last",
            lines[1..].join("\n") + "\n" + lines[0] + "\n",
            None,
        ),
        ("two metas", format!("{}\n{text}", lines[0]), None),
        ("a span twice", format!("{text}{}\n", lines[1]), None),
        (
            "an end without a start",
            format!("{text}{{\"kind\":\"span_end\",\"id\":\"s9\",\"duration_ns\":1}}\n"),
            None,
        ),
        (
            "an end twice",
            format!("{text}{{\"kind\":\"span_end\",\"id\":\"s4\",\"duration_ns\":1}}\n"),
            None,
        ),
        ("half of a line", text[..text.len() - 9].to_owned(), None),
        (
            "a kind of later",
            format!(
                "{text}{{\"kind\":\"terminal\",\"outcome\":\"complete\",\"timestamp_ns\":99999}}\n"
            ),
            None,
        ),
        (
            "no free bytes",
            text.replace(",\"free_bytes\":8589934592", ""),
            None,
        ),
        (
            "no duration of an edge",
            format!("{text}{{\"kind\":\"edge\",\"from_span\":\"s1\",\"to_span\":\"s2\"}}\n"),
            None,
        ),
        (
            "open",
            without("\"span_end\",\"id\":\"s4\""),
            Some("open_span"),
        ),
        (
            "an open parent",
            without("\"span_end\",\"id\":\"s3\""),
            Some("children_exceed_parent"),
        ),
        (
            "beyond its parent",
            text.replace("66058", "70000"),
            Some("child_outside_parent"),
        ),
        (
            "too many children",
            format!(
                "{text}{}",
                start("s5", "s4")
                    .replace("9000", "13700")
                    .replace("10}", "66030}")
                    + &start("s6", "s4")
                        .replace("9000", "13700")
                        .replace("10}", "40}")
            ),
            Some("children_exceed_parent"),
        ),
        (
            "no parent",
            format!("{text}{}", start("s5", "s77")),
            Some("unknown_parent"),
        ),
        (
            "two roots",
            text.replace("\"id\":\"s2\",\"parent_id\":\"s1\"", "\"id\":\"s2\""),
            Some("root_count"),
        ),
        (
            "nothing measured",
            text.replace("\"measured\":true", "\"measured\":false"),
            Some("measurement_count"),
        ),
        (
            "freed twice",
            format!("{text}{}\n", lines[8]),
            Some("unpaired_free"),
        ),
        (
            "never freed, twice allocated",
            text.replace("\"free\"", "\"alloc\""),
            Some("duplicate_allocation"),
        ),
        (
            "evidence of no span",
            text.replace(
                "\"kind\":\"tensor\",\"span_id\":\"s4\"",
                "\"kind\":\"tensor\",\"span_id\":\"s44\"",
            ),
            Some("unknown_span"),
        ),
        (
            "an edge to nowhere",
            format!("{text}{}", edge("s1", "s9")),
            Some("unknown_edge_span"),
        ),
        (
            "an edge that is no call",
            format!("{text}{}", edge("s4", "s1")),
            Some(""),
        ),
    ];
    for (what, text, code) in variants {
        let expected = judged(&text);
        assert_eq!(ours(&text), expected, "{what}");
        match code {
            None => assert_eq!(expected, None, "{what}"),
            Some("") => assert_eq!(expected, Some(BTreeSet::new()), "{what}"),
            Some(code) => assert!(expected.is_some_and(|codes| codes.contains(code)), "{what}"),
        }
    }
}

#[test]
fn a_session_writes_it_on_request() {
    let folder = tests::folder();
    let path = folder.path().join("old.jsonl");
    let run = ProfileRun::training("train::step", 3, "cpu")
        .tag("batch", "64")
        .legacy_schema();
    let session = TraceSession::open(&path, run).expect("a session");
    {
        let _measured = session.begin_measurement("train::step");
        let forward =
            session.begin_step_span("forward", ExecutionStep::Forward, SpanKind::Function);
        let id = forward.id();
        let operation = OpRecord {
            op_name: "matmul",
            inputs: &["t1".to_owned(), "t2".to_owned()],
            output: Some("t3"),
            shape: &[64, 128],
            dtype: "f32",
            device: "cpu",
            duration_ns: 0,
            timestamp_ns: session.elapsed_ns(),
            output_dense_bytes: None,
            input_dense_bytes: 49_152,
        };
        session.record_op(id, operation).expect("an operation");
        let tensor = TensorRecord {
            tensor_id: "t3",
            label: Some("out"),
            shape: &[64, 128],
            dtype: "f32",
            device: "cpu",
            requires_grad: false,
            dense_bytes: None,
            category: MemoryCategory::Activation,
        };
        session.record_tensor(id, tensor).expect("a tensor");
        session.record_scalar(id, "loss", 1.0).expect("a number");
        for tensor in ["t3", "t4"] {
            session
                .record_memory_alloc(id, memory(tensor))
                .expect("memory");
        }
        session
            .record_memory_free(id, memory("t4"))
            .expect("memory");
        let sample = DeviceMemoryRecord {
            device: "cpu",
            used_bytes: Some(1),
            free_bytes: Some(2),
            reserved_bytes: None,
            capacity_bytes: Some(3),
            timestamp_ns: None,
        };
        session.record_device_memory(sample).expect("a sample");
        session.record_data_edge("t1", "t3").expect("an edge");
    }
    session.finish().expect("the end");
    let text = std::fs::read_to_string(&path).expect("the trace");
    assert_eq!(judged(&text), Some(BTreeSet::new()), "{text}");
    assert_eq!(ours(&text), Some(BTreeSet::new()));
    let keys = |text: &str, kind: &str| -> Vec<String> {
        let line = text
            .lines()
            .find(|line| line.starts_with(&format!("{{\"kind\":\"{kind}\"")));
        let line = line.unwrap_or_else(|| panic!("{kind} in {text}"));
        let mut parts: Vec<&str> = line
            .split("\":")
            .map(|part| part.rsplit('"').next().unwrap_or_default())
            .collect();
        // The last part is a value.
        parts.pop();
        parts.into_iter().map(str::to_owned).collect()
    };
    let reference = golden("all-events.trace6.jsonl");
    for kind in [
        "meta",
        "span_start",
        "span_end",
        "op",
        "tensor",
        "memory",
        "device_memory",
    ] {
        assert_eq!(keys(&text, kind), keys(&reference, kind), "{kind}");
    }
    for kind in ["tensor_stats", "terminal", "edge"] {
        assert!(!text.contains(&format!("\"kind\":\"{kind}\"")), "{text}");
    }
    assert_eq!(
        text.matches("\"action\":\"alloc\"").count(),
        1,
        "two tensors share the storage"
    );
}

fn memory(tensor: &str) -> MemoryRecord<'_> {
    MemoryRecord {
        storage_id: "storage",
        tensor_id: tensor,
        device: "cpu",
        bytes: 32_768,
        dtype: "f32",
        category: MemoryCategory::Activation,
        timestamp_ns: None,
        op_name: Some("matmul"),
        shape: &[64, 128],
    }
}
