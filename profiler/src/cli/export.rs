//! `candle-profile export`: traces for other tools.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};

use super::input::Input;
use super::output::Target;
use super::{Verdict, input, output};
use crate::capture::files::safe_name;
use crate::trace::TraceDocument;
use crate::view::export;

/// Write traces in the format of another tool.
///
/// Several traces become one timeline, or one file of steps.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Arguments {
    /// The traces
    #[arg(required = true)]
    traces: Vec<PathBuf>,
    /// The format
    #[arg(long)]
    to: Format,
    /// The file (standard output if left out);
    /// for tensorboard the folder of the runs, which must be named
    #[arg(long, short, verbatim_doc_comment)]
    output: Option<PathBuf>,
    /// Replace a file that is there
    #[arg(long, short)]
    force: bool,
    /// Say as JSON what was written: candle-profiler/export/1
    #[arg(long, requires = "output")]
    json: bool,
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
    let paths = match arguments.to {
        Format::Chrome => timeline(arguments, &inputs, out, export::chrome)?,
        Format::Speedscope => timeline(arguments, &inputs, out, export::speedscope)?,
        Format::Folded => timeline(arguments, &inputs, out, export::folded)?,
        Format::Tensorboard => runs(arguments, &inputs, out)?,
    };
    if arguments.json {
        output::json(out, &output::written("export", &inputs, &paths, &[]))?;
    }
    Ok(Verdict::Well)
}

type Exporter = fn(&[TraceDocument], &mut dyn Write) -> io::Result<()>;

/// One file of all traces; gives its path, where it has one.
fn timeline(
    arguments: &Arguments,
    inputs: &[Input],
    out: &mut dyn Write,
    export: Exporter,
) -> Result<Vec<PathBuf>> {
    let target = output::target(arguments.output.as_deref(), arguments.force, inputs)?;
    let traces = documents(inputs)?;
    output::write_to(target, out, |to| Ok(export(&traces, to)?))?;
    Ok(Vec::from_iter(arguments.output.clone()))
}

fn documents(inputs: &[Input]) -> Result<Vec<TraceDocument>> {
    inputs.iter().map(Input::document).collect()
}

/// How our event files end, so that those of others in the same folder are left alone.
const OURS: &str = ".candle-profiler";

/// A run of TensorBoard is a folder: one for each region and rank.
fn runs(arguments: &Arguments, inputs: &[Input], out: &mut dyn Write) -> Result<Vec<PathBuf>> {
    let Some(folder) = &arguments.output else {
        bail!("--to tensorboard writes a folder: name it with -o");
    };
    let mut runs: BTreeMap<String, Vec<TraceDocument>> = BTreeMap::new();
    for trace in documents(inputs)? {
        runs.entry(run_name(&trace)).or_default().push(trace);
    }
    // TensorBoard reads all event files of a run, so an earlier export would be mixed with this one.
    let mut earlier = BTreeMap::new();
    for name in runs.keys() {
        let files = event_files(&folder.join(name))?;
        if let Some(first) = files.first().filter(|_| !arguments.force) {
            bail!(
                "write {}: there is an export already, {}; --force replaces it",
                folder.join(name).display(),
                first.display()
            );
        }
        earlier.insert(name.clone(), files);
    }
    let mut paths = Vec::new();
    for (name, traces) in runs {
        let folder = folder.join(&name);
        fs::create_dir_all(&folder)
            .with_context(|| format!("create folder {}", folder.display()))?;
        let id = traces.first().map_or("", |trace| &trace.run.run_id);
        // TensorBoard knows its files by this word, and reads them in the order of their names.
        let path = folder.join(format!("events.out.tfevents.{}{OURS}", safe_name(id)));
        let target = Target {
            path: &path,
            force: arguments.force,
            inputs,
        };
        target.write(|to| Ok(export::tensorboard(&traces, to)?))?;
        for old in earlier.remove(&name).unwrap_or_default() {
            if old != path {
                fs::remove_file(&old).with_context(|| format!("remove {}", old.display()))?;
            }
        }
        if !arguments.json {
            writeln!(out, "{}", path.display())?;
        }
        paths.push(path);
    }
    Ok(paths)
}

/// What earlier exports left in the folder of a run.
fn event_files(folder: &Path) -> Result<Vec<PathBuf>> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let read = || -> io::Result<Vec<PathBuf>> {
        let paths = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
        paths.collect()
    };
    let mut files = read().with_context(|| format!("read folder {}", folder.display()))?;
    files.retain(|path| {
        let name = path
            .file_name()
            .map_or("".into(), |name| name.to_string_lossy());
        name.starts_with("events.out.tfevents.") && name.ends_with(OURS)
    });
    files.sort();
    Ok(files)
}

fn run_name(trace: &TraceDocument) -> String {
    let rank = trace.run.tags.get("rank");
    let rank = rank.map_or(String::new(), |rank| format!("-rank{}", safe_name(rank)));
    format!("{}{rank}", safe_name(&trace.run.entrypoint))
}
