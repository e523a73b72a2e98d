//! Turns the streams of a capture into the lines of a trace: each thread's stack is played again, spans get their
//! numbers, and what happened at one place is added up for the summary.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::budget::Budget;
use super::cold::{Cold, DetachedEnd, Evidence, MeasuredStart, Owner};
use super::detached::SpanCell;
use super::session::{End, Thread, Ticket};
use super::site::{CallSite, SpanSource};
use super::stream::{Word, clock};
use crate::phase::ExecutionStep;
use crate::trace::span_lines::{EndLine, StartLine, quoted};
use crate::trace::{
    GradientEvent, GradientState, RunOutcome, SpanKind, TensorStatsEvent, TerminalEvent,
    TraceEvent, TraceRunMeta,
};
use crate::view::summary::{
    self, ClosedSpan, Digest, Gradient, HowClosed, SiteId, SpanSite, Statistics, StepTag,
};

/// The root span's number.
const ROOT: u64 = 1;

/// The most bytes of a span's two lines without its own texts.
const LINE: usize = 1024;

/// Records read before the buffer is looked at again.
const STRIDE: usize = 1024;

/// What a capture may hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Whether spans besides the root and the measured one are recorded.
    pub(crate) records_spans: bool,
    /// The most bytes of the trace.
    pub(crate) budget: u64,
}

/// The lines of one capture, and what is known of it so far.
pub(super) struct Replay {
    origin: u64,
    records_spans: bool,
    budget: Budget,
    lines: Vec<u8>,
    last_id: u64,
    gradients: u64,
    sites: HashMap<usize, Site>,
    named_threads: HashSet<u64>,
    open_detached: BTreeMap<u64, OpenDetached>,
    digest: Digest,
    /// Spans and records besides the root and the measured span.
    inner: u64,
    late: u64,
    waited: u64,
    root_overhead: u64,
}

/// A detached span that is open, and what has happened in it on the stacks that ran it.
struct OpenDetached {
    cell: Arc<SpanCell>,
    children_ns: u64,
    overhead_ns: u64,
    children_overhead_ns: u64,
}

/// A call site's texts, escaped once.
struct Site {
    name: Box<[u8]>,
    file: Box<[u8]>,
    line: u32,
    /// Its row of the summary, where its spans all have the same name.
    row: Option<SiteId>,
    seen: bool,
}

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
    /// How many spans of each row are open.
    around: HashMap<SiteId, u32>,
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
    /// A span that has its lines elsewhere: a detached one of this stack, or another's inside which it runs.
    Elsewhere,
    /// A span that is not recorded: what happens in it is its parent's.
    Unrecorded,
}

/// A span's name, for the places where evidence is told of; cheap to hand on for the many spans that have none.
#[derive(Clone)]
enum SpanName {
    Root,
    Site(&'static CallSite),
    Own(Arc<str>),
}

impl SpanName {
    fn of(source: &SpanSource) -> Self {
        match source {
            SpanSource::Site(site) => Self::Site(site),
            SpanSource::Named(_, name) | SpanSource::Free { name, .. } => {
                Self::Own(Arc::from(&**name))
            }
        }
    }

    /// The span of this thread that a cell stands for has no source of its own: then its name is not known here.
    fn of_cell(cell: &SpanCell) -> Self {
        cell.source.as_ref().map_or(Self::Root, Self::of)
    }
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
            around: HashMap::new(),
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

    /// Reads a stretch of the stream; `None`: the stream is over.
    pub(super) fn read(&mut self, replay: &mut Replay, until: Option<u64>) -> Option<Progress> {
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
        let published = recorder.cursor.load(Ordering::Acquire);
        for _ in 0..STRIDE {
            let Some((ticks, word)) = reader.take(published) else {
                recorder
                    .consumed
                    .store(reader.position(), Ordering::Release);
                drop(consumer);
                // At the end of a capture its streams are given back all at once.
                if left && until.is_none() {
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
                self.close(replay, now, HowClosed::default());
            }
            Word::Link(_) => {}
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
            Cold::Close { cut, panicked } => {
                let flags = HowClosed {
                    cut,
                    panicked: panicked && self.panic_passed(),
                    ..HowClosed::default()
                };
                self.close(replay, now, flags);
            }
            Cold::Given { below, cell } => {
                let below = usize::try_from(below).unwrap_or(usize::MAX);
                let frame = self.stack.iter().rev().nth(below);
                cell.set_id(frame.map_or(ROOT, |frame| frame.id));
            }
            Cold::Enter { cell } => {
                let id = cell.as_ref().and_then(|cell| cell.id()).unwrap_or(ROOT);
                let name = cell.map_or(SpanName::Root, |cell| SpanName::of_cell(&cell));
                self.enter(id, name, now, What::Elsewhere);
            }
            Cold::OpenDetached { cell, on_stack } => {
                let id = replay.open_detached(&cell);
                if on_stack {
                    self.enter(id, SpanName::of_cell(&cell), now, What::Elsewhere);
                    self.in_step_of(&cell);
                }
            }
            Cold::CloseDetached(mut end) => {
                let id = end.cell.id().unwrap_or(ROOT);
                if end.polled.is_none() {
                    // A level of this stack, whose records all came before.
                    end.panicked &= self.panic_passed();
                    self.close(replay, now, HowClosed::default());
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
                match owner {
                    Owner::Innermost => match self.stack.last() {
                        Some(frame) => replay.evidence(frame.id, frame.name.clone(), evidence),
                        None => replay.evidence(ROOT, SpanName::Root, evidence),
                    },
                    Owner::LastEnded => {
                        let (id, name) = self.last_ended_mut().clone();
                        replay.evidence(id, name, evidence);
                    }
                    Owner::Cell(cell) => {
                        let id = cell.id().unwrap_or(ROOT);
                        replay.evidence(id, SpanName::of_cell(&cell), evidence);
                    }
                }
                let cost = replay.ns(ticks) - replay.ns(ticks.saturating_sub(cost));
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

    fn innermost_name(&self) -> SpanName {
        let frame = self.stack.last();
        frame.map_or(SpanName::Root, |frame| frame.name.clone())
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
            return self.enter(parent, self.innermost_name(), now, What::Unrecorded);
        }
        self.opened += 1;
        let id = replay.next_id();
        let row = replay.start_line(
            id,
            Some(parent),
            now,
            source,
            measured,
            self.ticket.thread.as_ref(),
        );
        replay.budget.opened();
        if measured.is_none() {
            replay.inner += 1;
        }
        let around = self.around.entry(row).or_default();
        let recursive = *around > 0;
        *around += 1;
        let name = SpanName::of(source);
        self.stack.push(Frame {
            id,
            last_ended: (id, name.clone()),
            name,
            start_ns: now,
            children_ns: 0,
            overhead_ns: 0,
            children_overhead_ns: 0,
            in_step: self.in_step() || source.step().is_some(),
            ordinal: self.opened,
            what: What::Span {
                row,
                measured: measured.is_some(),
                recursive,
            },
        });
    }

    /// What follows happens inside a span that has its lines elsewhere.
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
            ordinal: self.opened,
            what,
        });
    }

    /// A step may be around what happens in a detached span.
    fn in_step_of(&mut self, cell: &SpanCell) {
        let is_step = cell
            .source
            .as_ref()
            .is_some_and(|source| source.step().is_some());
        if let Some(frame) = self.stack.last_mut() {
            frame.in_step |= is_step;
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
    fn close(&mut self, replay: &mut Replay, now: u64, flags: HowClosed) {
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
            What::Elsewhere => return self.close_elsewhere(replay, &frame),
            What::Unrecorded => return self.overhead(replay, overhead),
        };
        replay.budget.closed();
        let duration = now.saturating_sub(frame.start_ns);
        EndLine {
            id: frame.id,
            duration_ns: duration,
            overhead_ns: (overhead > 0).then_some(overhead),
            cut: flags.cut,
            cancelled: flags.cancelled,
            panicked: flags.panicked,
            open_at_end: flags.open_at_end,
            ..EndLine::default()
        }
        .write(&mut replay.lines);
        if let Some(around) = self.around.get_mut(&row) {
            *around = around.saturating_sub(1);
        }
        let closed = ClosedSpan {
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
            self.close(replay, now, flags);
        }
    }

    /// The capture ends: so does what this thread has open.
    pub(super) fn end_open(&mut self, replay: &mut Replay, at: u64) {
        let now = replay.ns(at);
        while !self.stack.is_empty() {
            let flags = HowClosed {
                open_at_end: true,
                ..HowClosed::default()
            };
            self.close(replay, now, flags);
        }
    }
}

impl Replay {
    pub(super) fn new(origin: u64, meta: &TraceRunMeta, limits: Limits, digest: Digest) -> Self {
        let mut replay = Self {
            origin,
            records_spans: limits.records_spans,
            budget: Budget::new(limits.budget),
            lines: Vec::new(),
            last_id: ROOT,
            gradients: 0,
            sites: HashMap::new(),
            named_threads: HashSet::new(),
            open_detached: BTreeMap::new(),
            digest,
            inner: 0,
            late: 0,
            waited: 0,
            root_overhead: 0,
        };
        replay.line(&TraceEvent::meta(meta.clone()));
        StartLine {
            id: ROOT,
            parent: None,
            name: &quoted(&meta.entrypoint),
            start_ns: 0,
            kind: SpanKind::Function,
            measured: false,
            step: None,
            place: None,
            thread: None,
            thread_name: None,
            since_previous_ns: None,
        }
        .write(&mut replay.lines);
        replay
    }

    /// The lines that are not written yet.
    pub(super) fn lines(&self) -> &[u8] {
        &self.lines
    }

    /// They are written now.
    pub(super) fn clear_lines(&mut self) {
        self.budget.written(self.lines.len());
        self.lines.clear();
    }

    /// Whether a span of this source is recorded; counts it where it only finds no room.
    fn admits(&mut self, source: &SpanSource) -> bool {
        if !self.records_spans {
            return false;
        }
        let own_text = match source {
            SpanSource::Site(_) => 0,
            SpanSource::Named(_, name) | SpanSource::Free { name, .. } => 6 * name.len(),
        };
        let fits = self.budget.fits(self.lines.len(), LINE + own_text);
        if !fits {
            self.budget.drop(&source.name());
        }
        fits
    }

    pub(super) fn inner(&self) -> u64 {
        self.inner
    }

    pub(super) fn into_digest(self) -> Digest {
        self.digest
    }

    /// Each reading is converted by itself by one function that never falls, so what was in order stays so.
    fn ns(&self, ticks: u64) -> u64 {
        clock().delta_as_nanos(self.origin, ticks.max(self.origin))
    }

    fn admits_detached(&mut self, cell: &SpanCell) -> bool {
        let source = cell.source.as_ref();
        cell.measured.is_some() || source.is_none_or(|source| self.admits(source))
    }

    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    fn line(&mut self, event: &TraceEvent) {
        let before = self.lines.len();
        // Our events hold finite numbers and text only; a line that cannot be written is left out whole.
        match serde_json::to_writer(&mut self.lines, event) {
            Ok(()) => self.lines.push(b'\n'),
            Err(_) => self.lines.truncate(before),
        }
    }

    /// Writes a span's first line; gives its row of the summary.
    fn start_line(
        &mut self,
        id: u64,
        parent: Option<u64>,
        start_ns: u64,
        source: &SpanSource,
        measured: Option<MeasuredStart>,
        thread: Option<&Thread>,
    ) -> SiteId {
        let (key, fixed) = match source {
            SpanSource::Site(site) => (std::ptr::from_ref::<CallSite>(site).addr(), true),
            SpanSource::Named(site, _) => (std::ptr::from_ref::<CallSite>(site).addr(), false),
            SpanSource::Free { location, .. } => (std::ptr::from_ref(*location).addr(), false),
        };
        let (kind, step) = (source.kind(), source.step());
        let site = self.sites.entry(key).or_insert_with(|| {
            let (file, line) = source.place();
            let name = source.name();
            Site {
                name: quoted(&name).into(),
                file: quoted(file).into(),
                line,
                row: fixed.then(|| self.digest.site(row_of(&name, source, measured.is_some()))),
                seen: false,
            }
        });
        let (row, own_name) = match site.row {
            Some(row) => (row, None),
            None => {
                let name = source.name();
                let row = self.digest.site(row_of(&name, source, measured.is_some()));
                (row, Some(quoted(&name)))
            }
        };
        let thread_name = thread
            .filter(|thread| self.named_threads.insert(thread.number))
            .and_then(|thread| thread.name.as_deref())
            .map(quoted);
        let since_previous_ns = measured.and_then(|measured| measured.since_previous_ns);
        StartLine {
            id,
            parent,
            name: own_name.as_deref().unwrap_or(&site.name),
            start_ns,
            kind,
            measured: measured.is_some(),
            step,
            place: (!site.seen).then_some((&site.file, site.line)),
            thread: thread.map(|thread| thread.number),
            thread_name: thread_name.as_deref(),
            since_previous_ns,
        }
        .write(&mut self.lines);
        site.seen = true;
        row
    }

    /// Writes both lines of a detached span, whose parent is known only now. `false`: they had been written.
    fn close_detached(&mut self, end: &DetachedEnd, thread: Option<&Thread>) -> bool {
        let Some(id) = end.cell.id() else {
            return false;
        };
        // A span that is not recorded has its parent's number, and the parent stays open.
        let open = self.open_detached.get(&id);
        if !open.is_some_and(|open| Arc::ptr_eq(&open.cell, &end.cell)) {
            return false;
        }
        let Some(span) = self.open_detached.remove(&id) else {
            return false;
        };
        let parent = end.parent.as_ref().and_then(|parent| parent.id());
        self.budget.closed();
        let flags = HowClosed {
            cut: end.cut,
            cancelled: end.cancelled,
            panicked: end.panicked,
            open_at_end: false,
        };
        let polled = end.polled.map(|(busy, polls)| (self.span_of(busy), polls));
        self.detached_lines(id, &span, parent, end.end, flags, polled, thread);
        true
    }

    /// Numbers a detached span; one that is not recorded has its parent's number.
    fn open_detached(&mut self, cell: &Arc<SpanCell>) -> u64 {
        let id = if !self.admits_detached(cell) {
            let parent = cell.parent.as_ref().and_then(|parent| parent.id());
            parent.unwrap_or(ROOT)
        } else {
            let id = self.next_id();
            let span = OpenDetached {
                cell: Arc::clone(cell),
                children_ns: 0,
                overhead_ns: 0,
                children_overhead_ns: 0,
            };
            self.open_detached.insert(id, span);
            self.budget.opened();
            id
        };
        cell.set_id(id);
        self.inner += u64::from(cell.measured.is_none());
        id
    }

    /// A length of ticks in nanoseconds.
    fn span_of(&self, ticks: u64) -> u64 {
        clock().delta_as_nanos(self.origin, self.origin.saturating_add(ticks))
    }

    #[allow(
        clippy::too_many_arguments,
        reason = "the parts of two lines, used once"
    )]
    fn detached_lines(
        &mut self,
        id: u64,
        span: &OpenDetached,
        parent: Option<u64>,
        end: u64,
        flags: HowClosed,
        polled: Option<(u64, u64)>,
        thread: Option<&Thread>,
    ) {
        let cell = &*span.cell;
        let Some(source) = &cell.source else {
            return;
        };
        let start_ns = self.ns(cell.start);
        let duration_ns = self.ns(end).saturating_sub(start_ns);
        let parent = Some(parent.unwrap_or(ROOT));
        let row = self.start_line(id, parent, start_ns, source, cell.measured, thread);
        EndLine {
            id,
            duration_ns,
            busy_ns: polled.map(|(busy, _)| busy.min(duration_ns)),
            polls: polled.map(|(_, polls)| polls),
            overhead_ns: (span.overhead_ns > 0).then_some(span.overhead_ns),
            cut: flags.cut,
            cancelled: flags.cancelled,
            panicked: flags.panicked,
            open_at_end: flags.open_at_end,
        }
        .write(&mut self.lines);
        let closed = ClosedSpan {
            duration_ns,
            child_ns: span.children_ns,
            overhead_ns: span.overhead_ns,
            child_overhead_ns: span.children_overhead_ns,
            measured: cell.measured.is_some(),
            how: flags,
            ..ClosedSpan::default()
        };
        self.digest.closed(row, closed);
    }

    fn evidence(&mut self, id: u64, span: SpanName, evidence: Evidence) {
        self.inner += 1;
        if !self.budget.fits(self.lines.len(), evidence.most_bytes()) {
            return self.budget.drop(evidence.label());
        }
        let span_id = format!("s{id}");
        match evidence {
            Evidence::Statistics { mut event, alarm } => {
                event.span_id = span_id;
                let span = match &span {
                    SpanName::Root => "",
                    SpanName::Site(site) => &site.name.resolve(),
                    SpanName::Own(name) => name,
                };
                self.digest
                    .statistics(&event.label, span, &statistics_of(&event, alarm));
                self.line(&TraceEvent::TensorStats(*event));
            }
            Evidence::Scalar { mut event, value } => {
                event.span_id = span_id;
                self.digest.scalar(&event.label, value);
                self.line(&TraceEvent::TensorStats(*event));
            }
            Evidence::Tensor(mut event) => {
                event.span_id = span_id;
                self.line(&TraceEvent::Tensor(*event));
            }
            Evidence::Gradient(mut event) => {
                self.gradients += 1;
                event.event_id = format!("gradient-{}", self.gradients);
                self.digest.gradient(&gradient_of(&event));
                self.line(&TraceEvent::Gradient(*event));
            }
            Evidence::Note(problem) => self.digest.note(problem),
        }
    }

    /// Writes what ends a trace: the spans of other threads and futures, the root, the terminal line.
    pub(super) fn end(&mut self, at: u64, end: &End) {
        while let Some((id, span)) = self.open_detached.pop_first() {
            let cell = &span.cell;
            let parent = cell
                .parent
                .as_ref()
                .and_then(|parent| parent.nearest_open());
            let parent = parent.and_then(|parent| parent.id());
            let flags = HowClosed {
                open_at_end: true,
                ..HowClosed::default()
            };
            self.detached_lines(id, &span, parent, at.max(cell.start), flags, None, None);
        }
        let now = self.ns(at);
        EndLine {
            id: ROOT,
            duration_ns: now,
            overhead_ns: (self.root_overhead > 0).then_some(self.root_overhead),
            ..EndLine::default()
        }
        .write(&mut self.lines);
        let (outcome, reason) = match end {
            End::Complete => (RunOutcome::Complete, None),
            End::Failed(reason) => (RunOutcome::Failed, Some(reason.clone())),
        };
        let mut terminal = TerminalEvent {
            outcome,
            timestamp_ns: now,
            reason,
            extra: None,
        };
        let extra = terminal.extra.get_or_insert_default();
        extra.late = (self.late > 0).then_some(self.late);
        let dropped = self.budget.dropped();
        for (site, count) in dropped {
            self.digest.dropped(site, *count);
        }
        extra.dropped = (!dropped.is_empty()).then(|| dropped.clone());
        extra.waited_ns = (self.waited > 0).then_some(self.waited);
        self.digest.late(self.late);
        self.digest.waited(self.waited);
        if let Some(reason) = &terminal.reason {
            self.digest.failed(reason.clone());
        }
        self.line(&TraceEvent::Terminal(terminal));
    }
}

/// A span's row of the summary.
fn row_of<'a>(name: &'a str, source: &SpanSource, measured: bool) -> SpanSite<'a> {
    let (file, line) = source.place();
    SpanSite {
        name,
        file: Some(file),
        line: Some(line),
        step: source.step().map(|step| match step {
            ExecutionStep::Forward => StepTag::Forward,
            ExecutionStep::Backward => StepTag::Backward,
            ExecutionStep::Optimizer => StepTag::Optimizer,
        }),
        measured,
    }
}

fn gradient_of(event: &GradientEvent) -> Gradient<'_> {
    Gradient {
        root: &event.root,
        key: &event.key,
        state: match event.state {
            GradientState::Present => summary::GradientState::Present,
            GradientState::Missing => summary::GradientState::Missing,
            GradientState::Zero => summary::GradientState::Zero,
            GradientState::NonFinite => summary::GradientState::NonFinite,
        },
        norm: event.norm,
        reason: event
            .extra
            .as_deref()
            .and_then(|extra| extra.reason.as_deref()),
    }
}

/// A record's figures as the summary takes them.
fn statistics_of(event: &TensorStatsEvent, alarm: Option<bool>) -> Statistics<'_> {
    let extra = event.extra.as_deref();
    Statistics {
        shape: &event.shape,
        dtype: &event.dtype,
        elements: event.elements,
        non_finite: event.non_finite,
        rms: event.rms,
        abs_max: event.abs_max,
        mean: event.mean,
        min: extra.and_then(|extra| extra.min),
        max: extra.and_then(|extra| extra.max),
        zeros: extra.and_then(|extra| extra.zeros),
        nan: extra.and_then(|extra| extra.nan),
        pos_inf: extra.and_then(|extra| extra.pos_inf),
        neg_inf: extra.and_then(|extra| extra.neg_inf),
        first_non_finite: extra.and_then(|extra| extra.first_non_finite.as_deref()),
        alarm,
    }
}
