//! Makes a trace whole that its process did not live to finish.

mod bad;
mod copy;
mod place;
mod scan;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::capture::files::{Lock, look};
use crate::capture::process::is_alive;
use crate::trace::stamp;
use scan::Scan;

/// So many of the lines that were left out are told one by one.
const MOST_TOLD: usize = 20;

/// How to repair.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RepairOptions {
    /// Where the whole trace goes; by default beside the broken one (see [`repair`]). It must not exist.
    pub output: Option<PathBuf>,
    /// Repair also while the process that the trace names seems to be alive: its number may be another process's by now.
    pub force: bool,
}

/// What a repair came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repaired {
    /// The whole trace. Where nothing had to be repaired, the file itself.
    pub path: PathBuf,
    /// Lines of the broken trace that are in it, each byte for byte.
    pub kept: u64,
    /// Spans that were open when it broke off. They have no end: nobody knows when they would have ended.
    pub open_spans: u64,
    /// Lines that are not in it.
    pub left_out: u64,
    /// The first of those, at most twenty.
    pub left_out_lines: Vec<LeftOut>,
    /// Whether the broken trace, of which nothing but a torn last line is missing now, was removed.
    pub removed: bool,
}

/// A line that could not be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// Its number, from 1.
    pub line: u64,
    /// Why.
    pub reason: String,
}

/// Writes the whole trace that `broken` is the beginning of.
///
/// Every good line is kept as it is. A last line that was torn, a line that is no record, a `terminal` before other
/// evidence, and what belongs to a span whose start is lost are left out, and told. Spans that were open stay open; the futures and threads that were (see
/// the file that ends in `.open`) are added, and a `terminal` that says that the trace failed, at the latest time that
/// a record names. No time is invented. A last line that lacks nothing but its end is good, and gets it.
///
/// A trace of the schema `trace/6` stays one: it has no `terminal`, so nothing is added but what `.open` lists, and the
/// spans that have no end show where it broke off.
///
/// `x.jsonl.partial` becomes `x.jsonl`, any other `x.jsonl` becomes `x-repaired.jsonl`, with a number where that exists.
/// The `.partial` is removed once all its whole lines are in the new file, where it is certain that nobody writes it
/// (Unix, and a file system that has locks); anything else is left alone. A trace that is
/// whole already is not touched, unless its name still ends in `.partial`.
///
/// # Errors
/// A file that cannot be read or written; what is no regular file, such as a pipe; one whose first line is no `meta`; a
/// process that still writes it.
pub fn repair(broken: impl AsRef<Path>, options: &RepairOptions) -> Result<Repaired> {
    let broken = broken.as_ref();
    // What is not there is told where it is opened.
    if std::fs::metadata(broken).is_ok_and(|found| !found.is_file()) {
        bail!(
            "{}: it is no regular file; what is read once, such as a pipe, can be saved to one and then be repaired",
            broken.display()
        );
    }
    let lock = look(broken);
    let scan = Scan::read(broken)?;
    if scan.is_whole() && !place::is_partial(broken) && options.output.is_none() {
        return Ok(Repaired {
            path: broken.to_owned(),
            kept: scan.lines(),
            open_spans: scan.open_spans(),
            left_out: 0,
            left_out_lines: Vec::new(),
            removed: false,
        });
    }
    let writer = stamp::process_of(scan.run_id());
    if let Some(process) =
        writer.filter(|process| !options.force && is_alive(*process) == Some(true))
    {
        bail!(
            "{}: process {process}, which writes this trace, seems to be running; wait for its end, or force the \
             repair (--force) if that is another program",
            broken.display()
        );
    }
    if !options.force && matches!(lock, Lock::Held) {
        bail!(
            "{}: the process that writes this trace is running, maybe on another machine; wait for its end",
            broken.display()
        );
    }
    let copied = copy::write(broken, &scan, options.output.as_deref())
        .with_context(|| format!("repair {}", broken.display()))?;
    let removed = place::is_partial(broken) && copied.lost == 0 && matches!(lock, Lock::Free(_));
    if removed {
        std::fs::remove_file(broken).with_context(|| format!("remove {}", broken.display()))?;
        let list = place::open_list(broken);
        if scan.owns_list(&list) {
            // Where it cannot be removed it is in nobody's way.
            let _ = std::fs::remove_file(list);
        }
    }
    Ok(Repaired {
        path: copied.path,
        kept: copied.kept,
        open_spans: scan.open_spans(),
        left_out: copied.left_out,
        left_out_lines: copied.told,
        removed,
    })
}
