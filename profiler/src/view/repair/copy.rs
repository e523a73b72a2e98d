//! Writes the whole trace: the good lines as they are, what was open, and how it ended.

use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Error, Result, anyhow};

use super::place::Target;
use super::scan::{Line, Scan, lines_of};
use super::{LeftOut, MOST_TOLD};
use crate::trace::document::write_lines;
use crate::trace::{RunOutcome, TerminalEvent, TraceEvent};

const REASON: &str = "the trace broke off before its end, and was repaired";

/// What was written.
#[derive(Default)]
pub(super) struct Copied {
    pub(super) path: PathBuf,
    pub(super) kept: u64,
    pub(super) left_out: u64,
    /// Those of them that were more than a torn end.
    pub(super) lost: u64,
    pub(super) told: Vec<LeftOut>,
}

pub(super) fn write(broken: &Path, scan: &Scan, asked: Option<&Path>) -> Result<Copied> {
    let target = Target::new(broken, asked);
    let mut copied = Copied::default();
    let wanted = target.path().to_owned();
    let file = target.create().map_err(Error::new);
    let written = file.and_then(|file| {
        let mut to = BufWriter::with_capacity(1 << 16, file);
        copied.lines(broken, scan, &mut to)
    });
    let published = match written {
        Ok(()) => target.publish().map_err(Error::new),
        Err(error) => {
            target.discard();
            Err(error)
        }
    };
    copied.path = published.map_err(|error| not_written(&error, &wanted))?;
    Ok(copied)
}

/// Where the disk is full, it says how another takes the trace: the broken one is on the full one for good.
fn not_written(error: &Error, wanted: &Path) -> Error {
    let full = error.chain().any(|cause| {
        let kind = match cause.downcast_ref::<serde_json::Error>() {
            Some(error) => error.io_error_kind(),
            None => cause.downcast_ref::<io::Error>().map(io::Error::kind),
        };
        matches!(
            kind,
            Some(ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
        )
    });
    let hint = match full {
        true => "; -o OTHER/PLACE writes it where there is room",
        false => "",
    };
    anyhow!("write {}: {error:#}{hint}", wanted.display())
}

impl Copied {
    fn lines(&mut self, broken: &Path, scan: &Scan, to: &mut dyn Write) -> Result<()> {
        let mut lines = lines_of(broken)?;
        let mut terminal = None;
        while let Some(line) = lines
            .next()
            .with_context(|| format!("read {}", broken.display()))?
        {
            if line.number > scan.lines() {
                // The file has grown since it was looked at.
                break;
            }
            if line.is_blank() {
                continue;
            }
            match fault(&line, scan) {
                Some(reason) => self.leave_out(&line, scan, reason),
                // It stays the last line, whatever is added.
                None if scan.has_ended() && is_terminal(&line, scan) => {
                    terminal = Some(line.bytes.to_vec());
                }
                None => self.keep(line.bytes, to)?,
            }
        }
        for start in &scan.listed {
            write_lines(to, &[TraceEvent::SpanStart(start.clone())])?;
        }
        match terminal {
            Some(line) => self.keep(&line, to)?,
            // The old schema has no word for it: the spans that are open say it.
            None if scan.has_ended() => {}
            None => {
                let terminal = TerminalEvent {
                    outcome: RunOutcome::Failed,
                    timestamp_ns: scan.latest_ns,
                    reason: Some(REASON.to_owned()),
                    extra: None,
                };
                write_lines(to, &[TraceEvent::Terminal(terminal)])?;
            }
        }
        to.flush()?;
        Ok(())
    }

    fn keep(&mut self, line: &[u8], to: &mut dyn Write) -> Result<()> {
        to.write_all(line)?;
        // The last line may lack it.
        if !line.ends_with(b"\n") {
            to.write_all(b"\n")?;
        }
        self.kept += 1;
        Ok(())
    }

    fn leave_out(&mut self, line: &Line<'_>, scan: &Scan, reason: String) {
        self.left_out += 1;
        self.lost += u64::from(scan.torn != Some(line.number));
        if self.told.len() < MOST_TOLD {
            self.told.push(LeftOut {
                line: line.number,
                reason,
            });
        }
    }
}

/// Why a line cannot be kept, if it cannot.
fn fault(line: &Line<'_>, scan: &Scan) -> Option<String> {
    if let Some(reason) = scan.bad.reason(line.number) {
        return Some(reason.to_owned());
    }
    if scan.hangs_together() {
        return None;
    }
    let event = scan.event(line).ok()?;
    let missing = scan.missing(&event)?;
    Some(format!(
        "span {missing:?}, which it belongs to, has lost its start"
    ))
}

fn is_terminal(line: &Line<'_>, scan: &Scan) -> bool {
    matches!(scan.event(line), Ok(TraceEvent::Terminal(_)))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    const META: &str = r#"{"kind":"meta","schema":"candle-graph/trace/10","run_id":"r","correlation_id":"","entrypoint":"n","phase":"train","timestamp":"","capture_step":1,"warmup_steps":0,"device":"cpu","measured_region_device_synchronized":false,"timing_mode":"host","capture_contract":{"measurement_scope":"unknown","operations":"none","activations":"none","tensors":"none","gradients":"none","logical_memory":"none","physical_memory":"none","device_timing":"none","required_semantic_labels":[]},"tags":{}}
"#;

    #[test]
    fn where_the_disk_is_full_another_place_is_offered() {
        let folder = tempfile::tempdir().unwrap();
        let broken = folder.path().join("t.jsonl.partial");
        std::fs::write(&broken, META).unwrap();
        let scan = Scan::read(&broken).unwrap();
        let mut full = std::fs::File::options()
            .write(true)
            .open("/dev/full")
            .unwrap();
        let fault = |to: &mut dyn Write| {
            let fault = Copied::default().lines(&broken, &scan, to).unwrap_err();
            not_written(&fault, Path::new("t.jsonl")).to_string()
        };
        let said = fault(&mut full);
        assert!(said.starts_with("write t.jsonl: No space left "), "{said}");
        assert!(
            said.ends_with("; -o OTHER/PLACE writes it where there is room"),
            "{said}"
        );
        // The same where it is the writer of JSON that comes upon it.
        let said = fault(&mut BufWriter::with_capacity(META.len(), full));
        assert!(
            said.ends_with("; -o OTHER/PLACE writes it where there is room"),
            "{said}"
        );
        let said = not_written(&anyhow!("it is torn"), Path::new("t.jsonl")).to_string();
        assert_eq!(said, "write t.jsonl: it is torn");
    }
}
