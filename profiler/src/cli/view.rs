//! `candle-profile view`: a page to look at traces with.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::{Verdict, input, output};
use crate::view::page::{self, Shown};
use crate::view::summary;

/// Write a page with the timeline, the tables and the statistics.
///
/// It is one file that needs no network. Of several traces, the steps stand side
/// by side.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Arguments {
    /// The traces
    #[arg(required = true)]
    traces: Vec<PathBuf>,
    /// The page (standard output if left out)
    #[arg(long, short)]
    output: Option<PathBuf>,
    /// Replace a file that is there
    #[arg(long, short)]
    force: bool,
    /// Say as JSON what was written: candle-profiler/view/1
    #[arg(long, requires = "output")]
    json: bool,
}

pub(super) fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<Verdict> {
    let inputs = input::all(&arguments.traces)?;
    let target = output::target(arguments.output.as_deref(), arguments.force, &inputs)?;
    let mut traces = Vec::new();
    for input in &inputs {
        let document = input.document()?;
        let digest = summary::of_document(&document).digest;
        traces.push(Shown {
            name: input.name(),
            document,
            digest,
        });
    }
    output::write_to(target, out, |to| Ok(page::write(&traces, to)?))?;
    if arguments.json {
        let paths = Vec::from_iter(arguments.output.clone());
        output::json(out, &output::written("view", &inputs, &paths, &[]))?;
    }
    Ok(Verdict::Well)
}
