//! The program `candle-profile`: arguments, files and exit codes. What it says comes from [`crate::view`].

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

mod check;
mod diff;
mod export;
mod input;
mod merge;
mod output;
mod repair;
mod summary;
mod unfinished;
mod view;

/// Reads the traces of candle-profiler.
///
/// A trace is a file, `-` (standard input), a folder (all its `.jsonl` files) or
/// a pattern such as 'traces/*.jsonl'.
// The texts of all commands are broken by hand, for 80 columns.
#[derive(Debug, Parser)]
#[command(
    name = "candle-profile",
    version,
    verbatim_doc_comment,
    next_line_help = true,
    after_help = "Exit codes: 0 all is well; 1 something was found (an invalid trace, a limit\n\
                  passed); 2 the arguments or a file could not be used."
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Summary(summary::Arguments),
    Check(check::Arguments),
    Diff(diff::Arguments),
    Export(export::Arguments),
    Merge(merge::Arguments),
    Repair(repair::Arguments),
    View(view::Arguments),
}

/// What a command came to, when it could be carried out; what is worse comes later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Well,
    Found,
    /// A file could not be used, which was said; what else there was to do, is done.
    Unusable,
}

/// Runs the program with the arguments of the process.
pub fn main() -> ExitCode {
    // Its own errors end with 2, help and version with 0.
    let arguments = Arguments::parse();
    let mut out = output::Out::new(BufWriter::new(io::stdout().lock()));
    let verdict = run(arguments.command, &mut out);
    let flushed = out.flush().map_err(anyhow::Error::from);
    match verdict.and_then(|verdict| flushed.map(|()| verdict)) {
        Ok(Verdict::Well) => ExitCode::SUCCESS,
        Ok(Verdict::Found) => ExitCode::from(1),
        Ok(Verdict::Unusable) => ExitCode::from(2),
        Err(error) => {
            output::fault(&error);
            ExitCode::from(2)
        }
    }
}

fn run(command: Command, out: &mut dyn Write) -> Result<Verdict> {
    match command {
        Command::Summary(arguments) => summary::run(&arguments, out),
        Command::Check(arguments) => check::run(&arguments, out),
        Command::Diff(arguments) => diff::run(&arguments, out),
        Command::Merge(arguments) => merge::run(&arguments, out),
        Command::Repair(arguments) => repair::run(&arguments, out),
        Command::View(arguments) => view::run(&arguments, out),
        Command::Export(arguments) => export::run(&arguments, out),
    }
}
