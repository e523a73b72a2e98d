//! From text to events and documents.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use anyhow::{Context, Error, Result, anyhow};
use serde_json::error::Category;

use super::document::{Builder, TraceDocument};
use super::events::TraceEvent;
use super::legacy;
use super::line::parse_line;

/// Reads a trace file.
///
/// # Errors
/// A file that cannot be read; a line that is no event; `meta` not first or twice; a schema that is
/// not known; a span that starts twice, ends twice or ends without a start; impossible statistics;
/// anything after `terminal`; no `terminal`, or one before other evidence, or with a reason that
/// its outcome cannot have. The error names the file, the line and what would be allowed.
pub fn parse_trace(path: impl AsRef<Path>) -> Result<TraceDocument> {
    let path = path.as_ref();
    let name = path.display().to_string();
    let file = File::open(path).with_context(|| format!("open trace {name}"))?;
    parse_named(BufReader::with_capacity(1 << 16, file), &name)
}

/// Reads a trace from anything, a byte slice for example.
///
/// # Errors
/// As [`parse_trace`], without a file to name.
pub fn parse_trace_reader(reader: impl BufRead) -> Result<TraceDocument> {
    parse_named(reader, "trace")
}

fn parse_named(reader: impl BufRead, name: &str) -> Result<TraceDocument> {
    let mut events = TraceEvents::new(reader);
    let mut builder = Builder::default();
    while let Some(event) = events.next() {
        event
            .and_then(|event| builder.push(event))
            .map_err(|error| match error.is::<io::Error>() {
                // Not the trace is at fault.
                true => error.context(format!("read {name}")),
                false => anyhow!("{name}, line {}: {error:#}", events.line()),
            })?;
    }
    builder
        .finish()
        .map_err(|error| anyhow!("{name}: {error:#}"))
}

/// The events of a trace, one after another, so that a large trace need not fit into memory.
/// Blank lines are passed over; what an event means for the whole is not checked.
pub struct TraceEvents<R> {
    reader: R,
    buffer: Vec<u8>,
    line: usize,
    lines: LineReader,
}

impl<R: BufRead> TraceEvents<R> {
    /// Reads from the start of a trace.
    pub fn new(reader: R) -> Self {
        Self {
            reader,
            buffer: Vec::new(),
            line: 0,
            lines: LineReader::default(),
        }
    }

    /// The number of the line that was read last, from 1.
    pub fn line(&self) -> usize {
        self.line
    }
}

impl<R: BufRead> Iterator for TraceEvents<R> {
    type Item = Result<TraceEvent>;

    fn next(&mut self) -> Option<Result<TraceEvent>> {
        loop {
            self.buffer.clear();
            let read = self.reader.read_until(b'\n', &mut self.buffer);
            self.line += 1;
            match read {
                Ok(0) => return None,
                Ok(_) => {}
                Err(error) => return Some(Err(Error::new(error))),
            }
            let text = match std::str::from_utf8(&self.buffer) {
                Ok(text) => text.trim(),
                Err(error) => {
                    let byte = error.valid_up_to() + 1;
                    return Some(Err(anyhow!("byte {byte} is no UTF-8; a trace is text")));
                }
            };
            if text.is_empty() {
                continue;
            }
            return Some(self.lines.event(text));
        }
    }
}

/// Reads lines in the schema that the first of them names.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LineReader {
    begun: bool,
    legacy: bool,
}

impl LineReader {
    /// The record that the next line is.
    ///
    /// # Errors
    /// A line that is none.
    pub(crate) fn event(&mut self, line: &str) -> Result<TraceEvent> {
        if self.legacy {
            return legacy::parse_line(line).map_err(|error| fault(&error, line));
        }
        let event = parse_line(line).or_else(|error| {
            self.legacy = !self.begun && legacy::is_meta(line);
            if self.legacy {
                legacy::parse_line(line)
            } else {
                Err(error)
            }
        });
        self.begun = true;
        event.map_err(|error| fault(&error, line))
    }
}

/// How the fault of a line ends that is only the beginning of one.
pub(crate) const TORN: &str = "the line breaks off";

/// What is wrong with a line, without the place that its reader gives: that counts each line as the first.
fn fault(error: &serde_json::Error, line: &str) -> Error {
    let text = error.to_string();
    let (what, place) = text.rsplit_once(" at line ").unwrap_or((&text, ""));
    match error.classify() {
        Category::Eof => anyhow!("{TORN}"),
        Category::Syntax => {
            let column = place.rsplit_once(' ').map_or("1", |(_, column)| column);
            let column: usize = column.parse().unwrap_or(1);
            let rest = line.get(column.saturating_sub(1)..).unwrap_or("");
            match not_finite(rest) {
                Some(word) => {
                    anyhow!("column {column}: {word} is no number of JSON, where all are finite")
                }
                None => anyhow!("column {column}: {what}"),
            }
        }
        Category::Data | Category::Io => anyhow!("{what}"),
    }
}

/// The word that other writers put for a number that is not finite.
fn not_finite(text: &str) -> Option<&'static str> {
    let words = ["NaN", "Infinity", "-Infinity", "nan", "inf", "-inf"];
    words.into_iter().find(|word| text.starts_with(word))
}
