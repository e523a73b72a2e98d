//! Traces that a process did not live to finish.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::capture::process::is_alive;
use crate::record::count_progress;
use crate::trace::stamp::process_of;
use crate::view::text::{printable, shell_word};

use super::lock::{Lock, look};
use super::shown;

/// More of them would bury what else is on the terminal.
const MOST_TOLD: usize = 8;
/// A meta line is not longer unless its tags are; then the file is passed over.
const MOST_OF_A_LINE: u64 = 1 << 20;

/// An unfinished trace of a process that is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Leftover {
    pub(crate) path: PathBuf,
    /// The line that names it and the command that repairs it.
    pub(crate) line: String,
}

/// The unfinished traces of dead processes in a folder, by name; with `only`, those whose names
/// start so. Where it cannot be told whether a process lives, nothing is said.
pub(super) fn find(folder: &Path, only: Option<&OsStr>) -> Vec<Leftover> {
    let Ok(entries) = folder.read_dir() else {
        return Vec::new();
    };
    let start = only.map_or(&[][..], OsStr::as_encoded_bytes);
    let mut dead: Vec<PathBuf> = entries
        .flatten()
        .inspect(|_| count_progress())
        // Opening a pipe would wait for its writer.
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.as_encoded_bytes();
            name.ends_with(b".jsonl.partial") && name.starts_with(start)
        })
        .map(|entry| entry.path())
        .filter(|path| writer_of(path).and_then(is_alive) == Some(false))
        // The process may be another machine's.
        .filter(|path| matches!(look(path), Lock::Free(_)))
        .collect();
    dead.sort();
    dead.truncate(MOST_TOLD);
    dead.into_iter().map(Leftover::new).collect()
}

impl Leftover {
    fn new(path: PathBuf) -> Leftover {
        let line = format!(
            "{} was left unfinished by a process that is gone; to repair it: \
             candle-profile repair {}",
            printable(&shown(&path).to_string_lossy(), 4096),
            shell_word(shown(&path)),
        );
        Leftover { path, line }
    }
}

/// The number of the process that wrote a trace.
fn writer_of(trace: &Path) -> Option<u32> {
    #[derive(Deserialize)]
    struct Meta {
        run_id: String,
    }

    let file = File::open(trace).ok()?;
    let mut line = Vec::new();
    BufReader::new(file.take(MOST_OF_A_LINE))
        .read_until(b'\n', &mut line)
        .ok()?;
    let meta: Meta = serde_json::from_slice(&line).ok()?;
    process_of(&meta.run_id)
}
