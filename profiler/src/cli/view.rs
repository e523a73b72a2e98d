//! `candle-profile view`: a page to look at traces with.

use std::io::{BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};
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
    match &arguments.output {
        None => page::write(&traces, out)?,
        Some(path) => {
            let mut file = BufWriter::with_capacity(1 << 18, output::create(path, arguments.force)?);
            let written = page::write(&traces, &mut file).and_then(|()| file.flush());
            written.with_context(|| format!("write {}", path.display()))?;
        }
    }
    Ok(Verdict::Well)
}
