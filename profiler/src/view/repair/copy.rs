//! Writes the whole trace: the good lines as they are, what was open, and how it ended.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::place::Target;
use super::scan::{Line, Scan, lines_of};
use super::{LeftOut, MOST_TOLD};
use crate::trace::document::write_lines;
use crate::trace::{RunOutcome, TerminalEvent, TraceEvent};

const REASON: &str = "the trace broke off before its end, and was repaired";

/// What was written.
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
    let mut copied = Copied {
        path: PathBuf::new(),
        kept: 0,
        left_out: 0,
        lost: 0,
        told: Vec::new(),
    };
    let file = target
        .create()
        .with_context(|| format!("write {}", target.path().display()))?;
    let written = copied.lines(broken, scan, &mut BufWriter::with_capacity(1 << 16, file));
    if let Err(error) = written {
        target.discard();
        return Err(error);
    }
    let wanted = target.path().to_owned();
    let published = target.publish();
    copied.path = published.with_context(|| format!("write {}", wanted.display()))?;
    Ok(copied)
}

impl Copied {
    fn lines(&mut self, broken: &Path, scan: &Scan, to: &mut impl Write) -> Result<()> {
        let mut lines = lines_of(broken)?;
        let mut terminal = None;
        while let Some(line) = lines.next()? {
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

    fn keep(&mut self, line: &[u8], to: &mut impl Write) -> Result<()> {
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
    if let Some(reason) = scan.bad.get(&line.number) {
        return Some(reason.clone());
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
