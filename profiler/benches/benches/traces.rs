//! What a trace of 1,000,000 spans takes to write and to read: bytes, processor time of all threads, memory.
//!
//! ```text
//! cargo bench --workspace --bench traces
//! ```
//!
//! Every figure is of a process of its own, the two writers and the two readers in turn.

use std::hint::black_box;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use benches::{Targets, Usage, report};
use candle_graph::SpanKind;
use candle_profiler::{measured, profile_span};

/// Outer spans; each holds three more.
const CALLS: u64 = 250_000;
/// All spans, with the root and the measured one.
const SPANS: usize = 4 * CALLS as usize + 2;
const ROUNDS: usize = 5;

#[inline(never)]
#[profile_span]
fn block() {
    attention();
    mlp();
}

#[inline(never)]
#[profile_span]
fn attention() {
    softmax();
}

#[inline(never)]
#[profile_span]
fn softmax() {
    black_box(());
}

#[inline(never)]
#[profile_span]
fn mlp() {
    black_box(());
}

#[measured]
fn step() {
    for _ in 0..CALLS {
        block();
    }
}

fn write_ours(folder: &Path) -> Result<()> {
    benches::capture_every_call(folder)?;
    report(|| {
        step();
        Ok(())
    })
}

/// The same spans with the same names.
fn write_theirs(file: &Path) -> Result<()> {
    report(|| {
        let session = benches::reference_session(file)?;
        let step = session.begin_measurement("traces::step");
        for _ in 0..CALLS {
            let _block = session.begin_span("traces::block", SpanKind::Function);
            {
                let _attention = session.begin_span("traces::attention", SpanKind::Function);
                let _softmax = session.begin_span("traces::softmax", SpanKind::Function);
            }
            let _mlp = session.begin_span("traces::mlp", SpanKind::Function);
        }
        drop(step);
        session.finish()?;
        Ok(())
    })
}

fn read_ours(file: &Path) -> Result<()> {
    report(|| {
        let trace = candle_profiler::parse_trace(file)?;
        ensure!(trace.spans.len() == SPANS, "{} spans", trace.spans.len());
        Ok(())
    })
}

fn read_theirs(file: &Path) -> Result<()> {
    report(|| {
        let trace = candle_graph::parse_trace(file)?;
        ensure!(trace.spans.len() == SPANS, "{} spans", trace.spans.len());
        Ok(())
    })
}

/// The only file of a folder.
fn only_file(folder: &Path) -> Result<PathBuf> {
    let entry = folder.read_dir()?.next().context("no trace was written")?;
    Ok(entry?.path())
}

fn line(name: &str, usage: Usage) {
    println!(
        "  {name:<34} {:>8.2} s {:>8.2} s {:>8.0} MiB",
        usage.wall, usage.processor, usage.peak_memory
    );
}

fn compare(folder: &Path, targets: &mut Targets) -> Result<()> {
    let theirs = folder.join("theirs.jsonl");
    let their_path = theirs.to_str().context("the folder's name")?;
    let (mut our_writes, mut their_writes) = (Vec::new(), Vec::new());
    let (mut our_reads, mut their_reads) = (Vec::new(), Vec::new());
    let mut our_bytes = 0;
    for round in 0..ROUNDS {
        let ours = folder.join(format!("ours{round}"));
        let our_path = ours.to_str().context("the folder's name")?;
        our_writes.push(Usage::of_child(&["write-ours", our_path])?);
        let trace = only_file(&ours)?;
        our_bytes = trace.metadata()?.len();
        their_writes.push(Usage::of_child(&["write-theirs", their_path])?);
        // Both read ours: theirs may end a little before its own last span, and is refused then.
        let trace_path = trace.to_str().context("the folder's name")?;
        our_reads.push(Usage::of_child(&["read-ours", trace_path])?);
        their_reads.push(Usage::of_child(&["read-theirs", trace_path])?);
    }
    let their_bytes = theirs.metadata()?.len();
    let spans = SPANS as f64;

    println!("a trace of {SPANS} spans (least of {ROUNDS} processes each)");
    println!(
        "  {:<34} {:>10} {:>10} {:>12}",
        "", "wall", "processor", "peak memory"
    );
    let (ours, theirs) = (Usage::least(&our_writes)?, Usage::least(&their_writes)?);
    line("written by candle-profiler", ours);
    line("written by candle-graph", theirs);
    targets.at_most(
        "writing: processor time of all threads / candle-graph's",
        ours.processor / theirs.processor,
        1.0 / 3.0,
    );
    let (ours, theirs) = (Usage::least(&our_reads)?, Usage::least(&their_reads)?);
    line("read by candle-profiler", ours);
    line("read by candle-graph", theirs);
    targets.at_least(
        "reading: candle-graph's time / ours",
        theirs.wall / ours.wall,
        3.0,
    );
    targets.at_most(
        "reading: peak memory / candle-graph's",
        ours.peak_memory / theirs.peak_memory,
        1.0,
    );
    let (ours, theirs) = (our_bytes as f64 / spans, their_bytes as f64 / spans);
    println!("  bytes a span: {ours:.1} by candle-profiler, {theirs:.1} by candle-graph");
    targets.at_most("bytes of a span / candle-graph's", ours / theirs, 1.1);
    Ok(())
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [work, path] => {
            let path = Path::new(path);
            match work.as_str() {
                "write-ours" => write_ours(path),
                "write-theirs" => write_theirs(path),
                "read-ours" => read_ours(path),
                "read-theirs" => read_theirs(path),
                _ => anyhow::bail!("{work} is no work of this program"),
            }
        }
        _ if benches::asked_for() => {
            let folder = tempfile::tempdir()?;
            let mut targets = Targets::new();
            compare(folder.path(), &mut targets)?;
            targets.print();
            Ok(())
        }
        _ => Ok(()),
    }
}
