//! `candle-profile view`: a page to look at traces with.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::{Verdict, input, output};
use crate::view::page::{self, Shown};
use crate::view::summary;

/// Write a page with the timeline, the tables and the statistics of traces: one file that needs no network. Of several
/// traces, the steps stand side by side.
#[derive(Debug, Args)]
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
}

pub(super) fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<Verdict> {
    let mut traces = Vec::new();
    for input in input::all(&arguments.traces)? {
        let document = input.document()?;
        let digest = summary::of_document(&document).digest;
        traces.push(Shown {
            name: input.name(),
            document,
            digest,
        });
    }
    let path = arguments.output.as_deref();
    output::write_to(path, arguments.force, out, |to| {
        Ok(page::write(&traces, to)?)
    })?;
    Ok(Verdict::Well)
}
