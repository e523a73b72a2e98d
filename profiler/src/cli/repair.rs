//! `candle-profile repair`: a trace whose process did not live to finish it.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use serde_json::json;

use super::{Verdict, output};
use crate::view::text::{count, printable_line};
use crate::view::{RepairOptions, Repaired, repair};

/// Make a trace whole that broke off. Every good line is kept as it is, spans that were open stay open, no time is
/// invented, and the trace ends as failed.
///
/// `x.jsonl.partial` becomes `x.jsonl`, any other `x.jsonl` becomes `x-repaired.jsonl`; nothing is overwritten.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The broken traces
    #[arg(required = true)]
    traces: Vec<PathBuf>,
    /// Where the whole trace goes, where there is one
    #[arg(long, short)]
    output: Option<PathBuf>,
    /// Repair also while the process that wrote the trace seems to be running
    #[arg(long, short)]
    force: bool,
    /// Say it as JSON (an array of candle-profiler/repair/1)
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<Verdict> {
    if arguments.output.is_some() && arguments.traces.len() > 1 {
        bail!("-o names one file, {} traces are to be repaired", arguments.traces.len());
    }
    let mut options = RepairOptions::default();
    options.output.clone_from(&arguments.output);
    options.force = arguments.force;
    let mut list = Vec::new();
    for trace in &arguments.traces {
        if trace.as_os_str() == "-" {
            bail!("repair takes files, `-` is none: it keeps what cannot be kept beside them");
        }
        let repaired = repair(trace, &options)?;
        match arguments.json {
            true => list.push(as_json(trace, &repaired)),
            false => tell(out, &repaired)?,
        }
    }
    if arguments.json {
        output::json(out, &json!(list))?;
    }
    Ok(Verdict::Well)
}

fn tell(out: &mut dyn Write, repaired: &Repaired) -> Result<()> {
    let path = printable_line(&repaired.path.display().to_string());
    let lines = |number: u64| match number {
        1 => "1 line".to_owned(),
        number => format!("{} lines", count(number)),
    };
    let mut line = format!("{path}: {} kept", lines(repaired.kept));
    if repaired.open_spans > 0 {
        line += &format!(", {} spans still open", count(repaired.open_spans));
    }
    if repaired.left_out > 0 {
        line += &format!(", {} left out", lines(repaired.left_out));
    }
    writeln!(out, "{line}")?;
    for left_out in &repaired.left_out_lines {
        writeln!(out, "  line {}: {}", left_out.line, printable_line(&left_out.reason))?;
    }
    Ok(())
}

fn as_json(trace: &std::path::Path, repaired: &Repaired) -> serde_json::Value {
    let left_out: Vec<_> = repaired
        .left_out_lines
        .iter()
        .map(|left_out| json!({"line": left_out.line, "reason": left_out.reason}))
        .collect();
    json!({
        "schema": "candle-profiler/repair/1",
        "trace": trace.display().to_string(),
        "path": repaired.path.display().to_string(),
        "kept": repaired.kept,
        "open_spans": repaired.open_spans,
        "left_out": repaired.left_out,
        "left_out_lines": left_out,
        "removed": repaired.removed,
    })
}
