//! Reads one thread's stream: plays its stack of spans again, and tells the trace what began, ended and was seen.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::budget::SPAN_END;
use super::cold::{Cold, MeasuredStart, Owner};
use super::detached::SpanCell;
use super::replay::{ROOT, Replay, SpanName, Where, Write};
use super::session::Ticket;
use super::site::SpanSource;
use super::stream::Word;
use super::sync::Slot;
use crate::allocator::Taken;
use crate::trace::span_lines::EndLine;
use crate::view::summary::{ClosedSpan, HowClosed, SiteId};

/// Records read before the writer shows that it gets on.
const STRIDE: usize = 1024;

/// One stream being read.
pub(super) struct Reading {
    ticket: Arc<Ticket>,
    stack: Vec<Frame>,
    /// The span that ended last directly under the stack's bottom.
    last_ended: (u64, SpanName),
    /// A record that needs to know what another stream has not said yet.
    waiting: Option<(u64, Box<Cold>)>,
    /// The latest reading: what comes later in the stream is not earlier in time.
    latest: u64,
    opened: u64,
    /// How many spans of each row are open, by the row's number.
    around: Vec<u32>,
    panic_at: Option<u64>,
    over: bool,
}

/// What a turn of reading came to.
pub(super) struct Progress {
    pub(super) moved: bool,
    pub(super) waits: bool,
    pub(super) more: bool,
}

/// A level of a thread's stack.
struct Frame {
    id: u64,
    name: SpanName,
    start_ns: u64,
    children_ns: u64,
    overhead_ns: u64,
    children_overhead_ns: u64,
    /// The span that ended last inside it, or itself.
    last_ended: (u64, SpanName),
    /// A span with a step is around what happens here.
    in_step: bool,
    /// A span that says `detached` is.
    detached: bool,
    /// The how-manieth span of its stream this is.
    ordinal: u64,
    what: What,
}

enum What {
    Span {
        row: SiteId,
        measured: bool,
        recursive: bool,
    },
    /// A span that has its lines elsewhere: a detached one of this stack, or another's inside which it runs. `None`: the
    /// root.
    Elsewhere(Option<Arc<SpanCell>>),
    /// A span that is not recorded: what happens in it is its parent's. The number tells it from others.
    Unrecorded(u64),
}

impl Frame {
    /// What tells its span, and those around it on other threads, from others.
    fn chain(&self) -> Vec<u64> {
        match &self.what {
            What::Span { .. } => vec![self.id],
            What::Unrecorded(number) => vec![*number],
            What::Elsewhere(cell) => chain_of(cell.as_ref()),
        }
    }
}

/// The numbers of a span and of those around it, from the outermost in.
fn chain_of(cell: Option<&Arc<SpanCell>>) -> Vec<u64> {
    let cells = std::iter::successors(cell, |cell| cell.parent.as_ref());
    let mut chain: Vec<u64> = cells.filter_map(|cell| cell.id()).collect();
    chain.reverse();
    chain
}

/// Where a span is whose path is asked for.
enum Inside {
    /// Open on this stack.
    Stack,
    /// It ended on this stack, below what is open there.
    EndedOnStack,
    /// On no stack, or another.
    Elsewhere,
}

/// A record that cannot be read before another stream has been.
struct Waits(Box<Cold>);

impl Reading {
    pub(super) fn new(ticket: Arc<Ticket>) -> Self {
        Self {
            ticket,
            stack: Vec::new(),
            last_ended: (ROOT, SpanName::Root),
            waiting: None,
            latest: 0,
            opened: 0,
            around: Vec::new(),
            panic_at: None,
            over: false,
        }
    }

    pub(super) fn ticket(&self) -> Arc<Ticket> {
        Arc::clone(&self.ticket)
    }

    /// The thread has left and all it recorded has been read.
    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    /// How far the thread has filled its stream.
    pub(super) fn published(&self) -> *mut Slot {
        self.ticket.recorder.cursor.load(Ordering::Acquire)
    }

    /// Reads a stretch of the stream, up to what was published; `None`: the stream is over.
    pub(super) fn read(
        &mut self,
        replay: &mut Replay,
        published: *mut Slot,
        until: Option<u64>,
    ) -> Option<Progress> {
        if self.over {
            return None;
        }
        let left = self.ticket.has_left();
        let recorder = self.ticket.recorder;
        let mut moved = false;
        if let Some((ticks, cold)) = self.waiting.take() {
            if let Err(Waits(cold)) = self.replay(replay, ticks, Word::Cold(cold), until) {
                self.waiting = Some((ticks, cold));
                return Some(Progress {
                    moved,
                    waits: true,
                    more: false,
                });
            }
            moved = true;
        }
        let mut consumer = recorder.consumer();
        let reader = consumer.as_mut()?;
        for _ in 0..STRIDE {
            let Some((ticks, word)) = reader.take(published) else {
                recorder
                    .consumed
                    .store(reader.position(), Ordering::Release);
                drop(consumer);
                // At the end of a capture its streams are given back all at once.
                let is_all = recorder.cursor.load(Ordering::Acquire) == published;
                if left && is_all && until.is_none() {
                    self.end_left(replay);
                    recorder.recycle(&mut |_| {});
                    self.over = true;
                }
                return Some(Progress {
                    moved,
                    waits: false,
                    more: false,
                });
            };
            moved = true;
            if let Err(Waits(cold)) = self.replay(replay, ticks, word, until) {
                self.waiting = Some((ticks, cold));
                break;
            }
            // A single record may be a megabyte of text.
            if replay.is_full() {
                break;
            }
        }
        recorder
            .consumed
            .store(reader.position(), Ordering::Release);
        let waits = self.waiting.is_some();
        Some(Progress {
            moved,
            waits,
            more: !waits,
        })
    }

    fn replay(
        &mut self,
        replay: &mut Replay,
        ticks: u64,
        word: Word,
        until: Option<u64>,
    ) -> Result<(), Waits> {
        if until.is_some_and(|until| ticks > until) {
            replay.late += 1;
            return Ok(());
        }
        self.latest = self.latest.max(ticks);
        let now = replay.ns(self.latest);
        match word {
            Word::Open(site) => self.open(replay, now, &SpanSource::Site(site), None),
            Word::Close => {
                // The thread does not unwind: an earlier panic is over.
                self.panic_at = None;
                self.close(replay, now, HowClosed::default(), None);
            }
            Word::Link { .. } => {}
            Word::Cold(cold) => return self.cold(replay, ticks, now, cold),
        }
        Ok(())
    }

    fn cold(
        &mut self,
        replay: &mut Replay,
        ticks: u64,
        now: u64,
        cold: Box<Cold>,
    ) -> Result<(), Waits> {
        let needed = match &*cold {
            Cold::Enter { cell: Some(cell) }
            | Cold::Evidence {
                owner: Owner::Cell(cell),
                ..
            } => Some(cell),
            Cold::CloseDetached(end) if end.cell.id().is_none() => Some(&end.cell),
            Cold::CloseDetached(end) => end.parent.as_ref(),
            _ => None,
        };
        if needed.is_some_and(|cell| cell.id().is_none()) {
            return Err(Waits(cold));
        }
        match *cold {
            Cold::Open { source, measured } => self.open(replay, now, &source, measured),
            Cold::Close {
                cut,
                panicked,
                memory,
            } => {
                if !panicked && !cut {
                    // As for a plain close.
                    self.panic_at = None;
                }
                let flags = HowClosed {
                    cut,
                    panicked: panicked && self.panic_passed(),
                    ..HowClosed::default()
                };
                self.close(replay, now, flags, memory);
            }
            Cold::Given { below, cell } => {
                replay.handed = true;
                let below = usize::try_from(below).unwrap_or(usize::MAX);
                let frame = self.stack.iter().rev().nth(below);
                cell.set_id(frame.map_or(ROOT, |frame| frame.id));
            }
            Cold::Enter { cell } => {
                let id = cell.as_ref().and_then(|cell| cell.id()).unwrap_or(ROOT);
                let name = cell
                    .as_ref()
                    .map_or(SpanName::Root, |cell| SpanName::of_cell(cell));
                self.enter(id, name, now, What::Elsewhere(cell.clone()));
                let source = cell.as_ref().and_then(|cell| cell.source.as_ref());
                if let (Some(frame), Some(site)) =
                    (self.stack.last_mut(), source.and_then(SpanSource::site))
                {
                    frame.detached |= site.opens().detached;
                }
            }
            Cold::OpenDetached { cell, on_stack } => {
                let id = replay.open_detached(&cell);
                if on_stack {
                    let what = What::Elsewhere(Some(Arc::clone(&cell)));
                    self.enter(id, SpanName::of_cell(&cell), now, what);
                    self.in_step_of(&cell);
                }
            }
            Cold::CloseDetached(mut end) => {
                let id = end.cell.id().unwrap_or(ROOT);
                if end.polled.is_none() {
                    // A level of this stack, whose records all came before.
                    end.panicked &= self.panic_passed();
                    self.close(replay, now, HowClosed::default(), None);
                }
                if replay.close_detached(&end, self.ticket.thread.as_ref()) {
                    *self.last_ended_mut() = (id, SpanName::of_cell(&end.cell));
                }
            }
            Cold::Panic => self.panic_at = Some(self.opened),
            Cold::Evidence {
                owner,
                evidence,
                cost,
            } => {
                let detached = self.detached();
                let mut since = 0;
                let (id, span, inside) = match &owner {
                    Owner::Innermost => match self.stack.last() {
                        Some(frame) => {
                            since = frame.start_ns;
                            (frame.id, frame.name.clone(), Inside::Stack)
                        }
                        None => (ROOT, SpanName::Root, Inside::Stack),
                    },
                    Owner::LastEnded => {
                        let (id, span) = self.last_ended_mut().clone();
                        // A level that has had no span is the last itself.
                        let own = self.stack.last().is_none_or(|frame| frame.id != id);
                        let inside = if own {
                            Inside::EndedOnStack
                        } else {
                            Inside::Stack
                        };
                        (id, span, inside)
                    }
                    Owner::Cell(cell) => {
                        let id = cell.id().unwrap_or(ROOT);
                        (id, SpanName::of_cell(cell), Inside::Elsewhere)
                    }
                };
                let name = span.clone();
                let path = &|| match inside {
                    Inside::Stack => self.path(None),
                    Inside::EndedOnStack => self.path(Some(&name)),
                    Inside::Elsewhere => name.resolve().into_owned(),
                };
                let chain = &|| match (&owner, &inside) {
                    (Owner::Cell(cell), _) => chain_of(Some(cell)),
                    (_, Inside::EndedOnStack) => self.chain(Some(id)),
                    _ => self.chain(None),
                };
                let at = Where {
                    id,
                    span,
                    path,
                    chain,
                    detached,
                    now,
                    since,
                };
                replay.evidence(at, evidence);
                let cost = replay.ns(ticks) - replay.ns(ticks.saturating_sub(cost));
                self.overhead(replay, cost);
            }
            Cold::Spent { ticks: spent } => {
                let cost = replay.ns(ticks) - replay.ns(ticks.saturating_sub(spent));
                self.overhead(replay, cost);
            }
            Cold::Waited { ticks: waited } => {
                let waited = replay.ns(ticks) - replay.ns(ticks.saturating_sub(waited));
                replay.waited += waited;
                self.overhead(replay, waited);
            }
        }
        Ok(())
    }

    /// Whether the panic that unwinds came from inside the innermost span, not from before it.
    fn panic_passed(&self) -> bool {
        let opened = self.stack.last().map_or(0, |frame| frame.ordinal);
        self.panic_at.is_none_or(|at| opened <= at)
    }

    /// The names of the open spans from the outermost in, then of the one that has ended.
    fn path(&self, ended: Option<&SpanName>) -> String {
        let open = self.stack.iter().map(|frame| &frame.name);
        let names: Vec<_> = open.chain(ended).map(SpanName::resolve).collect();
        names.join(" > ")
    }

    /// What tells the open spans from others, from the outermost in, then the one that has ended.
    fn chain(&self, ended: Option<u64>) -> Vec<u64> {
        let open = self.stack.iter().flat_map(Frame::chain);
        open.chain(ended).collect()
    }

    fn innermost_name(&self) -> SpanName {
        let frame = self.stack.last();
        frame.map_or(SpanName::Root, |frame| frame.name.clone())
    }

    fn detached(&self) -> bool {
        self.stack.last().is_some_and(|frame| frame.detached)
    }

    fn in_step(&self) -> bool {
        self.stack.last().is_some_and(|frame| frame.in_step)
    }

    fn last_ended_mut(&mut self) -> &mut (u64, SpanName) {
        match self.stack.last_mut() {
            Some(frame) => &mut frame.last_ended,
            None => &mut self.last_ended,
        }
    }

    fn overhead(&mut self, replay: &mut Replay, cost: u64) {
        match self.stack.last_mut() {
            Some(frame) => frame.overhead_ns += cost,
            None => replay.root_overhead += cost,
        }
    }

    fn open(
        &mut self,
        replay: &mut Replay,
        now: u64,
        source: &SpanSource,
        measured: Option<MeasuredStart>,
    ) {
        let parent = self.stack.last().map_or(ROOT, |frame| frame.id);
        if measured.is_none() && !replay.admits(source) {
            replay.inner += 1;
            let what = What::Unrecorded(replay.next_unrecorded());
            return self.enter(parent, self.innermost_name(), now, what);
        }
        let id = replay.next_id();
        let row = replay.start_line(
            id,
            Some(parent),
            now,
            source,
            measured,
            self.ticket.thread.as_ref(),
        );
        replay.budget.keep(SPAN_END);
        if measured.is_none() {
            replay.inner += 1;
        }
        let recursive = self.one_more_of(row);
        let what = What::Span {
            row,
            measured: measured.is_some(),
            recursive,
        };
        self.enter(id, SpanName::of(source), now, what);
        if let Some(frame) = self.stack.last_mut() {
            frame.in_step |= source.step().is_some();
            frame.detached |= source.site().is_some_and(|site| site.opens().detached);
        }
    }

    /// Counts an open span of this row; whether there was one already.
    fn one_more_of(&mut self, row: SiteId) -> bool {
        let number = row.number();
        if number >= self.around.len() {
            self.around.resize(number + 1, 0);
        }
        let around = self.around.get_mut(number);
        around.is_some_and(|around| {
            *around += 1;
            *around > 1
        })
    }

    /// What follows happens one level further in.
    fn enter(&mut self, id: u64, name: SpanName, now: u64, what: What) {
        self.opened += 1;
        self.stack.push(Frame {
            id,
            last_ended: (id, name.clone()),
            name,
            start_ns: now,
            children_ns: 0,
            overhead_ns: 0,
            children_overhead_ns: 0,
            in_step: self.in_step(),
            detached: self.detached(),
            ordinal: self.opened,
            what,
        });
    }

    /// A step may be around what happens in a detached span.
    fn in_step_of(&mut self, cell: &SpanCell) {
        let source = cell.source.as_ref();
        let is_step = source.is_some_and(|source| source.step().is_some());
        let site = source.and_then(SpanSource::site);
        if let Some(frame) = self.stack.last_mut() {
            frame.in_step |= is_step;
            frame.detached |= site.is_some_and(|site| site.opens().detached);
        }
    }

    /// What happened inside a detached span is told when that ends. What happened here inside a span of another stack
    /// was beside that stack's own time and is not told of it.
    fn close_elsewhere(&mut self, replay: &mut Replay, frame: &Frame) {
        let Some(span) = replay.open_detached.get_mut(&frame.id) else {
            return;
        };
        span.children_ns += frame.children_ns;
        span.overhead_ns += frame.overhead_ns;
        span.children_overhead_ns += frame.children_overhead_ns;
        let outermost = span.cell.parent.is_none();
        if outermost || !self.stack.is_empty() {
            self.overhead(replay, frame.overhead_ns);
        }
    }

    /// Ends the innermost level.
    fn close(&mut self, replay: &mut Replay, now: u64, flags: HowClosed, memory: Option<Taken>) {
        let Some(frame) = self.stack.pop() else {
            return;
        };
        let overhead = frame.overhead_ns;
        let (row, measured, recursive) = match frame.what {
            What::Span {
                row,
                measured,
                recursive,
            } => (row, measured, recursive),
            What::Elsewhere(_) => return self.close_elsewhere(replay, &frame),
            What::Unrecorded(_) => return self.overhead(replay, overhead),
        };
        replay.budget.release(SPAN_END);
        let duration = now.saturating_sub(frame.start_ns);
        let overhead = overhead.min(duration);
        EndLine {
            id: frame.id,
            duration_ns: duration,
            overhead_ns: (overhead > 0).then_some(overhead),
            cut: flags.cut,
            cancelled: flags.cancelled,
            panicked: flags.panicked,
            open_at_end: flags.open_at_end,
            memory,
            ..EndLine::default()
        }
        .write(&mut replay.lines);
        if let Some(around) = self.around.get_mut(row.number()) {
            *around = around.saturating_sub(1);
        }
        let closed = ClosedSpan {
            start_ns: frame.start_ns,
            duration_ns: duration,
            child_ns: frame.children_ns,
            overhead_ns: overhead,
            child_overhead_ns: frame.children_overhead_ns,
            measured,
            recursive,
            in_step: self.in_step(),
            how: flags,
        };
        replay.digest.closed(row, closed);
        if let Some(taken) = memory {
            replay.digest.span_memory(row, taken, measured);
        }
        *self.last_ended_mut() = (frame.id, frame.name);
        match self.stack.last_mut() {
            Some(parent) => {
                parent.children_ns += duration;
                parent.overhead_ns += overhead;
                parent.children_overhead_ns += overhead;
            }
            None => replay.root_overhead += overhead,
        }
    }

    /// The thread left with spans open: they end where it was heard of last.
    fn end_left(&mut self, replay: &mut Replay) {
        let now = replay.ns(self.latest);
        while !self.stack.is_empty() {
            let flags = HowClosed {
                cut: true,
                ..HowClosed::default()
            };
            self.close(replay, now, flags, None);
        }
    }

    /// The capture ends: so does what this thread has open.
    pub(super) fn end_open(&mut self, replay: &mut Replay, at: u64, write: Write<'_>) {
        let now = replay.ns(at);
        while !self.stack.is_empty() {
            let flags = HowClosed {
                open_at_end: true,
                ..HowClosed::default()
            };
            self.close(replay, now, flags, None);
            replay.make_room(write);
        }
    }
}
