//! The file beside a trace that lists the spans of other threads and futures while they are open.
//!
//! Such a span gets its lines when it ends, since only then is its parent known. What happened inside it may be in the
//! trace long before; were the process killed meanwhile, that would hang in the air. The list has the start of each
//! that was open at one of the writer's rounds, written before the lines that may refer to it, and is never renewed:
//! whoever reads it takes the spans that have no lines in the trace. Its first line names the run.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;

/// The list, which is created when it gets its first line.
pub(super) struct OpenList {
    path: PathBuf,
    run_id: String,
    state: State,
}

enum State {
    Empty,
    Growing(File),
    /// It cannot be written: then a repair leaves out what happened in open spans of other threads.
    Broken,
}

impl OpenList {
    pub(super) fn new(path: PathBuf, run_id: String) -> Self {
        Self {
            path,
            run_id,
            state: State::Empty,
        }
    }

    /// Adds lines.
    pub(super) fn add(&mut self, lines: &[u8]) {
        if lines.is_empty() {
            return;
        }
        if matches!(self.state, State::Empty) {
            self.state = self.create().map_or(State::Broken, State::Growing);
        }
        if let State::Growing(file) = &mut self.state
            && file.write_all(lines).is_err()
        {
            self.state = State::Broken;
        }
    }

    fn create(&self) -> std::io::Result<File> {
        // The trace's own name is this process's alone, but somebody may have put a file here by hand.
        let mut file = File::options()
            .write(true)
            .create_new(true)
            .open(&self.path)?;
        let head = serde_json::json!({ "run_id": self.run_id });
        writeln!(file, "{head}")?;
        Ok(file)
    }

    /// The trace is whole: nobody needs the list any more.
    pub(super) fn remove(&mut self) {
        if matches!(self.state, State::Growing(_)) {
            let _ = fs::remove_file(&self.path);
            self.state = State::Empty;
        }
    }
}
