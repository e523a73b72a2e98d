//! The lines of a capture as they come to be: spans get their numbers, and what happened at one place is added up for
//! the summary. [`super::reading`] tells what happened.

mod detached;
mod end;
mod evidence;
mod name;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::BuildHasherDefault;
#[cfg(feature = "candle")]
use std::sync::Arc;

use super::address::AddressHasher;
use super::budget::{Budget, LINE, SPAN_END};
use super::cold::MeasuredStart;
use super::cuts::Cuts;
use super::passes::Passes;
use super::promise::Promise;
use super::session::Thread;
use super::site::SpanSource;
use super::stream::clock;
use crate::phase::ExecutionStep;
#[cfg(feature = "candle")]
use crate::tensor::Later;
use crate::trace::span_lines::{StartLine, quoted};
use crate::trace::{GradientEvent, SpanKind, TraceEvent, TraceRunMeta};
use crate::view::summary::{Digest, SiteId, SpanSite, StepTag};

pub(super) use detached::OpenDetached;
pub(super) use evidence::Where;
pub(super) use name::SpanName;

/// The root span's number.
pub(super) const ROOT: u64 = 1;

/// The buffer is written when it has grown to this.
pub(super) const BATCH: usize = 256 * 1024;

/// What a capture may hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Whether spans besides the root and the measured one are recorded.
    pub(crate) records_spans: bool,
    /// The most bytes of the trace.
    pub(crate) budget: u64,
}

/// Writes the lines of a capture, and empties the buffer.
pub(super) type Write<'a> = &'a mut dyn FnMut(&mut Replay);

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
    /// The backward passes so far.
    passes: Passes,
    /// Statistics that a device gives at the end, each with its span and that span's path.
    #[cfg(feature = "candle")]
    later: Vec<(u64, SpanName, String, Arc<Later>)>,
    /// Spans and records besides the root and the measured span.
    pub(super) inner: u64,
    pub(super) late: u64,
    pub(super) waited: u64,
    pub(super) root_overhead: u64,
}

/// More bytes than both lines of a span have, but for the name of its thread.
fn both_lines(source: &SpanSource) -> usize {
    LINE + SPAN_END + 6 * source.text_bytes()
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
            passes: Passes::default(),
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

    /// Whether they are so many that they are to be written before others come.
    pub(super) fn is_full(&self) -> bool {
        self.lines.len() >= BATCH
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
        let fits = self.budget.fits(self.lines.len(), both_lines(source));
        if !fits {
            self.budget.drop_span(source);
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

    /// Each reading is converted by itself by one function that never falls, so what was in order stays so.
    pub(super) fn ns(&self, ticks: u64) -> u64 {
        clock().delta_as_nanos(self.origin, ticks.max(self.origin))
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

    /// The same of a record, which is left out, and counted, where it finds no room.
    fn line_with_room(&mut self, event: &TraceEvent) {
        let before = self.lines.len();
        self.line(event);
        if !self.budget.fits(self.lines.len(), 0) {
            self.lines.truncate(before);
            self.budget.drop_record(evidence::label_of(event));
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
        let fixed = matches!(source, SpanSource::Site(_));
        let (kind, step) = (source.kind(), source.step());
        if matches!(
            step,
            Some(ExecutionStep::Backward | ExecutionStep::Optimizer)
        ) {
            self.cuts.stepped(start_ns);
        }
        if source
            .site()
            .is_some_and(|site| site.opens().calls_backward)
        {
            self.cuts.told();
        }
        let site = self.sites.entry(source.key()).or_insert_with(|| {
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
        // The span was let in without it: where it finds no room, a later span may tell it.
        let unnamed = thread.filter(|thread| !self.named_threads.contains(&thread.number));
        let thread_name = unnamed.and_then(|thread| {
            let name = quoted(thread.name.as_deref()?);
            let line = both_lines(source) + name.len();
            let fits = self.budget.fits(self.lines.len(), line);
            (fits && self.named_threads.insert(thread.number)).then_some(name)
        });
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

    /// A length of ticks in nanoseconds.
    pub(super) fn span_of(&self, ticks: u64) -> u64 {
        clock().delta_as_nanos(self.origin, self.origin.saturating_add(ticks))
    }

    /// Has the lines written where they are many: the end of a capture may hold as much as all of it.
    pub(super) fn make_room(&mut self, write: Write<'_>) {
        if self.is_full() {
            write(self);
        }
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
