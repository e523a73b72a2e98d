//! Spans of other threads and futures: their lines are written when they end, since only then is their parent known.

use std::sync::Arc;

use super::{BATCH, ROOT, Replay, both_lines};
use crate::allocator::Taken;
use crate::record::cold::DetachedEnd;
use crate::record::detached::SpanCell;
use crate::record::session::Thread;
use crate::trace::span_lines::{EndLine, StartLine, quoted};
use crate::view::summary::{ClosedSpan, HowClosed};

/// A detached span that is open, and what has happened in it on the stacks that ran it.
pub(in crate::record) struct OpenDetached {
    pub(in crate::record) cell: Arc<SpanCell>,
    pub(in crate::record) children_ns: u64,
    pub(in crate::record) overhead_ns: u64,
    pub(in crate::record) children_overhead_ns: u64,
    /// Bytes kept for its two lines.
    kept: usize,
}

impl Replay {
    fn admits_detached(&mut self, cell: &SpanCell) -> bool {
        let source = cell.source.as_ref();
        cell.measured.is_some() || source.is_none_or(|source| self.admits(source))
    }

    /// Numbers a detached span; one that is not recorded has its parent's number.
    pub(in crate::record) fn open_detached(&mut self, cell: &Arc<SpanCell>) -> u64 {
        let id = if !self.admits_detached(cell) {
            // Where spans are recorded its parent may end before it: only the root is sure to hold what happens in it.
            let parent = cell.parent.as_ref().and_then(|parent| parent.id());
            parent.filter(|_| !self.records_spans).unwrap_or(ROOT)
        } else {
            let id = self.next_id();
            let span = OpenDetached {
                cell: Arc::clone(cell),
                children_ns: 0,
                overhead_ns: 0,
                children_overhead_ns: 0,
                kept: cell.source.as_ref().map_or(0, both_lines),
            };
            self.budget.keep(span.kept);
            self.open_detached.insert(id, span);
            id
        };
        cell.set_id(id);
        self.inner += u64::from(cell.measured.is_none());
        id
    }

    /// The starts of the detached spans that have been opened since this was asked last, and are open: none of them,
    /// or about as many as a batch holds. As parent they have the one they began in: which it is in the end is known
    /// when they end.
    pub(in crate::record) fn newly_open(&mut self) -> Vec<u8> {
        let mut lines = Vec::new();
        let mut listed = self.last_id;
        for (id, span) in self.open_detached.range(self.listed + 1..) {
            if lines.len() >= BATCH {
                listed = id - 1;
                break;
            }
            let Some(source) = &span.cell.source else {
                continue;
            };
            let ancestors =
                std::iter::successors(span.cell.parent.as_ref(), |cell| cell.parent.as_ref());
            let parent = ancestors.into_iter().find_map(|cell| cell.id());
            let (file, line) = source.place();
            StartLine {
                id: *id,
                parent: Some(parent.unwrap_or(ROOT)),
                name: &quoted(&source.name()),
                start_ns: self.ns(span.cell.start),
                kind: source.kind(),
                measured: span.cell.measured.is_some(),
                step: source.step(),
                place: Some((&quoted(file), line)),
                thread: None,
                thread_name: None,
                since_previous_ns: span.cell.measured.and_then(|start| start.since_previous_ns),
            }
            .write(&mut lines);
        }
        self.listed = listed;
        lines
    }

    /// Writes both lines of a detached span, whose parent is known only now. `false`: they had been written.
    pub(in crate::record) fn close_detached(
        &mut self,
        end: &DetachedEnd,
        thread: Option<&Thread>,
    ) -> bool {
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
        let flags = HowClosed {
            cut: end.cut,
            cancelled: end.cancelled,
            panicked: end.panicked,
            open_at_end: false,
        };
        let polled = end.polled.map(|(busy, polls)| (self.span_of(busy), polls));
        self.detached_lines(
            id, &span, parent, end.end, flags, polled, end.memory, thread,
        );
        true
    }

    #[allow(
        clippy::too_many_arguments,
        reason = "the parts of two lines, used once"
    )]
    pub(in crate::record) fn detached_lines(
        &mut self,
        id: u64,
        span: &OpenDetached,
        parent: Option<u64>,
        end: u64,
        flags: HowClosed,
        polled: Option<(u64, u64)>,
        memory: Option<Taken>,
        thread: Option<&Thread>,
    ) {
        self.budget.release(span.kept);
        let cell = &*span.cell;
        let Some(source) = &cell.source else {
            return;
        };
        let start_ns = self.ns(cell.start);
        let duration_ns = self.ns(end).saturating_sub(start_ns);
        // Several threads may have worked inside the span at once, each with an overhead of its own.
        let overhead_ns = span.overhead_ns.min(duration_ns);
        let parent = Some(parent.unwrap_or(ROOT));
        let row = self.start_line(id, parent, start_ns, source, cell.measured, thread);
        EndLine {
            id,
            duration_ns,
            busy_ns: polled.map(|(busy, _)| busy.min(duration_ns)),
            polls: polled.map(|(_, polls)| polls),
            overhead_ns: (overhead_ns > 0).then_some(overhead_ns),
            cut: flags.cut,
            cancelled: flags.cancelled,
            panicked: flags.panicked,
            open_at_end: flags.open_at_end,
            memory,
        }
        .write(&mut self.lines);
        let closed = ClosedSpan {
            start_ns,
            duration_ns,
            child_ns: span.children_ns,
            overhead_ns,
            child_overhead_ns: span.children_overhead_ns,
            measured: cell.measured.is_some(),
            how: flags,
            ..ClosedSpan::default()
        };
        self.digest.closed(row, closed);
        if let Some(taken) = memory {
            self.digest.span_memory(row, taken, cell.measured.is_some());
        }
    }
}
