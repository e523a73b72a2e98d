//! Which spans can be drawn on one line.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use crate::trace::TraceDocument;
use crate::trace::ancestry::depths;
use crate::trace::span_index::SpanIndex;

/// A track: a thread, or where spans of a thread overlap, one of several of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Track {
    /// The thread's number in the trace; none for the one that opened the session.
    pub thread: Option<u64>,
    /// The how-manieth track of its thread, from 0.
    pub ordinal: usize,
}

/// What a slice is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// The span of this place in the document.
    Span(usize),
    /// The operation of this place in the document.
    Op(usize),
}

/// A stretch of time on a track.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slice {
    /// What it is.
    pub what: What,
    /// In nanoseconds from the opening of the session.
    pub start_ns: u64,
    /// In the same. What never ended lasts until the trace does.
    pub end_ns: u64,
    /// The place of its track in [`Tracks::tracks`].
    pub track: usize,
    /// The place in [`Tracks::slices`] of the span that it ran in.
    pub parent: Option<usize>,
}

/// The slices of a trace, each on a track where it lies within its parent or stands alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tracks {
    /// The tracks, in the order in which they were needed.
    pub tracks: Vec<Track>,
    /// The slices in the order of time; those that start together from the outermost.
    pub slices: Vec<Slice>,
}

/// A slice before its place is known.
struct Candidate {
    what: What,
    start_ns: u64,
    end_ns: u64,
    depth: u32,
    thread: Option<u64>,
    /// Place of the parent in the document's spans.
    parent: Option<usize>,
}

impl Tracks {
    /// Lays out the spans of a trace, and the operations recorded in them.
    pub fn of(trace: &TraceDocument) -> Tracks {
        let mut candidates = candidates(trace);
        candidates.sort_by_key(|slice| (slice.start_ns, Reverse(slice.end_ns), slice.depth));
        let mut slice_of_span = vec![None; trace.spans.len()];
        let mut layout = Layout::default();
        for candidate in candidates {
            let parent = candidate
                .parent
                .and_then(|span| slice_of_span.get(span).copied().flatten());
            let place = layout.place(candidate, parent);
            if let Some(Slice {
                what: What::Span(span),
                ..
            }) = layout.done.slices.get(place)
                && let Some(slot) = slice_of_span.get_mut(*span)
            {
                *slot = Some(place);
            }
        }
        layout.done
    }

    /// The slices of each track, in order.
    pub fn by_track(&self) -> Vec<Vec<usize>> {
        let mut all = vec![Vec::new(); self.tracks.len()];
        for (place, slice) in self.slices.iter().enumerate() {
            if let Some(of_track) = all.get_mut(slice.track) {
                of_track.push(place);
            }
        }
        all
    }
}

fn candidates(trace: &TraceDocument) -> Vec<Candidate> {
    let index = SpanIndex::of(&trace.spans);
    let parents: Vec<Option<usize>> = trace
        .spans
        .iter()
        .map(|span| span.parent_id.as_deref().and_then(|id| index.get(id)))
        .collect();
    let depths = depths(parents.len(), |place| parents.get(place).copied().flatten());
    let at_end = trace.terminal.timestamp_ns;
    let mut all: Vec<Candidate> = Vec::with_capacity(trace.spans.len() + trace.ops.len());
    for (place, span) in trace.spans.iter().enumerate() {
        all.push(Candidate {
            what: What::Span(place),
            start_ns: span.start_ns,
            end_ns: if span.closed {
                span.end_ns()
            } else {
                at_end.max(span.start_ns)
            },
            depth: depths.get(place).copied().unwrap_or(0),
            thread: span.start_extra.as_deref().and_then(|extra| extra.thread),
            parent: parents.get(place).copied().flatten(),
        });
    }
    for (place, op) in trace.ops.iter().enumerate() {
        let span = index.get(&op.span_id);
        let thread = span.and_then(|span| trace.spans.get(span));
        let thread = thread.and_then(|span| span.start_extra.as_deref());
        all.push(Candidate {
            what: What::Op(place),
            start_ns: op.timestamp_ns,
            end_ns: op.timestamp_ns.saturating_add(op.duration_ns),
            depth: span
                .and_then(|span| depths.get(span))
                .map_or(0, |depth| depth + 1),
            thread: thread.and_then(|extra| extra.thread),
            parent: span,
        });
    }
    all
}

/// The tracks as they fill.
#[derive(Default)]
struct Layout {
    done: Tracks,
    /// What is open on each track: place and end of the slice.
    open: Vec<Vec<(usize, u64)>>,
    /// By thread: when each track's outermost slice ends. A track that got another one since is in it twice.
    ends: HashMap<Option<u64>, BinaryHeap<Reverse<(u64, usize)>>>,
    made: HashMap<Option<u64>, usize>,
}

impl Layout {
    fn place(&mut self, slice: Candidate, parent: Option<usize>) -> usize {
        let place = self.done.slices.len();
        let track = self
            .below_parent(&slice, parent)
            .or_else(|| self.empty(slice.thread, slice.start_ns))
            .unwrap_or_else(|| self.new_track(slice.thread));
        if let Some(open) = self.open.get_mut(track) {
            if open.is_empty() {
                let ends = self.ends.entry(slice.thread).or_default();
                ends.push(Reverse((slice.end_ns, track)));
            }
            open.push((place, slice.end_ns));
        }
        self.done.slices.push(Slice {
            what: slice.what,
            start_ns: slice.start_ns,
            end_ns: slice.end_ns,
            track,
            parent,
        });
        place
    }

    /// The parent's track, where the slice fits there: directly in the parent, or in an operation of it, which has no
    /// children of its own.
    fn below_parent(&mut self, slice: &Candidate, parent: Option<usize>) -> Option<usize> {
        let parent = parent?;
        let track = self.done.slices.get(parent)?.track;
        if self.done.tracks.get(track)?.thread != slice.thread {
            return None;
        }
        self.end_before(track, slice.start_ns);
        let Some((top, end)) = self.open.get(track)?.last().copied() else {
            return Some(track);
        };
        let inside = self.done.slices.get(top)?;
        let fits =
            top == parent || (matches!(inside.what, What::Op(_)) && inside.parent == Some(parent));
        (fits && slice.end_ns <= end).then_some(track)
    }

    fn end_before(&mut self, track: usize, start_ns: u64) {
        if let Some(open) = self.open.get_mut(track) {
            while open.last().is_some_and(|(_, end)| *end <= start_ns) {
                open.pop();
            }
        }
    }

    fn empty(&mut self, thread: Option<u64>, start_ns: u64) -> Option<usize> {
        while let Some(Reverse((end, track))) = self.ends.get(&thread)?.peek().copied() {
            if end > start_ns {
                return None;
            }
            self.ends.get_mut(&thread)?.pop();
            self.end_before(track, start_ns);
            if self.open.get(track)?.is_empty() {
                return Some(track);
            }
        }
        None
    }

    fn new_track(&mut self, thread: Option<u64>) -> usize {
        let ordinal = self.made.entry(thread).or_default();
        self.done.tracks.push(Track {
            thread,
            ordinal: *ordinal,
        });
        *ordinal += 1;
        self.open.push(Vec::new());
        self.open.len() - 1
    }
}
