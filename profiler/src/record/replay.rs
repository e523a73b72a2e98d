//! The lines of a capture as they come to be: spans get their numbers, and what happened at one place is added up for
//! the summary. [`super::reading`] tells what happened.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::BuildHasherDefault;
use std::sync::Arc;

use super::address::AddressHasher;
use super::budget::Budget;
use super::cold::{DetachedEnd, Evidence, MeasuredStart};
use super::cuts::{Cut, Cuts, Spot};
use super::detached::SpanCell;
use super::names;
use super::promise::Promise;
use super::session::{End, Thread};
use super::site::{CallSite, RecordSite, SpanSource};
use super::stream::clock;
use super::zeros;
use crate::allocator::Taken;
use crate::phase::ExecutionStep;
#[cfg(feature = "candle")]
use crate::tensor::Later;
use crate::trace::span_lines::{EndLine, StartLine, quoted};
use crate::trace::{
    GradientEvent, GradientState, RunOutcome, SpanKind, TerminalEvent, TraceEvent, TraceRunMeta,
};
use crate::view::summary::{
    ClosedSpan, Digest, HowClosed, SiteId, SpanSite, Statistics, StepTag, gradient_of,
};

/// The root span's number.
pub(super) const ROOT: u64 = 1;

/// The most bytes of a span's two lines without its own texts.
const LINE: usize = 1024;

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
    pub(super) origin: u64,
    pub(super) records_spans: bool,
    pub(super) budget: Budget,
    pub(super) lines: Vec<u8>,
    pub(super) last_id: u64,
    /// The last span that is not recorded; they are counted down, so that none has the number of one that is.
    last_unrecorded: u64,
    pub(super) gradients: u64,
    sites: HashMap<usize, Site, BuildHasherDefault<AddressHasher>>,
    site_names: HashSet<Box<[u8]>>,
    pub(super) named_threads: HashSet<u64>,
    pub(super) open_detached: BTreeMap<u64, OpenDetached>,
    /// The last detached span that [`Self::newly_open`] has been through.
    listed: u64,
    pub(super) digest: Digest,
    cuts: Cuts,
    /// The largest graph that a call gave back, in tensors and bytes.
    built: (u64, u64),
    /// The gradients that the capture promises.
    promise: Option<Promise>,
    /// A handle was given out, to a thread whose records may be read later than what came after them.
    pub(super) handed: bool,
    /// Gradients that are missing for a reason that may come from there, each with its variable.
    unexplained: Vec<(Box<GradientEvent>, u64)>,
    /// Statistics that a device gives at the end, each with its span and that span's path.
    #[cfg(feature = "candle")]
    later: Vec<(u64, SpanName, String, Arc<Later>)>,
    /// Spans and records besides the root and the measured span.
    pub(super) inner: u64,
    pub(super) late: u64,
    pub(super) waited: u64,
    pub(super) root_overhead: u64,
}

/// A detached span that is open, and what has happened in it on the stacks that ran it.
pub(super) struct OpenDetached {
    pub(super) cell: Arc<SpanCell>,
    pub(super) children_ns: u64,
    pub(super) overhead_ns: u64,
    pub(super) children_overhead_ns: u64,
}

/// A call site's texts, escaped once.
struct Site {
    name: Box<[u8]>,
    file: Box<[u8]>,
    line: u32,
    /// Its row of the summary, where its spans all have the same name.
    row: Option<SiteId>,
    seen: bool,
    /// Another call site had its name before, so each span says which of them it is of.
    repeats: bool,
}

/// So many gradients wait for an explanation.
const MOST_UNEXPLAINED: usize = 65_536;

/// Where evidence belongs.
pub(super) struct Where<'a> {
    pub(super) id: u64,
    pub(super) span: SpanName,
    /// Names the span and those around it.
    pub(super) path: &'a dyn Fn() -> String,
    /// What tells the spans around it, and it, from others.
    pub(super) chain: &'a dyn Fn() -> Vec<u64>,
    /// The span or one around it says that the graph ends in it.
    pub(super) detached: bool,
    /// When it was recorded, in nanoseconds.
    pub(super) now: u64,
    /// When the span began, where it is open on the thread's own stack.
    pub(super) since: u64,
}

/// A span's name, for the places where evidence is told of; cheap to hand on for the many spans that have none.
#[derive(Clone)]
pub(super) enum SpanName {
    Root,
    Site(&'static CallSite),
    /// With its place.
    Own(Arc<str>, (&'static str, u32)),
}

impl SpanName {
    pub(super) fn of(source: &SpanSource) -> Self {
        match source {
            SpanSource::Site(site) => Self::Site(site),
            SpanSource::Named(_, name) | SpanSource::Free { name, .. } => {
                Self::Own(Arc::from(&**name), source.place())
            }
            SpanSource::Module { name, .. } => Self::Own(Arc::clone(name), source.place()),
        }
    }

    pub(super) fn resolve(&self) -> Cow<'_, str> {
        match self {
            Self::Root => Cow::Borrowed(""),
            Self::Site(site) => site.name().resolve(),
            Self::Own(name, _) => Cow::Borrowed(name),
        }
    }

    fn place(&self) -> (&'static str, u32) {
        match self {
            Self::Root => ("", 0),
            Self::Site(site) => (site.file(), site.line()),
            Self::Own(_, place) => *place,
        }
    }

    /// The span of this thread that a cell stands for has no source of its own: then its name is not known here.
    pub(super) fn of_cell(cell: &SpanCell) -> Self {
        cell.source.as_ref().map_or(Self::Root, Self::of)
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
            last_unrecorded: u64::MAX,
            gradients: 0,
            sites: HashMap::default(),
            site_names: HashSet::new(),
            named_threads: HashSet::new(),
            open_detached: BTreeMap::new(),
            listed: ROOT,
            digest,
            cuts: Cuts::default(),
            built: (0, 0),
            promise: Promise::of(meta),
            handed: false,
            unexplained: Vec::new(),
            #[cfg(feature = "candle")]
            later: Vec::new(),
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
    pub(super) fn admits(&mut self, source: &SpanSource) -> bool {
        if !self.records_spans {
            return false;
        }
        let own_text = 6 * source.own_text().len();
        let fits = self.budget.fits(self.lines.len(), LINE + own_text);
        if !fits {
            self.budget.drop(&source.name());
        }
        fits
    }

    pub(super) fn inner(&self) -> u64 {
        self.inner
    }

    /// What the summary will say, for what is known at the end.
    pub(super) fn digest_mut(&mut self) -> &mut Digest {
        &mut self.digest
    }

    pub(super) fn into_digest(self) -> Digest {
        self.digest
    }

    /// Each reading is converted by itself by one function that never falls, so what was in order stays so.
    pub(super) fn ns(&self, ticks: u64) -> u64 {
        clock().delta_as_nanos(self.origin, ticks.max(self.origin))
    }

    fn admits_detached(&mut self, cell: &SpanCell) -> bool {
        let source = cell.source.as_ref();
        cell.measured.is_some() || source.is_none_or(|source| self.admits(source))
    }

    pub(super) fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// Tells a span that is not recorded from all others.
    pub(super) fn next_unrecorded(&mut self) -> u64 {
        self.last_unrecorded -= 1;
        self.last_unrecorded
    }

    pub(super) fn line(&mut self, event: &TraceEvent) {
        let before = self.lines.len();
        // Our events hold finite numbers and text only; a line that cannot be written is left out whole.
        match serde_json::to_writer(&mut self.lines, event) {
            Ok(()) => self.lines.push(b'\n'),
            Err(_) => self.lines.truncate(before),
        }
    }

    /// Writes a span's first line; gives its row of the summary.
    pub(super) fn start_line(
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
            SpanSource::Free { location, .. } | SpanSource::Module { location, .. } => {
                (std::ptr::from_ref(*location).addr(), false)
            }
        };
        let (kind, step) = (source.kind(), source.step());
        if matches!(
            step,
            Some(ExecutionStep::Backward | ExecutionStep::Optimizer)
        ) {
            self.cuts.stepped(start_ns);
        }
        if source.site().is_some_and(|site| site.opens().calls_backward) {
            self.cuts.told();
        }
        let site = self.sites.entry(key).or_insert_with(|| {
            let (file, line) = source.place();
            let name = source.name();
            Site {
                name: quoted(&name).into(),
                file: quoted(file).into(),
                line,
                row: fixed.then(|| self.digest.site(row_of(&name, source, measured.is_some()))),
                seen: false,
                repeats: fixed && !self.site_names.insert(quoted(&name).into()),
            }
        });
        let (row, own_name) = match site.row.filter(|_| fixed) {
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
            place: (site.repeats || !site.seen).then_some((&site.file, site.line)),
            thread: thread.map(|thread| thread.number),
            thread_name: thread_name.as_deref(),
            since_previous_ns,
        }
        .write(&mut self.lines);
        site.seen = true;
        row
    }

    /// Writes both lines of a detached span, whose parent is known only now. `false`: they had been written.
    pub(super) fn close_detached(&mut self, end: &DetachedEnd, thread: Option<&Thread>) -> bool {
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
        self.detached_lines(
            id, &span, parent, end.end, flags, polled, end.memory, thread,
        );
        true
    }

    /// Numbers a detached span; one that is not recorded has its parent's number.
    pub(super) fn open_detached(&mut self, cell: &Arc<SpanCell>) -> u64 {
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
            };
            self.open_detached.insert(id, span);
            self.budget.opened();
            id
        };
        cell.set_id(id);
        self.inner += u64::from(cell.measured.is_none());
        id
    }

    /// The starts of the detached spans that have been opened since this was asked last, and are open. As parent they
    /// have the one they began in: which it is in the end is known when they end.
    pub(super) fn newly_open(&mut self) -> Vec<u8> {
        let mut lines = Vec::new();
        for (id, span) in self.open_detached.range(self.listed + 1..) {
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
        self.listed = self.last_id;
        lines
    }

    /// A length of ticks in nanoseconds.
    pub(super) fn span_of(&self, ticks: u64) -> u64 {
        clock().delta_as_nanos(self.origin, self.origin.saturating_add(ticks))
    }

    #[allow(
        clippy::too_many_arguments,
        reason = "the parts of two lines, used once"
    )]
    pub(super) fn detached_lines(
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

    pub(super) fn evidence(&mut self, at: Where<'_>, evidence: Evidence) {
        let Where {
            id,
            span,
            path,
            chain,
            detached,
            now,
            since,
        } = at;
        // What is looked at unasked is no reason to keep a trace.
        if !matches!(
            evidence,
            Evidence::Crossing { .. }
                | Evidence::Built { .. }
                | Evidence::Backward(_)
                | Evidence::Detaches(_)
        ) {
            self.inner += 1;
        }
        if !self.budget.fits(self.lines.len(), evidence.most_bytes()) {
            return self.budget.drop(evidence.label());
        }
        let span_id = format!("s{id}");
        match evidence {
            Evidence::Statistics {
                mut event,
                alarm,
                before,
            } => {
                event.span_id = span_id;
                let mut statistics = Statistics::of(&event, alarm);
                statistics.before = before;
                self.digest.statistics(&event.label, &path(), &statistics);
                let alarms = statistics.alarms();
                if alarms != statistics.usually_alarms() {
                    event.extra.get_or_insert_default().alarm = Some(alarms);
                }
                self.line(&TraceEvent::TensorStats(*event));
            }
            #[cfg(feature = "candle")]
            Evidence::Later(later) => self.later.push((id, span, path(), later)),
            Evidence::Scalar { mut event, value } => {
                event.span_id = span_id;
                self.digest.scalar(&event.label, value);
                self.line(&TraceEvent::TensorStats(*event));
            }
            Evidence::Tensor(mut event) => {
                event.span_id = span_id;
                self.line(&TraceEvent::Tensor(*event));
            }
            Evidence::DeviceMemory(mut event) => {
                event.timestamp_ns = now;
                self.digest
                    .device_memory(&event.device, event.used_bytes.unwrap_or(0));
                self.line(&TraceEvent::DeviceMemory(*event));
            }
            Evidence::Op {
                mut event,
                from,
                to,
            } => {
                event.span_id = span_id;
                // A call may leave a span open that began inside it.
                event.timestamp_ns = self.ns(from).max(since);
                event.duration_ns = self.ns(to).saturating_sub(event.timestamp_ns);
                self.line(&TraceEvent::Op(*event));
            }
            Evidence::Gradient { event, var } => match var {
                Some(var) if event.state == GradientState::Missing => {
                    if self.handed && self.unexplained.len() < MOST_UNEXPLAINED {
                        self.unexplained.push((event, var));
                    } else {
                        self.missing(event, var);
                    }
                }
                _ => self.found(event),
            },
            Evidence::Crossing { crossing, site } => {
                let spot = Spot {
                    chain: chain(),
                    at: now,
                    ..spot(id, &span, site)
                };
                self.cuts.crossed(spot, *crossing, detached);
            }
            Evidence::Built { nodes, bytes } => self.built = self.built.max((nodes, bytes)),
            Evidence::Backward(pass) => {
                if let Some(graph) = pass.graph {
                    self.digest.graph(graph);
                }
                if pass.reached.as_ref().is_some_and(Vec::is_empty) {
                    self.digest
                        .note("the loss depends on no variable: nothing gets a gradient");
                }
                self.cuts.passed(now, *pass);
            }
            Evidence::Detaches(names) => {
                if let Some(span) = chain().last() {
                    self.cuts.detaches(*span, names);
                }
            }
            Evidence::Note(problem) => self.digest.note(problem),
        }
    }

    /// What devices gave at the end, in the order in which it was asked for.
    #[cfg(feature = "candle")]
    fn read_back(&mut self) {
        for (id, span, path, later) in std::mem::take(&mut self.later) {
            let at = Where {
                id,
                span,
                path: &|| path.clone(),
                chain: &Vec::new,
                detached: false,
                now: 0,
                since: 0,
            };
            self.evidence(at, later.take());
        }
    }

    /// A variable without a gradient, which may lie behind a cut.
    fn missing(&mut self, mut event: Box<GradientEvent>, var: u64) {
        if let Some(reason) = self.cuts.reason(var, names::length_in_norm(var)) {
            event.extra.get_or_insert_default().reason = Some(reason);
        }
        self.found(event);
    }

    fn found(&mut self, event: Box<GradientEvent>) {
        match &mut self.promise {
            Some(promise) => promise.take(event),
            None => self.gradient(event),
        }
    }

    fn gradient(&mut self, mut event: Box<GradientEvent>) {
        self.gradients += 1;
        event.event_id = format!("gradient-{}", self.gradients);
        if event.state == GradientState::Zero {
            if zeros::twice(&event.root, &event.key, self.origin) {
                self.digest.stays_zero(&event.key);
                event.extra.get_or_insert_default().zero_before = true;
            }
        } else {
            zeros::forget(&event.root, &event.key);
        }
        self.digest.gradient(&gradient_of(&event));
        self.line(&TraceEvent::Gradient(*event));
    }

    /// Writes the promised gradients. A promise that was not kept makes the capture fail.
    fn keep_promise(&mut self, end: End) -> End {
        let Some(promise) = self.promise.take() else {
            return end;
        };
        let complete = matches!(end, End::Complete);
        let (events, broken) = promise.settle();
        for event in events {
            self.gradient(Box::new(event));
        }
        match broken {
            Some(reason) if complete => End::Failed(reason),
            _ => end,
        }
    }

    /// Writes what ends a trace: the spans of other threads and futures, the root, the terminal line. `true`: it failed.
    pub(super) fn end(&mut self, at: u64, end: End) -> bool {
        for (event, var) in std::mem::take(&mut self.unexplained) {
            self.missing(event, var);
        }
        let end = self.keep_promise(end);
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
            self.detached_lines(
                id,
                &span,
                parent,
                at.max(cell.start),
                flags,
                None,
                None,
                None,
            );
        }
        #[cfg(feature = "candle")]
        self.read_back();
        self.cut_graphs();
        let now = self.ns(at);
        EndLine {
            id: ROOT,
            duration_ns: now,
            overhead_ns: (self.root_overhead > 0).then_some(self.root_overhead.min(now)),
            ..EndLine::default()
        }
        .write(&mut self.lines);
        let (outcome, reason) = match end {
            End::Complete => (RunOutcome::Complete, None),
            End::Failed(reason) => (RunOutcome::Failed, Some(reason)),
        };
        let failed = reason.is_some();
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
        self.digest.tell(extra);
        if let Some(reason) = &terminal.reason {
            self.digest.failed(reason.clone());
        }
        self.line(&TraceEvent::Terminal(terminal));
        failed
    }
}

impl Replay {
    /// Tells of the places that cut the graph.
    fn cut_graphs(&mut self) {
        let (nodes, bytes) = self.built;
        if nodes > 0 && !self.cuts.knows_of_backward() {
            self.digest.unused_graph(nodes, bytes);
        }
        for mut cut in self.cuts.judge(&|var| names::of(var).is_some()) {
            let sentence = cut.sentence();
            crate::say::once(&sentence);
            self.digest.cut(row_of_cut(&cut, sentence));
            let extra = cut.event.extra.get_or_insert_default();
            extra.tracked = Some(false);
            extra.autograd = Some("cut".to_owned());
            let twin = cut.twin();
            let mut event = cut.event;
            event.extra.get_or_insert_default().twin = twin;
            event.span_id = format!("s{}", cut.spot.span);
            if self.budget.fits(self.lines.len(), LINE) {
                self.line(&TraceEvent::Tensor(*event));
            }
        }
    }
}

/// What the summary says of a cut besides the sentence of stderr.
fn row_of_cut(cut: &Cut, mut sentence: String) -> String {
    if cut.calls > 1 {
        sentence += &format!("; {} calls", cut.calls);
    }
    let named: Vec<String> = cut.lost.iter().filter_map(|var| names::of(*var)).collect();
    let shown = named.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
    let more = cut.lost.len() - named.len().min(3);
    match (named.len(), more) {
        (_, 0) if named.is_empty() => {}
        (0, more) => sentence += &format!("; {more} variables get no gradient"),
        (_, 0) => sentence += &format!("; no gradient for {shown}"),
        (_, more) => sentence += &format!("; no gradient for {shown} and {more} more"),
    }
    sentence
}

/// Where a call was: in the span of its own, or at the site of a function that has none.
fn spot(id: u64, span: &SpanName, site: Option<&RecordSite>) -> Spot {
    let (file, line) = site.map_or_else(|| span.place(), |site| (site.file(), site.line()));
    let name = match site {
        Some(site) => site.label().resolve().into_owned(),
        None => span.resolve().into_owned(),
    };
    Spot {
        span: id,
        own: site.is_none(),
        chain: Vec::new(),
        at: 0,
        name,
        file,
        line,
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
