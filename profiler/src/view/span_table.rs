//! The spans of a trace in little memory, whatever the order of their lines.

use crate::trace::span_index::SpanIndex;
use crate::trace::{SpanEndEvent, SpanEndExtra, SpanRecord, SpanStartEvent, TraceDocument};

/// A span's place in the table.
pub(crate) type Place = u32;

/// No span.
pub(crate) const NONE: Place = Place::MAX;

/// One span: 64 bytes.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    /// [`NONE`] of a root.
    pub(crate) parent: Place,
    /// What the reader of the trace keeps of its name: the number of a call site, for example.
    pub(crate) name: u32,
    pub(crate) thread: u32,
    pub(crate) flags: Flags,
    pub(crate) start_ns: u64,
    pub(crate) duration_ns: u64,
    pub(crate) overhead_ns: u64,
}

impl Row {
    fn end_extra(&mut self, extra: Option<&SpanEndExtra>) {
        let Some(extra) = extra else {
            return;
        };
        self.overhead_ns = extra.overhead_ns.unwrap_or(0);
        self.flags.set(Flags::POLLED, extra.polls.is_some());
        self.flags.set(Flags::CUT, extra.cut);
        self.flags.set(Flags::CANCELLED, extra.cancelled);
        self.flags.set(Flags::PANICKED, extra.panicked);
        self.flags.set(Flags::OPEN_AT_END, extra.open_at_end);
    }
}

/// What is true or not of a span.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Flags(u16);

impl Flags {
    pub(crate) const STARTED: Flags = Flags(1);
    pub(crate) const ENDED: Flags = Flags(2);
    pub(crate) const MEASURED: Flags = Flags(4);
    pub(crate) const STEP: Flags = Flags(8);
    /// It is a future's.
    pub(crate) const POLLED: Flags = Flags(16);
    pub(crate) const CUT: Flags = Flags(32);
    pub(crate) const CANCELLED: Flags = Flags(64);
    pub(crate) const PANICKED: Flags = Flags(128);
    pub(crate) const OPEN_AT_END: Flags = Flags(256);
    /// It is what one rank did, in a trace of several, and no call.
    pub(crate) const RANK: Flags = Flags(512);

    pub(crate) fn has(self, flag: Flags) -> bool {
        self.0 & flag.0 != 0
    }

    pub(crate) fn set(&mut self, flag: Flags, on: bool) {
        if on {
            self.0 |= flag.0;
        }
    }
}

/// The table.
#[derive(Debug, Default)]
pub(crate) struct SpanTable {
    rows: Vec<Row>,
    index: SpanIndex,
    /// The numbers that threads have in the trace; a span's is its place in here.
    threads: Vec<u64>,
}

impl SpanTable {
    /// The place of an id, known or not yet.
    fn place(&mut self, id: &str) -> Place {
        if let Some(place) = self.index.get(id) {
            return place as Place;
        }
        let place = self.rows.len();
        if !self.index.insert(id, place) {
            return NONE;
        }
        self.rows.push(Row {
            parent: NONE,
            name: 0,
            thread: 0,
            flags: Flags::default(),
            start_ns: 0,
            duration_ns: 0,
            overhead_ns: 0,
        });
        place as Place
    }

    /// The place of a span that has started.
    pub(crate) fn started(&self, id: &str) -> Option<Place> {
        let place = self.index.get(id)? as Place;
        self.row(place)
            .filter(|row| row.flags.has(Flags::STARTED))
            .map(|_| place)
    }

    pub(crate) fn row(&self, place: Place) -> Option<&Row> {
        self.rows.get(place as usize)
    }

    /// The spans of a document. `name` gives whatever the caller wants to find again.
    pub(crate) fn of<'t>(
        trace: &'t TraceDocument,
        mut name: impl FnMut(&'t SpanRecord) -> u32,
    ) -> SpanTable {
        let mut table = SpanTable::default();
        for span in &trace.spans {
            let parent = span.parent_id.as_deref().map_or(NONE, |id| table.place(id));
            let thread = span.start_extra.as_deref().and_then(|extra| extra.thread);
            let thread = table.thread(thread.unwrap_or(0));
            let name = name(span);
            let place = table.place(&span.id);
            if let Some(row) = table.rows.get_mut(place as usize) {
                (row.parent, row.name, row.thread) = (parent, name, thread);
                (row.start_ns, row.duration_ns) = (span.start_ns, span.duration_ns);
                row.flags.set(Flags::STARTED, true);
                row.flags.set(Flags::ENDED, span.closed);
                row.flags.set(Flags::MEASURED, span.measured);
                row.flags.set(Flags::STEP, span.step.is_some());
                row.end_extra(span.end_extra.as_deref());
            }
        }
        table.end_open(trace.terminal.timestamp_ns);
        table
    }

    /// A span begins. `name` is whatever the caller wants to find again.
    pub(crate) fn start(&mut self, event: &SpanStartEvent, name: u32) {
        let parent = event.parent_id.as_deref().map_or(NONE, |id| self.place(id));
        let number = event.extra.as_deref().and_then(|extra| extra.thread);
        let thread = self.thread(number.unwrap_or(0));
        let place = self.place(&event.id);
        if let Some(row) = self.rows.get_mut(place as usize) {
            row.parent = parent;
            row.name = name;
            row.thread = thread;
            row.start_ns = event.start_ns;
            row.flags.set(Flags::STARTED, true);
            row.flags.set(Flags::MEASURED, event.measured);
            row.flags.set(Flags::STEP, event.step.is_some());
        }
    }

    /// A span ends. An end without a start is no span.
    pub(crate) fn end(&mut self, event: &SpanEndEvent) {
        let Some(place) = self.started(&event.id) else {
            return;
        };
        let Some(row) = self.rows.get_mut(place as usize) else {
            return;
        };
        row.duration_ns = event.duration_ns;
        row.flags.set(Flags::ENDED, true);
        row.end_extra(event.extra.as_deref());
    }

    /// Says of a span that has started that it is the tree of a rank.
    pub(crate) fn is_rank(&mut self, id: &str) {
        if let Some(place) = self.started(id)
            && let Some(row) = self.rows.get_mut(place as usize)
        {
            row.flags.set(Flags::RANK, true);
        }
    }

    /// The last time at which a span starts or ends.
    pub(crate) fn latest_ns(&self) -> u64 {
        let ends = self
            .rows
            .iter()
            .map(|row| row.start_ns.saturating_add(row.duration_ns));
        ends.max().unwrap_or(0)
    }

    fn thread(&mut self, number: u64) -> u32 {
        // Nearly all spans are of few threads, and those come again and again.
        let known = self.threads.iter().position(|known| *known == number);
        let place = known.unwrap_or_else(|| {
            self.threads.push(number);
            self.threads.len() - 1
        });
        place as u32
    }

    /// How many threads there are.
    pub(crate) fn threads(&self) -> usize {
        self.threads.len()
    }

    /// What never ended lasts until `at`.
    pub(crate) fn end_open(&mut self, at: u64) {
        for row in &mut self.rows {
            if row.flags.has(Flags::STARTED) && !row.flags.has(Flags::ENDED) {
                row.duration_ns = at.saturating_sub(row.start_ns);
                row.flags.set(Flags::OPEN_AT_END, true);
            }
        }
    }

    /// Whether the child's time is part of the parent's own thread's, and so no time of the parent itself.
    pub(crate) fn is_inside(child: &Row, parent: &Row) -> bool {
        let polled = parent.flags.has(Flags::POLLED);
        !child.flags.has(Flags::POLLED) && (polled || child.thread == parent.thread)
    }

    /// Walks all trees, parents first, children in the order of their lines. What hangs below nothing (a parent that is
    /// missing) is a tree of its own; what loops is not walked.
    pub(crate) fn walk(&self, visitor: &mut impl Visitor) {
        let mut first_child = vec![NONE; self.rows.len()];
        let mut next = vec![NONE; self.rows.len()];
        let mut roots = Vec::new();
        // From the back, so that the lists come out in order.
        for (place, row) in self.rows.iter().enumerate().rev() {
            if !row.flags.has(Flags::STARTED) {
                continue;
            }
            let parent = self
                .row(row.parent)
                .filter(|row| row.flags.has(Flags::STARTED));
            match (parent, first_child.get_mut(row.parent as usize)) {
                (Some(_), Some(first)) => {
                    if let Some(slot) = next.get_mut(place) {
                        *slot = *first;
                    }
                    *first = place as Place;
                }
                _ => roots.push(place as Place),
            }
        }
        let at = |list: &[Place], place: Place| list.get(place as usize).copied().unwrap_or(NONE);
        let mut open: Vec<(Place, Place)> = Vec::new();
        for root in roots.into_iter().rev() {
            visitor.enter(self, root);
            open.push((root, at(&first_child, root)));
            while let Some((place, child)) = open.last_mut() {
                if *child == NONE {
                    visitor.leave(self, *place);
                    open.pop();
                    continue;
                }
                let entered = *child;
                *child = at(&next, entered);
                visitor.enter(self, entered);
                open.push((entered, at(&first_child, entered)));
            }
        }
    }
}

/// Who walks the trees.
pub(crate) trait Visitor {
    /// A span, before what is in it.
    fn enter(&mut self, table: &SpanTable, place: Place);
    /// The same span, after.
    fn leave(&mut self, table: &SpanTable, place: Place);
}
