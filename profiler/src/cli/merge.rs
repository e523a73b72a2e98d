//! `candle-profile merge`: the ranks of one step as one trace.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};

use super::{Verdict, input, output};
use crate::trace::document::write_lines;
use crate::trace::{TraceDocument, analyze_health};
use crate::view::kinship::doubts;
use crate::view::merge::{self, merge};

/// Merge the traces of the ranks of one step into one valid trace.
///
/// It has a tree for each rank. Traces that do not seem to belong together are
/// named on standard error. For a timeline alone, `export --to chrome` of all
/// ranks is enough.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Arguments {
    /// One trace of each rank, such as 'traces/*-step2-rank*.jsonl'
    #[arg(required = true)]
    traces: Vec<PathBuf>,
    /// The merged trace (standard output if left out)
    #[arg(long, short)]
    output: Option<PathBuf>,
    /// Replace a file that is there
    #[arg(long, short)]
    force: bool,
    /// Say as JSON what was written, and what is doubtful:
    /// candle-profiler/merge/1
    #[arg(long, requires = "output", verbatim_doc_comment)]
    json: bool,
    /// How clocks are brought together
    #[arg(long, default_value = "clock", hide_default_value = true)]
    align: Align,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Align {
    /// By the times at which the traces were opened (the default)
    Clock,
    /// The measured regions start together
    Measured,
}

pub(super) fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<Verdict> {
    let inputs = input::all(&arguments.traces)?;
    let target = output::target(arguments.output.as_deref(), arguments.force, &inputs)?;
    let traces: Vec<(String, TraceDocument)> = inputs
        .iter()
        .map(|input| Ok((input.name(), input.document()?)))
        .collect::<Result<_>>()?;
    let align = match arguments.align {
        Align::Clock => merge::Align::Clock,
        Align::Measured => merge::Align::Measured,
    };
    let events = merge(&traces, align)?;
    let doubts = doubts(&traces);
    if !arguments.json {
        doubts.iter().for_each(|doubt| output::warn(doubt));
    }
    drop(traces);
    let mut merged = TraceDocument::from_events(events)?;
    ensure!(
        analyze_health(&merged).structurally_valid,
        "the merged trace would be invalid"
    );
    // By number, which is the order of the calls, rank by rank: parents come before their children.
    merged
        .spans
        .sort_by(|a, b| (a.id.len(), &a.id).cmp(&(b.id.len(), &b.id)));
    output::write_to(target, out, |to| write_lines(to, merged.events()))?;
    if arguments.json {
        let paths = Vec::from_iter(arguments.output.clone());
        output::json(out, &output::written("merge", &inputs, &paths, &doubts))?;
    }
    Ok(Verdict::Well)
}
