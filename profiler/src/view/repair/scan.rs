//! What a broken trace holds: which of its lines are good, which spans they tell of, and what was open.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use anyhow::{Context, Error, Result, bail, ensure};
use serde::Deserialize;

use super::bad::BadLines;
use super::place;
use crate::trace::ancestry::{Above, from_parents};
use crate::trace::read::LineReader;
use crate::trace::sequence::{Sequence, check_end};
use crate::trace::{EdgeEvent, SpanStartEvent, TraceEvent};
use crate::view::text;

/// A line that goes on beyond this is no record of a trace: reading it must not take all memory.
const MOST_OF_A_LINE: u64 = 64 << 20;

/// What is known of a broken trace after its first reading.
pub(super) struct Scan {
    run_id: String,
    /// Knows the schema by now.
    reader: LineReader,
    sequence: Sequence,
    spans: Vec<Span>,
    /// Parents that had not started when their children did.
    early: HashMap<u32, String>,
    /// Spans that records were of before the spans had started.
    awaited: HashSet<String>,
    /// The ids of the spans that have not ended.
    open: HashMap<u32, String>,
    /// The lines that are no records, or stand where none can.
    pub(super) bad: BadLines,
    /// The number of the last line, if it is only the beginning of one.
    pub(super) torn: Option<u64>,
    lines: u64,
    /// The latest time that a record names.
    pub(super) latest_ns: u64,
    /// Spans that only the list of open ones names, with the parents they have now.
    pub(super) listed: Vec<SpanStartEvent>,
    /// Whether each span's chain of parents ends at a span without one.
    reached: Vec<bool>,
    /// All spans that records name are there: decided once, as it is asked for each line.
    hangs_together: bool,
}

#[derive(Clone, Copy)]
struct Span {
    start_ns: u64,
    parent: Parent,
}

#[derive(Clone, Copy, PartialEq)]
enum Parent {
    None,
    At(u32),
    /// Not started before its child: see [`Scan::early`].
    Early,
}

/// Where a span hangs.
#[derive(Clone, Copy)]
struct Hung {
    /// Its chain of parents ends at a span without one.
    reached: bool,
    /// The nearest of them that has not ended, itself included.
    open: Option<u32>,
}

impl Hung {
    const LOST: Hung = Hung {
        reached: false,
        open: None,
    };
}

/// The lines of a file, without the end of a line that has none.
pub(super) struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    number: u64,
    /// So many bytes of a line are read.
    most: u64,
}

/// One of them.
pub(super) struct Line<'a> {
    pub(super) number: u64,
    /// Of a line that is too long, its beginning.
    pub(super) bytes: &'a [u8],
    /// It ends with a line's end: only a file's last line may lack it.
    pub(super) whole: bool,
    too_long: bool,
}

pub(super) fn lines_of(path: &Path) -> Result<Lines<BufReader<File>>> {
    let file = File::open(path).with_context(|| format!("open trace {}", path.display()))?;
    let reader = BufReader::with_capacity(1 << 16, file);
    Ok(Lines::new(reader, MOST_OF_A_LINE))
}

impl<R: BufRead> Lines<R> {
    fn new(reader: R, most: u64) -> Self {
        Self {
            reader,
            buffer: Vec::new(),
            number: 0,
            most,
        }
    }

    pub(super) fn next(&mut self) -> std::io::Result<Option<Line<'_>>> {
        self.buffer.clear();
        let mut limited = self.reader.by_ref().take(self.most);
        if limited.read_until(b'\n', &mut self.buffer)? == 0 {
            return Ok(None);
        }
        self.number += 1;
        let ends = self.buffer.ends_with(b"\n");
        let too_long = !ends && self.buffer.len() as u64 == self.most;
        let whole = ends || (too_long && self.pass_over_rest()?);
        Ok(Some(Line {
            number: self.number,
            bytes: &self.buffer,
            whole,
            too_long,
        }))
    }

    /// The rest of a line that is too long, piece by piece. Gives whether the line has an end.
    fn pass_over_rest(&mut self) -> std::io::Result<bool> {
        loop {
            let available = self.reader.fill_buf()?;
            if available.is_empty() {
                return Ok(false);
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let used = end.map_or(available.len(), |end| end + 1);
            self.reader.consume(used);
            if end.is_some() {
                return Ok(true);
            }
        }
    }
}

impl Line<'_> {
    /// The record that the line is. No beginning of a record is one, so a last line that lacks only its end is good.
    fn event(&self, reader: &mut LineReader) -> Result<TraceEvent> {
        ensure!(
            !self.too_long,
            "the line is longer than {}, and no record is",
            text::bytes(self.bytes.len() as u64)
        );
        let text = std::str::from_utf8(self.bytes).map_err(Error::new);
        match text.and_then(|text| reader.event(text.trim())) {
            Err(_) if !self.whole => bail!("the line has no end"),
            event => event,
        }
    }

    pub(super) fn is_blank(&self) -> bool {
        !self.too_long && self.bytes.trim_ascii().is_empty()
    }
}

impl Scan {
    pub(super) fn read(broken: &Path) -> Result<Self> {
        let name = broken.display();
        let mut lines = lines_of(broken)?;
        let mut scan = Self::of_first(&mut lines).with_context(|| {
            format!("{name}: the first line is no whole `meta` record: there is no trace to repair")
        })?;
        while let Some(line) = lines.next().with_context(|| format!("read {name}"))? {
            scan.lines = line.number;
            if line.is_blank() {
                continue;
            }
            let event = scan.event(&line);
            if event.is_err() && !line.whole {
                scan.torn = Some(line.number);
            }
            if let Err(error) = event.and_then(|event| scan.take(&event)) {
                scan.bad.add(line.number, || format!("{error:#}"));
            }
        }
        if !scan.sequence.has_terminal() {
            scan.add_listed(&place::open_list(broken));
        }
        scan.settle();
        Ok(scan)
    }

    fn of_first(lines: &mut Lines<impl BufRead>) -> Result<Self> {
        let Some(line) = lines.next()? else {
            bail!("the file is empty");
        };
        let mut reader = LineReader::default();
        let event = line.event(&mut reader)?;
        let TraceEvent::Meta { run, .. } = &event else {
            bail!("it is another record");
        };
        let mut sequence = Sequence::default();
        sequence.admit(&event)?;
        Ok(Self {
            run_id: run.run_id.clone(),
            reader,
            sequence,
            spans: Vec::new(),
            early: HashMap::new(),
            awaited: HashSet::new(),
            open: HashMap::new(),
            bad: BadLines::default(),
            torn: None,
            lines: line.number,
            latest_ns: 0,
            listed: Vec::new(),
            reached: Vec::new(),
            hangs_together: false,
        })
    }

    /// Takes a record in, or says why it cannot stand here.
    fn take(&mut self, event: &TraceEvent) -> Result<()> {
        if let TraceEvent::Terminal(terminal) = event {
            // All lines before count, also those that are left out in the end, as a reader of the file counts them.
            check_end(terminal, self.latest_ns)?;
        }
        let place = self.sequence.admit(event)?;
        match event {
            TraceEvent::SpanStart(start) => self.start(start),
            TraceEvent::SpanEnd(end) => {
                let span = place.and_then(|place| self.spans.get(place));
                let start_ns = span.map_or(0, |span| span.start_ns);
                self.seen_at(start_ns.saturating_add(end.duration_ns));
                if let Some(place) = place.and_then(short) {
                    self.open.remove(&place);
                }
            }
            TraceEvent::Op(op) => self.seen_at(op.timestamp_ns.saturating_add(op.duration_ns)),
            TraceEvent::Memory(event) => self.seen_at(event.timestamp_ns),
            TraceEvent::DeviceMemory(sample) => self.seen_at(sample.timestamp_ns),
            _ => {}
        }
        for id in spans_of(event).into_iter().flatten() {
            if self.place(id).is_none() {
                self.awaited.insert(id.to_owned());
            }
        }
        Ok(())
    }

    fn start(&mut self, start: &SpanStartEvent) {
        let Some(place) = short(self.spans.len()) else {
            return;
        };
        let parent = match &start.parent_id {
            None => Parent::None,
            Some(id) => self.place(id).map_or_else(
                || {
                    self.early.insert(place, id.clone());
                    Parent::Early
                },
                Parent::At,
            ),
        };
        self.spans.push(Span {
            start_ns: start.start_ns,
            parent,
        });
        self.open.insert(place, start.id.clone());
        self.seen_at(start.start_ns);
    }

    fn place(&self, id: &str) -> Option<u32> {
        self.sequence.place(id).and_then(short)
    }

    fn seen_at(&mut self, ns: u64) {
        self.latest_ns = self.latest_ns.max(ns);
    }

    /// Adds the spans that the list of open ones names and the trace does not.
    fn add_listed(&mut self, list: &Path) {
        let Some(mut lines) = self.lines_of_list(list) else {
            return;
        };
        while let Ok(Some(line)) = lines.next() {
            if line.is_blank() {
                continue;
            }
            if let Ok(event @ TraceEvent::SpanStart(_)) = self.event(&line)
                // One that has its lines in the trace is refused here.
                && self.take(&event).is_ok()
                && let TraceEvent::SpanStart(start) = event
            {
                self.listed.push(start);
            }
        }
    }

    /// The lines of the list after its first, which names this run. `None`: there is none, or it is another's.
    fn lines_of_list(&self, list: &Path) -> Option<Lines<BufReader<File>>> {
        #[derive(Deserialize)]
        struct Head {
            run_id: String,
        }

        // Opening a pipe would wait for its writer, and what a link leads to may have no end.
        if !fs::symlink_metadata(list).is_ok_and(|list| list.is_file()) {
            return None;
        }
        let mut lines = lines_of(list).ok()?;
        let head = lines.next().ok().flatten()?;
        let head: Head = serde_json::from_slice(head.bytes).ok()?;
        (head.run_id == self.run_id).then_some(lines)
    }

    /// Whether the file is this run's list.
    pub(super) fn owns_list(&self, list: &Path) -> bool {
        self.lines_of_list(list).is_some()
    }

    /// Decides, when all is read, which spans hang together with the root, and where those of the list hang.
    fn settle(&mut self) {
        for (place, id) in std::mem::take(&mut self.early) {
            if let (Some(parent), Some(span)) =
                (self.place(&id), self.spans.get_mut(place as usize))
            {
                span.parent = Parent::At(parent);
            }
        }
        let hung = self.hung();
        self.reached = hung.iter().map(|span| span.reached).collect();
        let awaited = std::mem::take(&mut self.awaited);
        self.awaited = awaited.into_iter().filter(|id| !self.holds(id)).collect();
        // No record of the trace names one of the list that is dropped, unless it hangs below it itself.
        let own = self.reached.get(..self.first_listed()).unwrap_or(&[]);
        self.hangs_together = self.awaited.is_empty() && own.iter().all(|reached| *reached);
        let mut place = self.first_listed();
        let mut listed = std::mem::take(&mut self.listed);
        listed.retain_mut(|start| {
            let parent = match hung.get(place) {
                Some(span) if span.reached => self.parent_of(place),
                _ => None,
            };
            place += 1;
            let ancestor = parent.and_then(|parent| hung.get(parent)?.open);
            start.parent_id = ancestor.and_then(|place| self.open.get(&place).cloned());
            start.parent_id.is_some()
        });
        self.listed = listed;
    }

    /// Of each span, where it hangs. One that only the list names hangs on the nearest ancestor that had not ended, by
    /// the rule for spans of other threads and futures; without one it is lost.
    fn hung(&self) -> Vec<Hung> {
        let first_listed = self.first_listed();
        from_parents(
            self.spans.len(),
            |place| self.parent_of(place),
            |place, above| {
                let above = match above {
                    Above::Parent(above) => above,
                    Above::Ring => Hung::LOST,
                    Above::Nothing => Hung {
                        reached: self.spans.get(place).map(|span| span.parent)
                            == Some(Parent::None),
                        open: None,
                    },
                };
                let own = short(place).filter(|place| self.open.contains_key(place));
                if !above.reached || (place >= first_listed && above.open.is_none()) {
                    return Hung::LOST;
                }
                Hung {
                    reached: true,
                    open: own.or(above.open),
                }
            },
        )
    }

    fn parent_of(&self, place: usize) -> Option<usize> {
        match self.spans.get(place)?.parent {
            Parent::At(parent) => Some(parent as usize),
            Parent::None | Parent::Early => None,
        }
    }

    /// The place of the first span that only the list names: those come last.
    fn first_listed(&self) -> usize {
        self.spans.len().saturating_sub(self.listed.len())
    }

    /// The record that a line of this trace is, in its schema.
    pub(super) fn event(&self, line: &Line<'_>) -> Result<TraceEvent> {
        let mut reader = self.reader;
        line.event(&mut reader)
    }

    pub(super) fn run_id(&self) -> &str {
        &self.run_id
    }

    pub(super) fn lines(&self) -> u64 {
        self.lines
    }

    /// Spans that have no end.
    pub(super) fn open_spans(&self) -> u64 {
        let reached = |place: &&u32| self.reached.get(**place as usize) == Some(&true);
        self.open.keys().filter(reached).count() as u64
    }

    /// The trace ends as it should; of the old schema, which has no word for an end, each does.
    pub(super) fn has_ended(&self) -> bool {
        self.sequence.finish().is_ok()
    }

    /// Nothing is to be repaired.
    pub(super) fn is_whole(&self) -> bool {
        self.has_ended() && self.bad.is_empty() && self.listed.is_empty() && self.hangs_together()
    }

    /// All spans that records name are there, so that no record has to be asked for them.
    pub(super) fn hangs_together(&self) -> bool {
        self.hangs_together
    }

    /// The first span that a record names and that is not in the trace, or not below its root.
    pub(super) fn missing<'a>(&self, event: &'a TraceEvent) -> Option<&'a str> {
        spans_of(event)
            .into_iter()
            .flatten()
            .find(|id| !self.holds(id))
    }

    fn holds(&self, id: &str) -> bool {
        let place = self.sequence.place(id);
        place.is_some_and(|place| self.reached.get(place) == Some(&true))
    }
}

/// The spans that a record names as its own.
fn spans_of(event: &TraceEvent) -> [Option<&str>; 2] {
    match event {
        TraceEvent::SpanStart(start) => [Some(&start.id), None],
        TraceEvent::SpanEnd(end) => [Some(&end.id), None],
        TraceEvent::Op(op) => [Some(&op.span_id), None],
        TraceEvent::Tensor(tensor) => [Some(&tensor.span_id), None],
        TraceEvent::TensorStats(stats) => [Some(&stats.span_id), None],
        TraceEvent::Memory(memory) => [Some(&memory.span_id), None],
        TraceEvent::DeviceInterval(interval) => [Some(&interval.span_id), None],
        TraceEvent::Edge(EdgeEvent::Call {
            from_span, to_span, ..
        }) => [Some(from_span), Some(to_span)],
        _ => [None, None],
    }
}

/// Places are as many as [`Sequence`] can count: they fit.
fn short(place: usize) -> Option<u32> {
    u32::try_from(place).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_line_has_no_end_however_long_lines_are() {
        let text = b"0123456\n01234567\n012345678\n        9\n\nx";
        let mut lines = Lines::new(&text[..], 8);
        let mut seen = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            let begins = line.bytes.first().copied();
            seen.push((
                line.number,
                begins,
                line.whole,
                line.too_long,
                line.is_blank(),
            ));
        }
        assert_eq!(
            seen,
            [
                (1, Some(b'0'), true, false, false),
                (2, Some(b'0'), true, true, false),
                (3, Some(b'0'), true, true, false),
                (4, Some(b' '), true, true, false),
                (5, Some(b'\n'), true, false, true),
                (6, Some(b'x'), false, false, false),
            ]
        );
        let mut endless = Lines::new(&text[..7], 4);
        let line = endless.next().unwrap().unwrap();
        assert!(!line.whole && line.too_long);
        let said = line.event(&mut LineReader::default()).unwrap_err();
        assert_eq!(
            said.to_string(),
            "the line is longer than 4 B, and no record is"
        );
    }
}
