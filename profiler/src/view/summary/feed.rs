//! A digest of a trace that is read, event by event, in the memory of its spans alone.

use std::collections::{HashMap, VecDeque};
use std::io::BufRead;

use anyhow::{Result, anyhow};

use super::digest::{Digest, Meta};
use super::gradients::gradient_of;
use super::sites::{ClosedSpan, HowClosed, PartTime, SiteId, SpanSite, StepTag};
use super::tensors::Statistics;
use crate::allocator::Taken;
use crate::phase::ExecutionStep;
use crate::trace::read::TraceEvents;
use crate::trace::sequence::Sequence;
use crate::trace::storages::Storages;
use crate::trace::{
    DeviceMemoryEvent, MemoryEvent, RunOutcome, SpanStartEvent, TensorEvent, TensorStatsEvent,
    TerminalEvent, TraceEvent, TraceRunMeta,
};
use crate::view::span_table::{Flags, NONE, Place, Row, SpanTable, Visitor};

/// A way goes up no further, so that one that loops has an end.
const DEEPEST: usize = 64;

/// Takes a trace in.
#[derive(Debug, Default)]
pub(crate) struct Feed {
    digest: Digest,
    meta: Meta,
    spans: SpanTable,
    /// By the number in a span's row. The first is that of what found no row.
    sites: Vec<SiteId>,
    places: HashMap<String, (String, u32)>,
    /// Evidence whose span has not started yet, and all that came after it.
    waiting: VecDeque<Evidence>,
    /// The cut tensors, a sentence each.
    cuts: Vec<String>,
    /// By device and name.
    storages: Storages<(String, String)>,
    /// The names of the ranks' trees in a merged trace.
    ranks: Vec<String>,
    /// When the trace ended; none of the old schema says it.
    end_ns: Option<u64>,
    /// The last time that is told of anything but a span.
    latest_ns: u64,
}

#[derive(Debug)]
enum Evidence {
    Statistics(Box<TensorStatsEvent>),
    Cut(Box<TensorEvent>),
}

impl Evidence {
    fn span(&self) -> &str {
        match self {
            Evidence::Statistics(event) => &event.span_id,
            Evidence::Cut(event) => &event.span_id,
        }
    }
}

/// What a trace came to.
#[derive(Debug)]
pub(crate) struct Fed {
    pub(crate) digest: Digest,
    /// The spans; a row's name is the number of its site.
    #[cfg_attr(not(feature = "cli"), allow(dead_code))]
    pub(crate) spans: SpanTable,
}

impl Feed {
    pub(crate) fn new() -> Feed {
        Feed {
            sites: vec![SiteId::OTHERS],
            ..Feed::default()
        }
    }

    /// The next event, in the order of the lines.
    pub(crate) fn push(&mut self, event: TraceEvent) {
        match event {
            TraceEvent::Meta { run, .. } => {
                self.meta = meta_of(&run);
                let ranks = run.tags.get("ranks").map(|ranks| ranks.split(','));
                let named = |rank| format!("rank {rank}");
                self.ranks = ranks.into_iter().flatten().map(named).collect();
            }
            TraceEvent::SpanStart(start) => self.start(&start),
            TraceEvent::SpanEnd(end) => {
                self.spans.end(&end);
                if let Some(extra) = end.extra.as_deref()
                    && let (Some(net), Some(peak)) = (extra.mem_net, extra.mem_peak)
                    && let Some(place) = self.spans.started(&end.id)
                {
                    let row = self.spans.row(place);
                    let number = row.map_or(0, |row| row.name as usize);
                    let site = self.sites.get(number).copied();
                    let (site, measured) =
                        (site.unwrap_or(SiteId::OTHERS), self.is_measured(place));
                    self.digest.span_memory(site, Taken { net, peak }, measured);
                }
            }
            TraceEvent::Tensor(tensor) => {
                let cut = tensor
                    .extra
                    .as_deref()
                    .and_then(|extra| extra.autograd.as_deref());
                if cut == Some("cut") {
                    self.evidence(Evidence::Cut(Box::new(tensor)));
                }
            }
            TraceEvent::TensorStats(stats) => {
                self.evidence(Evidence::Statistics(Box::new(stats)));
            }
            TraceEvent::Memory(event) => self.memory(event),
            TraceEvent::DeviceMemory(sample) => self.sample(&sample),
            TraceEvent::Gradient(event) => {
                if event
                    .extra
                    .as_deref()
                    .is_some_and(|extra| extra.zero_before)
                {
                    self.digest.stays_zero(&event.key);
                }
                self.digest.gradient(&gradient_of(&event));
            }
            TraceEvent::Terminal(terminal) => self.terminal(&terminal),
            TraceEvent::Op(op) => self.happened(op.timestamp_ns.saturating_add(op.duration_ns)),
            TraceEvent::DeviceInterval(_) | TraceEvent::Edge(_) => {}
        }
    }

    fn happened(&mut self, at_ns: u64) {
        self.latest_ns = self.latest_ns.max(at_ns);
    }

    fn is_measured(&self, place: Place) -> bool {
        let row = self.spans.row(place);
        row.is_some_and(|row| row.flags.has(Flags::MEASURED))
    }

    fn start(&mut self, start: &SpanStartEvent) {
        let mut number = 0;
        if start.parent_id.is_some() {
            let site = self.site(start);
            number = site.number();
            if self.sites.len() <= number {
                self.sites.resize(number + 1, SiteId::OTHERS);
            }
            if let Some(slot) = self.sites.get_mut(number) {
                *slot = site;
            }
        }
        self.spans.start(start, number as u32);
        if self.ranks.contains(&start.name) && self.is_below_root(start) {
            self.spans.is_rank(&start.id);
        }
        if start.measured {
            let extra = start.extra.as_deref();
            self.meta.since_previous_ns = extra.and_then(|extra| extra.since_previous_ns);
        }
        while let Some(first) = self.waiting.front()
            && self.spans.started(first.span()).is_some()
        {
            if let Some(evidence) = self.waiting.pop_front() {
                self.take(&evidence);
            }
        }
    }

    fn is_below_root(&self, start: &SpanStartEvent) -> bool {
        let parent = start
            .parent_id
            .as_deref()
            .and_then(|id| self.spans.started(id));
        let parent = parent.and_then(|place| self.spans.row(place));
        parent.is_some_and(|parent| parent.parent == NONE)
    }

    /// A span without a place is of the first call site of its name, which says only once where it is.
    fn site(&mut self, start: &SpanStartEvent) -> SiteId {
        let extra = start.extra.as_deref();
        let own = extra.and_then(|extra| extra.file.as_deref().zip(extra.line));
        if let Some((file, line)) = own
            && !self.places.contains_key(&start.name)
        {
            self.places
                .insert(start.name.clone(), (file.to_owned(), line));
        }
        let first = self.places.get(&start.name);
        let place = own.or(first.map(|(file, line)| (file.as_str(), *line)));
        self.digest.site(SpanSite {
            name: &start.name,
            file: place.map(|(file, _)| file),
            line: place.map(|(_, line)| line),
            step: start.step.map(|step| match step {
                ExecutionStep::Forward => StepTag::Forward,
                ExecutionStep::Backward => StepTag::Backward,
                ExecutionStep::Optimizer => StepTag::Optimizer,
            }),
            measured: start.measured,
        })
    }

    fn evidence(&mut self, evidence: Evidence) {
        if self.waiting.is_empty() && self.spans.started(evidence.span()).is_some() {
            self.take(&evidence);
        } else {
            self.waiting.push_back(evidence);
        }
    }

    fn take(&mut self, evidence: &Evidence) {
        let place = self.spans.started(evidence.span()).unwrap_or(NONE);
        let row = self.spans.row(place);
        let number = row.map_or(0, |row| row.name as usize);
        let site = self.sites.get(number).copied().unwrap_or(SiteId::OTHERS);
        match evidence {
            Evidence::Statistics(event) => match scalar_of(event) {
                Some(value) => self.digest.scalar(&event.label, value),
                None => {
                    let told = event.extra.as_deref().and_then(|extra| extra.alarm);
                    let statistics = Statistics::of(event, told);
                    // The way to a span is only shown of what stands out.
                    let span = match statistics.stand_out() {
                        true => self.way_to(place),
                        false => String::new(),
                    };
                    self.digest.statistics(&event.label, &span, &statistics);
                }
            },
            Evidence::Cut(event) => {
                let note = self.cut(event, site);
                self.cuts.push(note);
            }
        }
    }

    /// `train_step > Model::forward`: the spans of the same thread around a span, as far as they are known by now.
    fn way_to(&self, place: Place) -> String {
        let mut names = Vec::new();
        let mut next = self.spans.row(place);
        while let Some(row) = next.filter(|row| row.parent != NONE && names.len() < DEEPEST) {
            let site = self.sites.get(row.name as usize).copied();
            names.push(self.digest.site_name(site.unwrap_or(SiteId::OTHERS)));
            let parent = self.spans.row(row.parent);
            next = parent.filter(|parent| parent.thread == row.thread);
        }
        names.reverse();
        names.join(" > ")
    }

    /// `graph cut in Model::forward (src/model.rs:40) at logits; softmax keeps it`
    fn cut(&self, event: &TensorEvent, site: SiteId) -> String {
        let mut note = format!("graph cut in {}", self.digest.site_name(site));
        if let Some((file, line)) = self.digest.site_place(site) {
            note += &format!(" ({file}:{line})");
        }
        if let Some(label) = &event.label {
            note += &format!(" at {label}");
        }
        if let Some(twin) = event
            .extra
            .as_deref()
            .and_then(|extra| extra.twin.as_deref())
        {
            note += &format!("; {twin} keeps it");
        }
        note
    }

    fn memory(&mut self, event: MemoryEvent) {
        self.happened(event.timestamp_ns);
        let storage = (event.device, event.storage_id);
        self.storages
            .take(storage, event.action, event.bytes, event.timestamp_ns);
    }

    fn sample(&mut self, sample: &DeviceMemoryEvent) {
        self.happened(sample.timestamp_ns);
        let taken = sample.capacity_bytes.zip(sample.free_bytes);
        let taken = taken.map(|(all, free)| all.saturating_sub(free));
        if let Some(used) = sample.used_bytes.or(taken) {
            self.digest.device_memory(&sample.device, used);
        }
    }

    fn terminal(&mut self, terminal: &TerminalEvent) {
        self.end_ns = Some(terminal.timestamp_ns);
        if terminal.outcome == RunOutcome::Failed {
            let reason = terminal.reason.as_deref();
            self.digest
                .failed(reason.unwrap_or("for no reason that is told"));
        }
        let Some(extra) = terminal.extra.as_deref() else {
            return;
        };
        for (site, count) in extra.dropped.iter().flatten() {
            self.digest.dropped(site, *count);
        }
        self.digest.late(extra.late.unwrap_or(0));
        self.digest.waited(extra.waited_ns.unwrap_or(0));
        if extra.cuts.is_some() {
            // They say more than what the cut tensors tell.
            self.cuts.clear();
        }
        self.digest.hear(extra);
    }

    /// The trace is read to its end.
    pub(crate) fn finish(mut self) -> Fed {
        // What names a span that never started belongs nowhere, but it was recorded.
        while let Some(evidence) = self.waiting.pop_front() {
            self.take(&evidence);
        }
        for cut in std::mem::take(&mut self.cuts) {
            self.digest.note(cut);
        }
        let latest = || self.latest_ns.max(self.spans.latest_ns());
        let end = self.end_ns.unwrap_or_else(latest);
        self.spans.end_open(end);
        self.digest.meta(self.meta);
        if let Some(peak) = self.storages.peak() {
            self.digest.storages(peak);
        }
        let mut closer = Closer {
            digest: &mut self.digest,
            sites: &self.sites,
            around: vec![Vec::new(); self.spans.threads()],
            open: Vec::new(),
            parts: Vec::new(),
        };
        self.spans.walk(&mut closer);
        // The trees come one after another, the times in them do not.
        let mut parts = closer.parts;
        parts.sort_unstable();
        for part in parts {
            self.digest.sites.part(part);
        }
        Fed {
            digest: self.digest,
            spans: self.spans,
        }
    }
}

/// Reads a whole trace.
///
/// # Errors
/// A line that is no event, or stands where it cannot. The line is named.
pub(crate) fn read(trace: impl BufRead) -> Result<Fed> {
    read_with(trace, |_| {})
}

/// What a document comes to. Its evidence is in the order of its lines by kind, which is the order of execution.
#[cfg(feature = "cli")]
pub(crate) fn of_document(trace: &crate::trace::TraceDocument) -> Fed {
    let mut feed = Feed::new();
    for event in trace.events() {
        feed.push(event);
    }
    feed.finish()
}

/// The same; `look` sees each event first.
pub(crate) fn read_with(trace: impl BufRead, mut look: impl FnMut(&TraceEvent)) -> Result<Fed> {
    let mut feed = Feed::new();
    let mut events = TraceEvents::new(trace);
    let mut sequence = Sequence::default();
    while let Some(event) = events.next() {
        let event = event.and_then(|event| sequence.admit(&event).map(|_| event));
        let line = || format!("line {}", events.line());
        let event = event.map_err(|error| anyhow!("{}: {error:#}", line()))?;
        look(&event);
        feed.push(event);
    }
    sequence.finish()?;
    Ok(feed.finish())
}

/// Tells the digest of each span, with what its children took.
struct Closer<'a> {
    digest: &'a mut Digest,
    sites: &'a [SiteId],
    /// By thread and site: how many spans are open around.
    around: Vec<Vec<u32>>,
    open: Vec<Open>,
    /// When the parts of the step ran.
    parts: Vec<PartTime>,
}

#[derive(Default)]
struct Open {
    child_ns: u64,
    child_overhead_ns: u64,
    recursive: bool,
    in_step: bool,
}

impl Closer<'_> {
    fn around(&mut self, row: &Row) -> Option<&mut u32> {
        let thread = self.around.get_mut(row.thread as usize)?;
        let site = row.name as usize;
        if thread.len() <= site {
            thread.resize(site + 1, 0);
        }
        thread.get_mut(site)
    }
}

impl Visitor for Closer<'_> {
    fn enter(&mut self, table: &SpanTable, place: Place) {
        let Some(row) = table.row(place) else {
            return;
        };
        let parent = table.row(row.parent);
        let in_step = parent.is_some_and(|parent| parent.flags.has(Flags::STEP))
            || self.open.last().is_some_and(|open| open.in_step);
        let mut recursive = false;
        if row.parent != NONE
            && let Some(around) = self.around(row)
        {
            recursive = *around > 0;
            *around += 1;
        }
        self.open.push(Open {
            recursive,
            in_step,
            ..Open::default()
        });
    }

    fn leave(&mut self, table: &SpanTable, place: Place) {
        let (Some(row), Some(open)) = (table.row(place), self.open.pop()) else {
            return;
        };
        if row.parent == NONE {
            return;
        }
        if let Some(around) = self.around(row) {
            *around = around.saturating_sub(1);
        }
        if row.flags.has(Flags::RANK) {
            return;
        }
        if let (Some(parent), Some(above)) = (table.row(row.parent), self.open.last_mut())
            && SpanTable::is_inside(row, parent)
        {
            above.child_ns = above.child_ns.saturating_add(row.duration_ns);
            above.child_overhead_ns = above.child_overhead_ns.saturating_add(row.overhead_ns);
        }
        let site = self.sites.get(row.name as usize).copied();
        let has = |flag| row.flags.has(flag);
        let part = self.digest.sites.close(
            site.unwrap_or(SiteId::OTHERS),
            ClosedSpan {
                start_ns: row.start_ns,
                duration_ns: row.duration_ns,
                child_ns: open.child_ns,
                overhead_ns: row.overhead_ns,
                child_overhead_ns: open.child_overhead_ns,
                measured: has(Flags::MEASURED),
                recursive: open.recursive,
                in_step: open.in_step,
                how: HowClosed {
                    cut: has(Flags::CUT),
                    cancelled: has(Flags::CANCELLED),
                    panicked: has(Flags::PANICKED),
                    open_at_end: has(Flags::OPEN_AT_END),
                },
            },
        );
        self.parts.extend(part);
    }
}

fn meta_of(run: &TraceRunMeta) -> Meta {
    let tag = |name: &str| run.tags.get(name).and_then(|text| text.parse().ok());
    Meta {
        entrypoint: run.entrypoint.clone(),
        phase: run.phase.as_str().to_owned(),
        capture_step: run.capture_step,
        device: run.device.clone(),
        rank: tag("rank"),
        since_previous_ns: None,
        items: tag("items"),
    }
}

/// The value, where the statistics are those of one number: it has all of them, so it needs no keys of ours, or only
/// those that tell what kind of number it is not.
pub(crate) fn scalar_of(event: &TensorStatsEvent) -> Option<f64> {
    if !event.shape.is_empty() || event.dtype != "f64" {
        return None;
    }
    let Some(extra) = event.extra.as_deref() else {
        return Some(if event.non_finite == 0 {
            event.mean
        } else {
            f64::NAN
        });
    };
    if extra.l2.is_some() || extra.zeros.is_some() {
        return None;
    }
    let is = |count: Option<u64>| count.is_some_and(|count| count > 0);
    Some(match event.non_finite {
        0 => event.mean,
        _ if is(extra.pos_inf) => f64::INFINITY,
        _ if is(extra.neg_inf) => f64::NEG_INFINITY,
        _ => f64::NAN,
    })
}
