//! Traces without an end: whether they broke off, or somebody still writes them.

use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::capture::files::{Lock, look};
use crate::capture::process::is_alive;
use crate::trace::stamp::process_of;
use crate::view::text::shell_word;

/// A meta line is not longer unless its tags are; then nothing is known of its process.
const MOST_OF_A_LINE: u64 = 1 << 20;

/// What became of a trace without an end. The same is asked before a repair, which would be refused.
pub(super) enum Unfinished {
    Broken(PathBuf),
    /// Somebody holds its lock, on another machine where its process is not one of this.
    Written(Option<u32>),
    /// A process of the writer's number runs, but nobody holds the lock; not every writer can.
    Doubtful(PathBuf, u32),
}

impl Unfinished {
    pub(super) fn of(path: &Path) -> Unfinished {
        // Opening a pipe would wait for its writer.
        if !path.is_file() {
            return Unfinished::Broken(path.to_owned());
        }
        let process = process_that_wrote(path).filter(|id| is_alive(*id) == Some(true));
        match (look(path), process) {
            (Lock::Held, process) => Unfinished::Written(process),
            (_, Some(process)) => Unfinished::Doubtful(path.to_owned(), process),
            (_, None) => Unfinished::Broken(path.to_owned()),
        }
    }
}

/// As the rest of a sentence about the trace.
impl fmt::Display for Unfinished {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unfinished::Broken(path) => write!(out, "broke off; {}", to_repair(path)),
            Unfinished::Written(Some(process)) => {
                write!(out, "is still being written by process {process}")
            }
            Unfinished::Written(None) => {
                write!(out, "is still being written, maybe on another machine")
            }
            Unfinished::Doubtful(path, process) => write!(
                out,
                "seems to be still written by process {process} (if that is another program: candle-profile repair \
                 --force {})",
                shell_word(path)
            ),
        }
    }
}

/// What became of several; `all_of_them` is how to name them at once. `None`: there is none.
pub(super) fn some(traces: &[PathBuf], all_of_them: &Path) -> Option<String> {
    match traces {
        [] => None,
        [only] => Some(format!("{} {}", only.display(), Unfinished::of(only))),
        traces => {
            let is_broken = |path: &&PathBuf| matches!(Unfinished::of(path), Unfinished::Broken(_));
            let broken = traces.iter().filter(is_broken).count();
            let repair = to_repair(all_of_them);
            Some(match traces.len() - broken {
                0 => format!("{broken} broke off; {repair}"),
                written if broken == 0 => format!("{written} are still being written"),
                written => {
                    let is = if written == 1 { "is" } else { "are" };
                    format!("{broken} broke off, {written} {is} still being written; {repair}")
                }
            })
        }
    }
}

pub(super) fn to_repair(path: &Path) -> String {
    format!("to repair: candle-profile repair {}", shell_word(path))
}

/// The process that the trace's first line names.
fn process_that_wrote(trace: &Path) -> Option<u32> {
    #[derive(Deserialize)]
    struct Meta {
        run_id: String,
    }

    let mut line = Vec::new();
    BufReader::new(File::open(trace).ok()?.take(MOST_OF_A_LINE))
        .read_until(b'\n', &mut line)
        .ok()?;
    let meta: Meta = serde_json::from_slice(&line).ok()?;
    process_of(&meta.run_id)
}
