//! More than any program should record: memory stays bounded, nothing is lost, every trace is valid. `.ci/load` asks for
//! ten times as much.

use std::collections::HashMap;
use std::path::Path;

use candle_graph::trace::{analyze_health, parse_trace};
use candle_profiler::view::{RepairOptions, repair};
use serde_json::Value;
use tests::program::{Ran, files, kill_when_ready, run};
use tests::trace::Trace;

fn load(folder: &Path, mode: &str, variables: &[(&str, &str)]) -> Ran {
    let arguments: Vec<&str> = mode.split(' ').collect();
    let mut all = vec![
        ("CANDLE_PROFILE", "traces"),
        ("CANDLE_PROFILE_SUMMARY", "off"),
    ];
    all.extend(variables);
    let ran = run(env!("CARGO_BIN_EXE_train"), folder, &arguments, &all);
    assert_eq!(ran.code, Some(0));
    let limited = |(name, _): &(&str, &str)| *name == "CANDLE_PROFILE_BUDGET";
    if !variables.iter().any(limited) {
        assert_eq!(ran.stderr, "");
        return ran;
    }
    // The budget was too small, which is said in one line whatever the names hold.
    let line = ran.only_line();
    assert!(
        line.contains(" left out to keep within the budget "),
        "{line}"
    );
    assert!(!line.contains(char::is_control), "{line}");
    ran
}

fn only_trace(folder: &Path) -> std::path::PathBuf {
    let files = files(folder);
    assert_eq!(files.len(), 1, "{files:?}");
    folder.join(&files[0])
}

/// The number of spans that have ended, by the judge, who finds no fault.
fn closed_spans(trace: &Path) -> usize {
    let health = analyze_health(&parse_trace(trace).expect("a trace"));
    assert!(
        health.structurally_valid && health.capture_complete,
        "{:?}",
        health.issues
    );
    health.coverage.closed_spans
}

/// The terminal line.
fn terminal(trace: &Path) -> Value {
    let text = std::fs::read_to_string(trace).expect("a trace");
    serde_json::from_str(text.lines().last().expect("a line")).expect("JSON")
}

#[cfg(target_os = "linux")]
#[test]
fn hundreds_of_thousands_of_spans_in_one_capture() {
    let folder = tempfile::tempdir().expect("a folder");
    let ran = load(folder.path(), "load-spans 300", &[]);
    let peak: u64 = ran.stdout.trim().parse().expect("kilobytes");
    assert!(peak < 200 << 10, "{peak} KiB");
    assert_eq!(closed_spans(&only_trace(folder.path())), 300_002);
}

/// So many spans wait for the writer at most.
const BUFFER: usize = 160 * 16 * 1024 / 2;

/// What waits for the writer is lost, and nothing that was recorded before it.
#[cfg(unix)]
#[test]
fn a_kill_amid_a_flood_leaves_no_gap() {
    let folder = tempfile::tempdir().expect("a folder");
    let variables = [("CANDLE_PROFILE", "traces")];
    let train = env!("CARGO_BIN_EXE_train");
    kill_when_ready(train, folder.path(), &["load-endless", "1400"], &variables);
    let partial = "traces/train-load-endless_step-step2.jsonl.partial";
    assert_eq!(files(folder.path()), [partial]);
    let repaired =
        repair(folder.path().join(partial), &RepairOptions::default()).expect("a repair");
    assert!(repaired.left_out <= 1, "{repaired:?}");
    let trace = parse_trace(&repaired.path).expect("a trace");
    let (mut blocks, mut inside) = (Vec::new(), HashMap::new());
    for span in trace.spans.iter().filter(|span| span.closed) {
        match span.name.as_str() {
            "block" => blocks.push(span.id.as_str()),
            _ => *inside.entry(span.parent_id.as_deref()).or_insert(0) += 1,
        }
    }
    assert!(
        blocks.len() * 1000 + BUFFER >= 1_399_000,
        "{} blocks",
        blocks.len()
    );
    for block in blocks {
        assert_eq!(inside.get(&Some(block)), Some(&999));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_hundred_thousand_labels() {
    let folder = tempfile::tempdir().expect("a folder");
    let ran = load(folder.path(), "load-labels 100", &[]);
    let peak: u64 = ran.stdout.trim().parse().expect("kilobytes");
    assert!(peak < 200 << 10, "{peak} KiB");
    let document = parse_trace(only_trace(folder.path())).expect("a trace");
    let labels: std::collections::HashSet<_> = document
        .tensor_stats
        .iter()
        .map(|stats| &stats.label)
        .collect();
    assert_eq!(labels.len(), 100_000);
}

/// A name for each call is no use to anybody, and must not take all memory.
#[cfg(target_os = "linux")]
#[test]
fn a_million_measured_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let variables = [
        ("CANDLE_PROFILE", "traces"),
        ("CANDLE_PROFILE_SUMMARY", "off"),
    ];
    let train = env!("CARGO_BIN_EXE_train");
    let ran = run(train, folder.path(), &["load-names", "1000"], &variables);
    assert_eq!(
        ran.only_line(),
        "candle-profiler: there are 65536 measured names, or 32 MiB of them: calls under further ones, of which \"call 65536\" is the first, \
         are neither counted nor captured"
    );
    let peak: u64 = ran.stdout.trim().parse().expect("kilobytes");
    assert!(peak < 200 << 10, "{peak} KiB");
    // The second call of the first name.
    assert_eq!(files(folder.path()), ["traces/call-0-step2.jsonl"]);
}

/// The writer takes a thousand records in a stretch; of such, it must not.
#[cfg(target_os = "linux")]
#[test]
fn many_records_of_a_megabyte() {
    let folder = tempfile::tempdir().expect("a folder");
    let ran = load(folder.path(), "load-long-labels 150", &[]);
    let peak: u64 = ran.stdout.trim().parse().expect("kilobytes");
    assert!(peak < 150 << 10, "{peak} KiB");
    let trace = only_trace(folder.path());
    assert!(std::fs::metadata(&trace).expect("the file").len() > 150 << 20);
    let terminal = terminal(&trace);
    assert_eq!(terminal["outcome"], "complete");
    // More than may wait for the writer: the program waited for it, which is told.
    assert!(terminal["waited_ns"].as_u64() > Some(0), "{terminal}");
}

#[test]
fn sixty_four_threads_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    load(folder.path(), "load-threads 320", &[]);
    // 5,000 spans and the one around them, on each thread; the measured one and the root.
    let trace = only_trace(folder.path());
    assert_eq!(closed_spans(&trace), 64 * 5001 + 2);
    assert!(terminal(&trace)["late"].is_null());
}

#[cfg(target_os = "linux")]
#[test]
fn captures_leave_nothing_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    let ran = load(
        folder.path(),
        "load-captures 2000",
        &[("CANDLE_PROFILE_STEPS", "every:1")],
    );
    let rows: Vec<Vec<u64>> = ran
        .stdout
        .lines()
        .map(|line| {
            line.split(' ')
                .map(|number| number.parse().expect("a number"))
                .collect()
        })
        .collect();
    let [first, last] = rows.as_slice() else {
        panic!("two rows: {rows:?}");
    };
    assert!(
        last[0] <= first[0] + 2048,
        "resident KiB: {} to {}",
        first[0],
        last[0]
    );
    assert_eq!(last[1..], first[1..], "threads and handles");
    assert_eq!(files(folder.path()).len(), 2000);
}

#[test]
fn a_budget_far_too_small_leaves_a_valid_trace_and_exact_counts() {
    let folder = tempfile::tempdir().expect("a folder");
    load(
        folder.path(),
        "load-spans 1000",
        &[("CANDLE_PROFILE_BUDGET", "1MiB")],
    );
    let trace = only_trace(folder.path());
    let bytes = std::fs::metadata(&trace).expect("the file").len();
    assert!(bytes <= 1 << 20, "{bytes} bytes");
    let closed = closed_spans(&trace) as u64;
    let dropped = &terminal(&trace)["dropped"];
    let of = |site: &str| dropped[site].as_u64().expect("a count");
    assert_eq!(dropped.as_object().expect("counts").len(), 2, "{dropped}");
    assert_eq!(closed + of("train::load::short") + of("block"), 1_000_002);
    assert!(
        of("block") < 1000 && closed > 3000,
        "{closed} kept, {dropped}"
    );
}

/// Runs a mode of texts that are long in the file; gives the trace, which is valid and has at most `budget` KiB.
fn tight(mode: &str, budget: u64) -> Trace {
    let folder = tempfile::tempdir().expect("a folder");
    let most = format!("{budget}KiB");
    load(folder.path(), mode, &[("CANDLE_PROFILE_BUDGET", &most)]);
    let path = only_trace(folder.path());
    let bytes = std::fs::metadata(&path).expect("the file").len();
    assert!(bytes <= budget << 10, "{mode}: {bytes} bytes");
    Trace::read(&path)
}

fn left_out(trace: &Trace) -> u64 {
    let dropped = trace.terminal()["dropped"].as_object();
    let counts = dropped.into_iter().flat_map(|dropped| dropped.values());
    counts.filter_map(Value::as_u64).sum()
}

#[test]
fn open_futures_with_long_names_keep_to_the_budget() {
    let trace = tight("tight-futures 100", 64);
    let kept = trace.spans.len() as u64 - 2;
    assert!(kept > 2, "{kept}");
    assert_eq!(kept + left_out(&trace), 100);
}

#[test]
fn long_names_of_threads_keep_to_the_budget() {
    let trace = tight("tight-threads 100", 64);
    assert_eq!(trace.named("work").len() as u64 + left_out(&trace), 100);
    // The first name takes nearly all; those that find no room give way to their spans.
    let named = |span: &&&tests::trace::Span| !span.start["thread_name"].is_null();
    let work = trace.named("work");
    assert_eq!(work.iter().filter(named).count(), 1);
    assert!(work.len() > 1);
}

#[test]
fn a_long_reason_beside_many_counts_keeps_to_the_budget() {
    let trace = tight("tight-reason 5000", 64);
    let reason = trace.reason().expect("a reason");
    assert!(reason.starts_with("0\u{1}\u{1}") && reason.len() > 1000);
    assert_eq!(trace.labels().len() as u64 + left_out(&trace), 5000);
}

#[test]
fn promised_gradients_keep_to_the_budget() {
    let trace = tight("tight-gradients 500", 256);
    assert_eq!(trace.reason(), None);
    assert_eq!(trace.kind("gradient").len(), 500);
    let work = trace.named("work").len() as u64;
    assert_eq!(work + left_out(&trace), 2000);
}

#[test]
fn spans_of_one_place_are_counted_together_whatever_their_names() {
    let trace = tight("tight-names 100000", 64);
    let dropped = trace.terminal()["dropped"].as_object().expect("counts");
    let kept = trace.spans.len() as u64 - 2;
    let [(site, count)] = Vec::from_iter(dropped).try_into().expect("one site");
    assert_eq!(count.as_u64(), Some(100_000 - kept));
    assert!(
        site.starts_with("layer ") && site.contains("tight.rs:"),
        "{site}"
    );
}
