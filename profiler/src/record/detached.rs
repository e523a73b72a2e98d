//! Spans that other threads and futures refer to: a shared cell that says whether the span is still open.
//!
//! A child elsewhere may outlive its parent. Which span is its parent is therefore decided when the child ends, under
//! the lock that the parent needs to end: either the child's end is read before the parent's, or the parent is closed
//! and the next ancestor is asked. A plain flag without the lock can be read just before the parent ends.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::cold::MeasuredStart;
use super::site::SpanSource;
use super::stream::clock;

/// A span that others refer to.
pub(crate) struct SpanCell {
    /// `None`: the root.
    pub(crate) parent: Option<Arc<SpanCell>>,
    /// `None` where the span's start is an ordinary record of its thread's stream.
    pub(crate) source: Option<SpanSource>,
    /// Set where the span is the measured one.
    pub(crate) measured: Option<MeasuredStart>,
    /// The start of a detached span.
    pub(crate) start: u64,
    /// The number in the trace, once the writer has given one; 0 before.
    id: AtomicU64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    closed: bool,
    /// The nearest ancestor that was open when a detached span ended, the way on for those who look for theirs: tasks
    /// that each begin the next one and end make chains of any length. The inner `None`: the root.
    onward: Option<Option<Arc<SpanCell>>>,
    /// The latest end of a child on another thread: this span must not end before it.
    latest_child: u64,
    ordinals: Ordinals,
}

/// How often each site has been called directly under a span, for `{#}`.
#[derive(Default)]
pub(super) struct Ordinals(Vec<(usize, u64)>);

impl Ordinals {
    /// How often this site has been called, this call not counted.
    pub(super) fn next(&mut self, site: usize) -> u64 {
        if let Some((_, last)) = self.0.iter_mut().find(|(known, _)| *known == site) {
            *last += 1;
            return *last;
        }
        self.0.push((site, 0));
        0
    }
}

impl SpanCell {
    /// A cell for a span that is open on this thread's stack, which has counted so far.
    pub(super) fn of_open(parent: Option<Arc<SpanCell>>, ordinals: Ordinals) -> Arc<Self> {
        Arc::new(Self {
            parent,
            source: None,
            measured: None,
            start: 0,
            id: AtomicU64::new(0),
            state: Mutex::new(State {
                ordinals,
                ..State::default()
            }),
        })
    }

    /// A detached span that begins now, not before its parent does.
    pub(crate) fn begin(
        parent: Option<Arc<SpanCell>>,
        source: SpanSource,
        measured: Option<MeasuredStart>,
    ) -> Arc<Self> {
        let floor = parent.as_ref().map_or(0, |parent| parent.start);
        Arc::new(Self {
            parent,
            source: Some(source),
            measured,
            start: clock().raw().max(floor),
            id: AtomicU64::new(0),
            state: Mutex::default(),
        })
    }

    pub(crate) fn id(&self) -> Option<u64> {
        match self.id.load(Ordering::Relaxed) {
            0 => None,
            id => Some(id),
        }
    }

    /// Only the writer numbers spans.
    pub(crate) fn set_id(&self, id: u64) {
        self.id.store(id, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends a span of this thread's stack that has given out handles, at `now` or where a child ended later; gives
    /// the end.
    pub(crate) fn close_in_place(&self, now: u64) -> u64 {
        let mut state = self.lock();
        state.closed = true;
        now.max(clock().raw()).max(state.latest_child)
    }

    /// Ends a detached span, not before `floor`: its end, and the nearest ancestor that is still open (`None`: the
    /// root). `None` if it had ended before.
    pub(crate) fn close(&self, floor: u64) -> Option<(u64, Option<Arc<SpanCell>>)> {
        let mut own = self.lock();
        if own.closed {
            return None;
        }
        own.closed = true;
        let floor = floor.max(own.latest_child).max(self.start);
        // Locks are taken from child to parent only, so two threads cannot wait for each other.
        let mut ancestor = self.parent.clone();
        while let Some(candidate) = ancestor {
            let mut state = candidate.lock();
            if !state.closed {
                let end = clock().raw().max(floor);
                state.latest_child = state.latest_child.max(end);
                drop(state);
                own.onward = Some(Some(Arc::clone(&candidate)));
                return Some((end, Some(candidate)));
            }
            ancestor = candidate.onward(&state);
        }
        own.onward = Some(None);
        Some((clock().raw().max(floor), None))
    }

    /// Where to go on from a span that has ended.
    fn onward(&self, state: &State) -> Option<Arc<SpanCell>> {
        let onward = state.onward.as_ref().unwrap_or(&self.parent);
        onward.clone()
    }

    /// How often this site has been called directly under the span, on whatever thread, this call not counted.
    pub(super) fn ordinal(&self, site: usize) -> u64 {
        self.lock().ordinals.next(site)
    }

    /// The span does not end before this reading, taken on whatever thread.
    pub(crate) fn at_least(&self, reading: u64) {
        let mut state = self.lock();
        state.latest_child = state.latest_child.max(reading);
    }

    /// The nearest of this span and its ancestors that is still open; `None`: the root.
    pub(crate) fn nearest_open(self: &Arc<Self>) -> Option<Arc<SpanCell>> {
        let mut candidate = Some(Arc::clone(self));
        while let Some(cell) = candidate {
            let state = cell.lock();
            if !state.closed {
                drop(state);
                return Some(cell);
            }
            candidate = cell.onward(&state);
        }
        None
    }
}

impl SpanCell {
    fn take_ancestors(&mut self) -> impl Iterator<Item = Arc<SpanCell>> + use<> {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let onward = state.onward.take().flatten();
        self.parent.take().into_iter().chain(onward)
    }
}

impl Drop for SpanCell {
    /// A chain can be as long as the stack was deep: it is taken apart here, one by one, not by recursion.
    fn drop(&mut self) {
        let mut held: Vec<Arc<SpanCell>> = self.take_ancestors().collect();
        while let Some(next) = held.pop() {
            if let Some(mut cell) = Arc::into_inner(next) {
                held.extend(cell.take_ancestors());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::site::{CallSite, Name};
    use super::*;

    /// Each begins the next and ends, as tasks may: looking for an open one must not pass all of them each time, nor must
    /// taking them down go as deep.
    #[test]
    fn a_long_chain_of_spans_that_have_ended() {
        static SITE: CallSite = CallSite(Name::Text("task"), file!(), line!(), 0);
        const TASKS: usize = if cfg!(miri) { 200 } else { 200_000 };

        let root = SpanCell::begin(None, SpanSource::Site(&SITE), None);
        let mut last = Arc::clone(&root);
        for _ in 0..TASKS {
            let next = SpanCell::begin(Some(Arc::clone(&last)), SpanSource::Site(&SITE), None);
            if !Arc::ptr_eq(&last, &root) {
                let (_, parent) = last.close(0).expect("it was open");
                assert!(parent.is_some_and(|parent| Arc::ptr_eq(&parent, &root)));
            }
            last = next;
        }
        let open = last.nearest_open().expect("itself");
        assert!(Arc::ptr_eq(&open, &last));
        last.close(0).expect("it was open");
        let open = last.nearest_open().expect("the first");
        assert!(Arc::ptr_eq(&open, &root));
        root.close(0).expect("it was open");
        assert!(last.nearest_open().is_none());
    }
}
