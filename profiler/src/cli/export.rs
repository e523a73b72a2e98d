//! `candle-profile export`: traces for other tools.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};

use super::{Verdict, input, output};
use crate::capture::files::safe_name;
use crate::trace::TraceDocument;
use crate::view::export;

/// Write traces in the format of another tool; several become one timeline, or one file of steps.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The traces
    #[arg(required = true)]
    traces: Vec<PathBuf>,
    /// The format
    #[arg(long)]
    to: Format,
    /// The file (standard output if left out); for tensorboard the folder of the runs, which must be named
    #[arg(long, short)]
    output: Option<PathBuf>,
    /// Replace a file that is there
    #[arg(long, short)]
    force: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// JSON for Perfetto and chrome://tracing
    Chrome,
    /// JSON for speedscope
    Speedscope,
    /// Folded stacks for flame graphs
    Folded,
    /// Event files for TensorBoard
    Tensorboard,
}

pub(super) fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<Verdict> {
    let inputs = input::all(&arguments.traces)?;
    let traces: Vec<TraceDocument> = inputs
        .iter()
        .map(input::Input::document)
        .collect::<Result<_>>()?;
    if arguments.to == Format::Tensorboard {
        let Some(folder) = &arguments.output else {
            bail!("--to tensorboard writes a folder: name it with -o");
        };
        return tensorboard(traces, folder, out);
    }
    let path = arguments.output.as_deref();
    output::write_to(path, arguments.force, out, |to| {
        Ok(match arguments.to {
            Format::Chrome => export::chrome(&traces, to),
            Format::Speedscope => export::speedscope(&traces, to),
            Format::Folded | Format::Tensorboard => export::folded(&traces, to),
        }?)
    })?;
    Ok(Verdict::Well)
}

/// A run of TensorBoard is a folder: one for each region and rank.
fn tensorboard(traces: Vec<TraceDocument>, folder: &Path, out: &mut dyn Write) -> Result<Verdict> {
    let mut runs: BTreeMap<String, Vec<TraceDocument>> = BTreeMap::new();
    for trace in traces {
        runs.entry(run_name(&trace)).or_default().push(trace);
    }
    for (name, traces) in runs {
        let folder = folder.join(name);
        fs::create_dir_all(&folder)
            .with_context(|| format!("create folder {}", folder.display()))?;
        let id = traces.first().map_or("", |trace| &trace.run.run_id);
        // TensorBoard knows its files by this word, and reads them in the order of their names.
        let path = folder.join(format!("events.out.tfevents.{}", safe_name(id)));
        output::write_to(Some(&path), true, out, |to| {
            Ok(export::tensorboard(&traces, to)?)
        })?;
        writeln!(out, "{}", path.display())?;
    }
    Ok(Verdict::Well)
}

fn run_name(trace: &TraceDocument) -> String {
    let rank = trace.run.tags.get("rank");
    let rank = rank.map_or(String::new(), |rank| format!("-rank{}", safe_name(rank)));
    format!("{}{rank}", safe_name(&trace.run.entrypoint))
}
