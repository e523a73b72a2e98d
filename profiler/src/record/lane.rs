//! The cold side of a recorder: full chunks, odd closes, handles, frames of other threads, sessions that have ended.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::panicking;
use std::time::Instant;

use super::cold::{Cold, DetachedEnd, Evidence, MeasuredStart, Owner};
use super::detached::{Ordinals, SpanCell};
use super::recorder::{self, Recorder, token};
use super::session::{Room, STUCK, Session, Ticket};
use super::site::SpanSource;
use super::stream::{self, Consumer, Producer, Record, clock};
use super::sync::Slot;
use crate::allocator::{self as memory, Taken};
use crate::instrument::{Shared as ByHand, SpanId};

/// What a recorder's thread keeps besides the hot fields.
pub(crate) struct Lane {
    producer: Producer,
    sink: Sink,
    /// The levels that are not plain, by depth.
    marks: Vec<Mark>,
    /// Where the open spans began in the thread's memory, by depth; empty where memory is not counted.
    memory: Vec<Option<memory::Mark>>,
    serial: u64,
    /// The recorder that was current before this one.
    pub(super) previous: Option<&'static Recorder>,
}

/// Where records go.
pub(super) enum Sink {
    /// Nowhere: the recorder is idle.
    None,
    /// The stream that the writer reads.
    Stream(Arc<Session>, Arc<Ticket>),
    /// Nowhere: the session has ended while this thread still took part.
    Ended(Arc<Session>, Arc<Ticket>),
    /// Straight into a session opened by hand.
    ByHand(HandSink),
}

/// A session by hand as one thread records into it.
pub(super) struct HandSink {
    pub(super) session: Arc<ByHand>,
    /// What the thread's first spans are children of; `None`: of what the thread has open by hand.
    pub(super) parent: Option<SpanId>,
    /// The ids of the open spans, by depth.
    pub(super) open: Vec<SpanId>,
}

/// A level of the stack that needs the cold side when it closes.
struct Mark {
    /// The token its guard holds.
    real: u64,
    /// The token that stands in the recorder while this level is the innermost.
    shifted: u64,
    role: Role,
    cell: Option<Arc<SpanCell>>,
    /// Counted here while the level has no cell, which other threads and later polls count in too.
    ordinals: Ordinals,
    /// The number in this level's own name.
    own_ordinal: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// A span of this stack.
    Span,
    /// A span whose parent may end before it.
    Detached,
    /// Not a span: what follows happens inside the cell's span. `foreign`: that span can end at any time.
    Frame { foreign: bool },
}

impl Lane {
    pub(super) fn new() -> Self {
        Self {
            producer: Producer::new(),
            sink: Sink::None,
            marks: Vec::new(),
            memory: Vec::new(),
            serial: 0,
            previous: None,
        }
    }

    pub(super) fn session(&self) -> Option<&Arc<Session>> {
        match &self.sink {
            Sink::Stream(session, _) => Some(session),
            _ => None,
        }
    }

    /// The session has ended: what follows is dropped.
    fn retire(&mut self) {
        self.sink = match std::mem::replace(&mut self.sink, Sink::None) {
            Sink::Stream(session, ticket) => Sink::Ended(session, ticket),
            other => other,
        };
    }

    /// The mark of this depth, if it has one.
    fn mark_at(&self, depth: u64) -> Option<usize> {
        self.marks
            .binary_search_by_key(&depth, |mark| token::depth(mark.real))
            .ok()
    }

    /// The token that the guard of this depth holds, while `current` stands in the recorder.
    fn real_at(&self, current: u64, depth: u64) -> u64 {
        match self.mark_at(depth) {
            Some(index) => self.marks[index].real,
            None => self.standing_at(current, depth),
        }
    }

    /// The token that stands in the recorder while this depth is the innermost.
    fn standing_at(&self, current: u64, depth: u64) -> u64 {
        // Tokens count up by one from the nearest mark below, which changed the serial.
        let below = self
            .marks
            .iter()
            .rev()
            .find(|mark| token::depth(mark.real) <= depth);
        match below {
            Some(mark) => mark.shifted + (depth - token::depth(mark.real)),
            None => token::first(token::epoch(current)) + depth,
        }
    }

    /// The mark of a level, made if it had none. A new mark changes the serial, which is right only while every level
    /// above has a mark of its own; the caller stores the standing token again.
    fn ensure_mark(&mut self, current: u64, depth: u64) -> usize {
        if let Some(index) = self.mark_at(depth) {
            return index;
        }
        let real = self.standing_at(current, depth);
        let index = self
            .marks
            .partition_point(|mark| token::depth(mark.real) < depth);
        let shifted = self.next_serial(real);
        self.marks.insert(
            index,
            Mark {
                real,
                shifted,
                role: Role::Span,
                cell: None,
                ordinals: Ordinals::default(),
                own_ordinal: None,
            },
        );
        index
    }

    fn next_serial(&mut self, of: u64) -> u64 {
        loop {
            self.serial = self.serial.wrapping_add(1);
            let shifted = token::with_serial(of, self.serial);
            if shifted != of {
                return shifted;
            }
        }
    }

    /// The innermost level's role.
    fn top_role(&self, current: u64) -> Role {
        self.mark_at(token::depth(current))
            .map_or(Role::Span, |index| self.marks[index].role)
    }

    /// Whether the cold side wants to be asked about each open and close.
    fn asks(&self, current: u64) -> bool {
        self.session().is_none_or(|session| session.asks())
            || self.top_role(current) == (Role::Frame { foreign: true })
    }

    /// A span of this depth begins: what its thread takes from now on is counted.
    fn mark_memory(&mut self, depth: u64) {
        if self
            .session()
            .is_some_and(|session| session.counts_memory())
        {
            let below = usize::try_from(depth)
                .unwrap_or(usize::MAX)
                .saturating_sub(1);
            self.memory.resize(below, None);
            self.memory.push(Some(memory::mark()));
        }
    }

    /// What the thread has taken in the span of this depth, which ends.
    fn taken(&mut self, depth: u64) -> Option<Taken> {
        let below = usize::try_from(depth)
            .unwrap_or(usize::MAX)
            .saturating_sub(1);
        let mark = self.memory.get(below).copied().flatten();
        self.memory.truncate(below);
        mark.map(memory::taken)
    }

    /// Waits for the device, where each span of the capture does.
    fn synchronize(&self) {
        if let Some(session) = self.session() {
            session.synchronize();
        }
    }
}

impl Recorder {
    fn now_token(&self) -> u64 {
        self.token.load(Ordering::Relaxed)
    }

    /// Stores the innermost level's token and the limit that goes with it.
    fn settle(&self, lane: &Lane, depth: u64) {
        let standing = lane.standing_at(self.now_token(), depth);
        self.token.store(standing, Ordering::Relaxed);
        let limit = if lane.asks(standing) {
            self.cursor.load(Ordering::Relaxed)
        } else {
            lane.producer.link()
        };
        self.limit.store(limit, Ordering::Relaxed);
    }

    /// Adds a record, waiting for the writer where there is no room. Nothing is added once the session has ended.
    fn push(&self, lane: &mut Lane, record: Record) {
        if let Some(ticks) = self.put(lane, record, stream::is_crowded()) {
            // How long it waited is told at once, whatever waits besides.
            self.put(
                lane,
                Record::cold(clock().raw(), Cold::Waited { ticks }),
                false,
            );
        }
    }

    /// Adds a record; `crowded`: not before the writer has got on. Gives the ticks that it waited, if it did.
    fn put(&self, lane: &mut Lane, record: Record, mut crowded: bool) -> Option<u64> {
        let mut waiting: Option<Instant> = None;
        let mut stalled_since: Option<Instant> = None;
        loop {
            let Some(session) = lane.session() else {
                record.discard();
                return None;
            };
            if session.has_ended() || !crate::capture::is_owner() {
                session.count_late(1);
                lane.retire();
                continue;
            }
            if !crowded {
                let cursor = self.cursor.load(Ordering::Relaxed);
                if cursor != lane.producer.link() {
                    // SAFETY: the cursor is below the chunk's link slot, in memory that this thread alone fills.
                    unsafe { Slot::write(cursor, record) };
                    self.cursor.store(cursor.wrapping_add(1), Ordering::Release);
                    return waiting.map(ticks_since);
                }
                let consumed = self.consumed.load(Ordering::Acquire);
                // SAFETY: this thread is the producer and its cursor is at the link slot.
                if let Some(cursor) = unsafe { lane.producer.extend(consumed) } {
                    self.cursor.store(cursor, Ordering::Release);
                    continue;
                }
            }
            waiting.get_or_insert_with(Instant::now);
            let stalled = *stalled_since.get_or_insert_with(Instant::now);
            match session.wait_for_room(stalled) {
                Room::Moving => {
                    stalled_since = None;
                    crowded = false;
                }
                Room::Soon => {}
                Room::Stuck => session.abandon(STUCK),
            }
        }
    }

    fn push_cold(&self, lane: &mut Lane, ticks: u64, cold: Cold) {
        self.push(lane, Record::cold(ticks, cold));
    }

    /// The capture this records into, if it streams.
    pub(crate) fn session(&self) -> Option<Arc<Session>> {
        self.lane().session().cloned()
    }

    /// The session by hand this records into, if it is one.
    pub(crate) fn by_hand(&self) -> Option<Arc<ByHand>> {
        match &self.lane().sink {
            Sink::ByHand(hand) => Some(Arc::clone(&hand.session)),
            _ => None,
        }
    }

    /// What a session by hand has open here, where that is not on this thread's own stack.
    pub(crate) fn elsewhere(&self) -> Option<SpanId> {
        match &self.lane().sink {
            Sink::ByHand(hand) if hand.open.is_empty() => hand.parent,
            _ => None,
        }
    }

    /// Whether what this records into is still open: a thread may stay inside a capture that has ended elsewhere.
    pub(crate) fn is_open(&self) -> bool {
        match &self.lane().sink {
            Sink::Stream(session, _) => !session.has_ended(),
            Sink::ByHand(_) => true,
            Sink::None | Sink::Ended(..) => false,
        }
    }

    /// Whether this records into that capture.
    pub(crate) fn is_of(&self, session: &Arc<Session>) -> bool {
        self.lane()
            .session()
            .is_some_and(|own| Arc::ptr_eq(own, session))
    }

    /// Makes a session by hand current on this thread.
    pub(crate) fn attach_by_hand(
        session: &Arc<ByHand>,
        parent: Option<SpanId>,
    ) -> &'static Recorder {
        let recorder = recorder::borrow();
        recorder.lend(Sink::ByHand(HandSink {
            session: Arc::clone(session),
            parent,
            open: Vec::new(),
        }));
        recorder.make_current();
        recorder
    }

    /// Opens a span where the hot side could not. Gives the token that closes it.
    #[cold]
    #[inline(never)]
    pub(crate) fn open_cold(&self, source: SpanSource, measured: Option<MeasuredStart>) -> u64 {
        let mut lane = self.lane();
        let lane = &mut *lane;
        let current = self.now_token();
        let depth = token::depth(current) + 1;
        let foreign = lane.top_role(current) == (Role::Frame { foreign: true });
        lane.synchronize();
        match &mut lane.sink {
            Sink::None | Sink::Ended(..) => {}
            Sink::ByHand(hand) => {
                let outermost = hand.open.is_empty();
                let id = hand.session.begin(
                    source.name().into_owned(),
                    source.kind(),
                    source.step(),
                    measured.is_some(),
                    hand.parent.filter(|_| outermost),
                );
                hand.open.push(id);
            }
            Sink::Stream(..) if foreign => {
                let parent = lane
                    .mark_at(depth - 1)
                    .and_then(|index| lane.marks[index].cell.clone());
                let cell = SpanCell::begin(parent, source, None);
                let opened = Cold::OpenDetached {
                    cell: Arc::clone(&cell),
                    on_stack: true,
                };
                self.push_cold(lane, cell.start, opened);
                let index = lane.ensure_mark(current, depth);
                lane.marks[index].role = Role::Detached;
                lane.marks[index].cell = Some(cell);
                let real = lane.marks[index].real;
                lane.mark_memory(depth);
                self.settle(lane, depth);
                return real;
            }
            Sink::Stream(..) => {
                let record = match (source, measured) {
                    (SpanSource::Site(site), None) => Record::open(clock().raw(), site),
                    (source, measured) => {
                        Record::cold(clock().raw(), Cold::Open { source, measured })
                    }
                };
                self.push(lane, record);
                lane.mark_memory(depth);
            }
        }
        self.settle(lane, depth);
        self.now_token()
    }

    /// Closes a span where the hot side could not; does nothing where it has been closed before.
    #[cold]
    #[inline(never)]
    pub(crate) fn close_cold(&self, guard: u64) {
        let current = self.now_token();
        if token::epoch(guard) != token::epoch(current) {
            return;
        }
        let mut lane = self.lane();
        let lane = &mut *lane;
        let (lowest, top) = (token::depth(guard), token::depth(current));
        if lowest == 0 || lowest > top || lane.real_at(current, lowest) != guard {
            return;
        }
        if let Sink::ByHand(hand) = &mut lane.sink {
            let index = usize::try_from(lowest - 1).unwrap_or(usize::MAX);
            if let Some(id) = hand.open.get(index) {
                hand.session.end(*id);
            }
            hand.open.truncate(index);
        } else {
            self.close_levels(lane, lowest, top);
        }
        lane.marks.retain(|mark| token::depth(mark.real) < lowest);
        if lowest < top {
            // Guards of the levels that were cut are still alive: the next spans must not get their tokens.
            let index = lane.ensure_mark(current, lowest - 1);
            lane.marks[index].shifted = lane.next_serial(lane.marks[index].real);
        }
        self.settle(lane, lowest - 1);
    }

    /// Ends whatever this thread has open.
    pub(super) fn close_all(&self) {
        let top = token::depth(self.now_token());
        let mut lane = self.lane();
        if top == 0 {
            return;
        }
        if let Sink::ByHand(hand) = &mut lane.sink {
            if let Some(id) = hand.open.first() {
                hand.session.end(*id);
            }
            hand.open.clear();
        } else {
            self.close_levels(&mut lane, 0, top);
        }
    }

    /// Ends the levels from `top` down to `lowest`, at one reading but for what other threads have a say in.
    fn close_levels(&self, lane: &mut Lane, lowest: u64, top: u64) {
        let panicked = panicking();
        lane.synchronize();
        let mut end = clock().raw();
        for depth in (lowest.max(1)..=top).rev() {
            let cut = depth != lowest;
            let memory = lane.taken(depth);
            let mark = lane.mark_at(depth).map(|index| &lane.marks[index]);
            match mark.and_then(|mark| Some((mark.role, mark.cell.as_ref()?))) {
                Some((Role::Detached, cell)) => {
                    let cell = Arc::clone(cell);
                    let Some((at, parent)) = cell.close(end) else {
                        continue;
                    };
                    end = at;
                    let ended = DetachedEnd {
                        cell,
                        end,
                        parent,
                        cut,
                        panicked,
                        cancelled: false,
                        polled: None,
                        memory,
                    };
                    self.push_cold(lane, end, Cold::CloseDetached(ended));
                    continue;
                }
                Some((Role::Span, cell)) => end = cell.close_in_place(end),
                _ => {}
            }
            if cut || panicked || memory.is_some() {
                let closed = Cold::Close {
                    cut,
                    panicked,
                    memory,
                };
                self.push_cold(lane, end, closed);
            } else {
                self.push(lane, Record::close(end));
            }
        }
    }

    /// Records what was observed; `cost` is the time that took, in ticks.
    #[cold]
    pub(crate) fn observe(&self, owner: Owner, evidence: Evidence, cost: u64) {
        let mut lane = self.lane();
        let lane = &mut *lane;
        if let Sink::ByHand(hand) = &lane.sink {
            // What runs inside a span of elsewhere, with none of its own open, belongs to that.
            let elsewhere = hand.parent.filter(|_| hand.open.is_empty());
            return hand.session.observe(elsewhere, evidence);
        }
        #[cfg(feature = "candle")]
        if let (Evidence::Later(later), Some(session)) = (&evidence, lane.session()) {
            session.await_statistics(later);
        }
        let ticks = clock().raw();
        self.push_cold(
            lane,
            ticks,
            Cold::Evidence {
                owner,
                evidence,
                cost,
            },
        );
        self.settle(lane, token::depth(self.now_token()));
    }

    /// Observing took so many ticks of which no evidence tells.
    #[cold]
    pub(crate) fn spent(&self, ticks: u64) {
        let mut lane = self.lane();
        let lane = &mut *lane;
        if matches!(lane.sink, Sink::Stream(..)) {
            self.push_cold(lane, clock().raw(), Cold::Spent { ticks });
            self.settle(lane, token::depth(self.now_token()));
        }
    }

    /// A panic has begun on this thread.
    #[cold]
    pub(crate) fn panic_begins(&self) {
        // The panic may come from code that holds the lane (it should not, but a hook must never wait for itself).
        let Ok(mut lane) = self.lane.try_lock() else {
            return;
        };
        self.push_cold(&mut lane, clock().raw(), Cold::Panic);
        self.settle(&lane, token::depth(self.now_token()));
    }

    /// How often this site has been called under the innermost span, this call not counted.
    #[cold]
    pub(crate) fn ordinal(&self, site: usize) -> u64 {
        let mut lane = self.lane();
        let lane = &mut *lane;
        let current = self.now_token();
        let depth = token::depth(current);
        let index = lane.ensure_mark(current, depth);
        let mark = &mut lane.marks[index];
        let ordinal = match &mark.cell {
            Some(cell) => cell.ordinal(site),
            None => mark.ordinals.next(site),
        };
        self.settle(lane, depth);
        ordinal
    }

    /// The innermost span has this number in its name.
    #[cold]
    pub(crate) fn set_own_ordinal(&self, ordinal: u64) {
        let mut lane = self.lane();
        let lane = &mut *lane;
        let current = self.now_token();
        let depth = token::depth(current);
        let index = lane.ensure_mark(current, depth);
        lane.marks[index].own_ordinal = Some(ordinal);
        self.settle(lane, depth);
    }

    /// The number in the innermost span's name.
    pub(crate) fn own_ordinal(&self) -> Option<u64> {
        let lane = self.lane();
        let depth = token::depth(self.now_token());
        lane.mark_at(depth)
            .and_then(|index| lane.marks[index].own_ordinal)
    }

    /// A cell for the innermost open span (`None`: the root), which from now on ends under its lock; so do all spans
    /// below it, since a child elsewhere may outlive any of them.
    #[cold]
    pub(crate) fn give(&self) -> Option<Arc<SpanCell>> {
        let mut lane = self.lane();
        let lane = &mut *lane;
        let current = self.now_token();
        let top = token::depth(current);
        for depth in (1..=top).rev() {
            lane.ensure_mark(current, depth);
        }
        let mut parent = None;
        for depth in 1..=top {
            let Some(index) = lane.mark_at(depth) else {
                continue;
            };
            let is_frame = matches!(lane.marks[index].role, Role::Frame { .. });
            if lane.marks[index].cell.is_none() && !is_frame {
                let ordinals = std::mem::take(&mut lane.marks[index].ordinals);
                let cell = SpanCell::of_open(parent, ordinals);
                lane.marks[index].cell = Some(Arc::clone(&cell));
                let below = top - depth;
                self.push_cold(lane, clock().raw(), Cold::Given { below, cell });
            }
            parent = lane.marks[index].cell.clone();
        }
        self.settle(lane, top);
        parent
    }

    /// What follows on this thread happens inside `cell`'s span (`None`: the root). Gives the token that ends it.
    #[cold]
    pub(crate) fn enter_frame(&self, cell: Option<Arc<SpanCell>>, foreign: bool) -> u64 {
        let mut lane = self.lane();
        let lane = &mut *lane;
        let current = self.now_token();
        let depth = token::depth(current) + 1;
        let entered = cell.clone();
        self.push_cold(lane, clock().raw(), Cold::Enter { cell: entered });
        let index = lane.ensure_mark(current, depth);
        lane.marks[index].role = Role::Frame { foreign };
        lane.marks[index].cell = cell;
        let real = lane.marks[index].real;
        self.settle(lane, depth);
        real
    }

    /// A detached span ended that is not of this thread's stack: a future's.
    #[cold]
    pub(crate) fn close_detached(&self, end: DetachedEnd) {
        let mut lane = self.lane();
        let lane = &mut *lane;
        self.push_cold(lane, end.end, Cold::CloseDetached(end));
        self.settle(lane, token::depth(self.now_token()));
    }

    /// A detached span began that is not of this thread's stack: a future's.
    #[cold]
    pub(crate) fn open_detached(&self, cell: &Arc<SpanCell>) {
        let mut lane = self.lane();
        let lane = &mut *lane;
        let opened = Cold::OpenDetached {
            cell: Arc::clone(cell),
            on_stack: false,
        };
        self.push_cold(lane, cell.start, opened);
        self.settle(lane, token::depth(self.now_token()));
    }

    /// Lends the recorder: a new epoch, an empty stack.
    pub(super) fn start(&self, sink: Sink) -> Option<Consumer> {
        let mut lane = self.lane();
        let lane = &mut *lane;
        let epoch = token::epoch(self.now_token()) + 1;
        let (cursor, consumer) = lane.producer.restart();
        self.cursor.store(cursor, Ordering::Relaxed);
        self.consumed.store(cursor, Ordering::Relaxed);
        self.token.store(token::first(epoch), Ordering::Relaxed);
        lane.marks.clear();
        lane.memory.clear();
        lane.sink = sink;
        self.settle(lane, 0);
        lane.session().is_some().then_some(consumer)
    }

    /// Ends the loan: later guards find another epoch. Gives where records went.
    pub(super) fn stop(&self) -> Sink {
        let mut lane = self.lane();
        let epoch = token::epoch(self.now_token()) + 1;
        lane.marks.clear();
        let sink = std::mem::replace(&mut lane.sink, Sink::None);
        self.token.store(token::first(epoch), Ordering::Relaxed);
        self.settle(&lane, 0);
        sink
    }
}

/// A duration of the system's clock in the ticks of ours.
fn ticks_since(start: Instant) -> u64 {
    let nanos = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let (from, to) = (0, 1 << 40);
    let in_nanos = clock().delta_as_nanos(from, to).max(1);
    u64::try_from(u128::from(nanos) * u128::from(to) / u128::from(in_nanos)).unwrap_or(u64::MAX)
}
