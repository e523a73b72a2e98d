//! Where the lines of a session go.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

use crate::trace::TraceEvent;
use crate::trace::legacy::LegacyLines;

/// Lines are gathered up to this many bytes before they are handed to the system.
const ENOUGH: usize = 1 << 16;

/// Nor are they kept back longer than this once there is another: a process may be killed at any time.
const AGE: Duration = Duration::from_millis(50);

/// A trace file that is being written. The first fault is final: what follows it in the file could
/// be half a line, so nothing does.
pub(super) struct Output {
    file: File,
    pending: Vec<u8>,
    flushed: Instant,
    /// There where the lines are of the old schema.
    legacy: Option<LegacyLines>,
    fault: Option<String>,
}

impl Output {
    /// Creates the file, or empties it, and its folders. A file that another session writes is left alone.
    pub(super) fn create(path: &Path, legacy: bool) -> Result<Self> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)
                .with_context(|| format!("create folder {} of a trace", folder.display()))?;
        }
        let file = OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(false)
            .open(path)
            .with_context(|| format!("create trace {}", path.display()))?;
        // Elsewhere a lock would keep others from reading.
        if cfg!(unix) && matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
            bail!(
                "create trace {}: another session or program writes it",
                path.display()
            );
        }
        // A device has no length.
        if file.metadata().is_ok_and(|data| data.is_file()) {
            file.set_len(0)
                .with_context(|| format!("create trace {}", path.display()))?;
        }
        Ok(Self {
            file,
            pending: Vec::new(),
            flushed: Instant::now(),
            legacy: legacy.then(LegacyLines::default),
            fault: None,
        })
    }

    pub(super) fn write(&mut self, event: &TraceEvent) -> Result<()> {
        self.check()?;
        let before = self.pending.len();
        let written = match &mut self.legacy {
            None => serde_json::to_writer(&mut self.pending, event).map(|()| true),
            Some(legacy) => match legacy.of(event) {
                Some(line) => serde_json::to_writer(&mut self.pending, &line).map(|()| true),
                None => Ok(false),
            },
        };
        match written {
            Ok(true) => self.pending.push(b'\n'),
            Ok(false) => {}
            Err(error) => {
                self.pending.truncate(before);
                return Err(self.fail(format!("write an event: {error}")));
            }
        }
        if self.pending.len() >= ENOUGH || self.flushed.elapsed() >= AGE {
            self.flush()?;
        }
        Ok(())
    }

    pub(super) fn flush(&mut self) -> Result<()> {
        self.check()?;
        let written = self.file.write_all(&self.pending);
        self.pending.clear();
        self.flushed = Instant::now();
        written.map_err(|error| self.fail(error.to_string()))
    }

    /// The fault that ended this output.
    pub(super) fn check(&self) -> Result<()> {
        match &self.fault {
            Some(fault) => bail!("the trace session failed before: {fault}"),
            None => Ok(()),
        }
    }

    pub(super) fn fail(&mut self, fault: String) -> anyhow::Error {
        let error = anyhow!("the trace cannot be written: {fault}");
        self.fault.get_or_insert(fault);
        error
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{RunOutcome, TerminalEvent};

    #[test]
    fn the_first_write_error_is_final() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("trace.jsonl");
        let mut output = Output::create(&path, false).expect("an output");
        // A file that was opened to be read takes nothing.
        output.file = File::open(&path).expect("the file");
        let event = TraceEvent::Terminal(TerminalEvent {
            outcome: RunOutcome::Complete,
            timestamp_ns: 1,
            reason: None,
            extra: None,
        });
        let recorded = output.write(&event).and_then(|()| output.flush());
        let error = recorded.expect_err("a fault").to_string();
        assert!(
            error.starts_with("the trace cannot be written: "),
            "{error}"
        );
        output.file = File::create(&path).expect("the file");
        for result in [output.write(&event), output.flush()] {
            let error = result.expect_err("the same fault").to_string();
            assert!(error.contains("failed before: "), "{error}");
        }
        assert_eq!(std::fs::read(&path).expect("the file"), b"");
    }
}
