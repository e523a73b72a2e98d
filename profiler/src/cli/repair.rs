//! `candle-profile repair`: a trace whose process did not live to finish it.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use serde_json::json;

use super::input::Input;
use super::{Verdict, input, output};
use crate::view::text::counted;
use crate::view::{RepairOptions, Repaired, repair};

/// Make a trace whole that broke off.
///
/// Every good line is kept as it is, spans that were open stay open, no time is
/// invented, and the trace ends as failed. `x.jsonl.partial` becomes `x.jsonl`,
/// any other `x.jsonl` becomes `x-repaired.jsonl`; nothing is overwritten.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Arguments {
    /// The broken traces: files, folders (all in them that ends in .partial),
    /// patterns
    #[arg(required = true, verbatim_doc_comment)]
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
    let inputs = input::broken(&arguments.traces)?;
    if arguments.output.is_some() && inputs.len() > 1 {
        bail!(
            "-o names one file, {} traces are to be repaired",
            inputs.len()
        );
    }
    if inputs.iter().any(Input::is_stdin) {
        bail!("repair takes files, `-` is none: it keeps what cannot be kept beside them");
    }
    let mut options = RepairOptions::default();
    options.output.clone_from(&arguments.output);
    options.force = arguments.force;
    let mut verdict = Verdict::Well;
    let mut list = Vec::new();
    for input in &inputs {
        match repair(&input.path, &options) {
            Ok(repaired) if arguments.json => list.push(as_json(&input.name(), &repaired)),
            Ok(repaired) => tell(out, &repaired)?,
            Err(error) => {
                output::fault(&error);
                list.push(json!({
                    "schema": SCHEMA, "trace": input.name(), "path": null, "fault": format!("{error:#}"),
                }));
                verdict = Verdict::Unusable;
            }
        }
    }
    if arguments.json {
        output::json(out, &json!(list))?;
    }
    Ok(verdict)
}

const SCHEMA: &str = "candle-profiler/repair/1";

fn tell(out: &mut dyn Write, repaired: &Repaired) -> Result<()> {
    let kept = counted(repaired.kept, "line", "lines");
    let mut line = format!("{}: {kept} kept", repaired.path.display());
    if repaired.open_spans > 0 {
        line += &format!(
            ", {} still open",
            counted(repaired.open_spans, "span", "spans")
        );
    }
    if repaired.left_out > 0 {
        line += &format!(", {} left out", counted(repaired.left_out, "line", "lines"));
    }
    output::sentence(out, &line)?;
    for left_out in &repaired.left_out_lines {
        output::sentence(
            out,
            &format!("  line {}: {}", left_out.line, left_out.reason),
        )?;
    }
    Ok(())
}

fn as_json(trace: &str, repaired: &Repaired) -> serde_json::Value {
    let left_out: Vec<_> = repaired
        .left_out_lines
        .iter()
        .map(|left_out| json!({"line": left_out.line, "reason": left_out.reason}))
        .collect();
    json!({
        "schema": SCHEMA,
        "trace": trace,
        "path": repaired.path.display().to_string(),
        "kept": repaired.kept,
        "open_spans": repaired.open_spans,
        "left_out": repaired.left_out,
        "left_out_lines": left_out,
        "removed": repaired.removed,
    })
}
