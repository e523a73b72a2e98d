//! Time by call site.

use std::collections::HashMap;

use super::bounded::MOST_ROWS;
use super::cover::Cover;
use super::durations::Durations;
use crate::allocator::Taken;
use crate::view::text::printable;

/// What part of a training step a span is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StepTag {
    Forward,
    Backward,
    Optimizer,
}

impl StepTag {
    pub(super) const ALL: [(StepTag, &'static str); 3] = [
        (StepTag::Forward, "forward"),
        (StepTag::Backward, "backward"),
        (StepTag::Optimizer, "optimizer"),
    ];
}

/// Where a span comes from. Spans with the same name and place share a row, but for the measured region: of a merged
/// trace it spans the calls of all ranks.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SpanSite<'a> {
    pub(crate) name: &'a str,
    pub(crate) file: Option<&'a str>,
    pub(crate) line: Option<u32>,
    pub(crate) step: Option<StepTag>,
    /// It measures the region, and gets its row however many others there are.
    pub(crate) measured: bool,
}

/// A row of the table, to be asked for once and used for every span of the site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct SiteId(u32);

impl SiteId {
    /// The row of all that found no room.
    pub(crate) const OTHERS: SiteId = SiteId(u32::MAX);

    #[cfg(feature = "cli")]
    pub(crate) fn of_number(number: u32) -> SiteId {
        SiteId(number.wrapping_sub(1))
    }

    /// A small number that stands for the row: 0 for what found no room, else from 1.
    pub(crate) fn number(self) -> usize {
        self.0.wrapping_add(1) as usize
    }
}

/// A span that was closed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ClosedSpan {
    pub(crate) start_ns: u64,
    /// From start to end, as in the trace.
    pub(crate) duration_ns: u64,
    /// The durations of its direct children, those of other threads left out.
    pub(crate) child_ns: u64,
    /// The profiler's own work during the span, that during its children included.
    pub(crate) overhead_ns: u64,
    /// The same for its direct children.
    pub(crate) child_overhead_ns: u64,
    /// It is the measured region.
    pub(crate) measured: bool,
    /// A span of the same site is around it, which has this one's time in its total.
    pub(crate) recursive: bool,
    /// A span with a step is around it, which has this one's time already.
    pub(crate) in_step: bool,
    pub(crate) how: HowClosed,
}

/// What is out of order about the way a span was closed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct HowClosed {
    /// By the end of a span below it.
    pub(crate) cut: bool,
    /// Its future was dropped.
    pub(crate) cancelled: bool,
    /// By a panic.
    pub(crate) panicked: bool,
    /// By the end of the trace.
    pub(crate) open_at_end: bool,
}

/// One row.
#[derive(Debug, Default, Clone)]
pub(super) struct Site {
    pub(super) name: String,
    pub(super) place: Option<(String, u32)>,
    pub(super) step: Option<StepTag>,
    pub(super) calls: u64,
    pub(super) durations: Durations,
    pub(super) total_ns: u64,
    pub(super) self_ns: u64,
    pub(super) measured: bool,
    pub(super) cut: u64,
    pub(super) cancelled: u64,
    pub(super) panicked: u64,
    pub(super) open_at_end: u64,
    /// The sum of the balances, and the highest of the peaks.
    pub(super) memory: Option<Taken>,
}

/// All rows, and the sums over them.
#[derive(Debug, Default)]
pub(super) struct Sites {
    by_name: HashMap<String, Vec<usize>>,
    pub(super) rows: Vec<Site>,
    /// What found no room.
    pub(super) others: Site,
    pub(super) measured_ns: u64,
    pub(super) measured_overhead_ns: u64,
    /// From the start of the measured region to its end.
    region: Option<(u64, u64)>,
    /// When each part ran, in the order of [`StepTag::ALL`], and when any did.
    parts: [Cover; 3],
    any_part: Cover,
}

/// When a part of the step ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PartTime {
    start_ns: u64,
    end_ns: u64,
    /// The place in [`StepTag::ALL`].
    part: usize,
}

impl Sites {
    pub(super) fn id(&mut self, site: SpanSite<'_>) -> SiteId {
        // Looked up by the name as it is, so that one that is known costs no copy.
        let name = start_of(site.name);
        let known = self.by_name.get(name).and_then(|places| {
            let same = |&&at: &&usize| self.rows.get(at).is_some_and(|row| row.is(site));
            places.iter().find(same).copied()
        });
        if let Some(at) = known.or_else(|| self.placed(name, site)) {
            return SiteId(at as u32);
        }
        let at = self.rows.len();
        if (at >= MOST_ROWS && !site.measured) || at >= SiteId::OTHERS.0 as usize {
            return SiteId::OTHERS;
        }
        self.rows.push(Site {
            name: printable(site.name, 160),
            place: site
                .file
                .map(|file| (file.to_owned(), site.line.unwrap_or(0))),
            step: site.step,
            measured: site.measured,
            ..Site::default()
        });
        self.by_name.entry(name.to_owned()).or_default().push(at);
        SiteId(at as u32)
    }

    /// The row whose place was not known, and is now: a trace tells it once, not always first. The measured region, which
    /// may have the name of a function that it calls, keeps a row of its own.
    fn placed(&mut self, name: &str, site: SpanSite<'_>) -> Option<usize> {
        let file = site.file.filter(|_| !site.measured)?;
        let rows = self.by_name.get(name)?;
        let at = rows.iter().copied().find(|at| {
            let row = self.rows.get(*at);
            row.is_some_and(|row| row.place.is_none() && row.step == site.step && !row.measured)
        })?;
        let row = self.rows.get_mut(at)?;
        row.place = Some((file.to_owned(), site.line.unwrap_or(0)));
        Some(at)
    }

    pub(super) fn row(&self, id: SiteId) -> Option<&Site> {
        self.rows.get(id.0 as usize)
    }

    /// What a span's thread took in it.
    pub(super) fn take_memory(&mut self, id: SiteId, taken: Taken) {
        if let Some(row) = self.rows.get_mut(id.0 as usize) {
            let all = row.memory.get_or_insert_default();
            all.net = all.net.saturating_add(taken.net);
            all.peak = all.peak.max(taken.peak);
        }
    }

    /// Takes a call in. Where it is a part of the step, its time is still to be told by [`Sites::part`].
    pub(super) fn close(&mut self, id: SiteId, span: ClosedSpan) -> Option<PartTime> {
        let total = span.duration_ns.saturating_sub(span.overhead_ns);
        let in_children = span.child_ns.saturating_sub(span.child_overhead_ns);
        let row = match self.rows.get_mut(id.0 as usize) {
            Some(row) => row,
            None => &mut self.others,
        };
        row.calls += 1;
        row.durations.take(total);
        if !span.recursive {
            row.total_ns = row.total_ns.saturating_add(total);
        }
        row.self_ns = row
            .self_ns
            .saturating_add(total.saturating_sub(in_children));
        row.measured |= span.measured;
        row.cut += u64::from(span.how.cut);
        row.cancelled += u64::from(span.how.cancelled);
        row.panicked += u64::from(span.how.panicked);
        row.open_at_end += u64::from(span.how.open_at_end);
        let step = row.step.filter(|_| !span.in_step);
        if span.measured {
            self.measured_ns = self.measured_ns.saturating_add(total);
            self.measured_overhead_ns = self.measured_overhead_ns.saturating_add(span.overhead_ns);
            let end = span.start_ns.saturating_add(span.duration_ns);
            let (from, to) = self.region.unwrap_or((span.start_ns, end));
            self.region = Some((from.min(span.start_ns), to.max(end)));
        }
        let part = StepTag::ALL
            .iter()
            .position(|(tag, _)| step == Some(*tag))?;
        Some(PartTime {
            start_ns: span.start_ns,
            // Without the profiler's own work, as everywhere.
            end_ns: span.start_ns.saturating_add(total),
            part,
        })
    }

    /// A part of the step ran. They come in nearly the order of their times.
    pub(super) fn part(&mut self, time: PartTime) {
        if let Some(part) = self.parts.get_mut(time.part) {
            part.add(time.start_ns, time.end_ns);
            self.any_part.add(time.start_ns, time.end_ns);
        }
    }

    /// How much of the measured region each part ran, in the order of [`StepTag::ALL`]: on however many threads at once, a
    /// moment counts once.
    pub(super) fn part_ns(&self) -> [u64; 3] {
        self.parts.each_ref().map(|part| part.within(self.region()))
    }

    /// The time of the region in which no part ran; none where there are no parts or no region.
    pub(super) fn rest_ns(&self) -> Option<u64> {
        let parts = self.any_part.within(self.region());
        (parts > 0 && self.measured_ns > 0).then(|| self.measured_ns.saturating_sub(parts))
    }

    fn region(&self) -> (u64, u64) {
        self.region.unwrap_or((0, u64::MAX))
    }
}

/// As much of a name as is compared: enough for code, and a bound for names made at run time.
fn start_of(name: &str) -> &str {
    const MOST: usize = 512;
    let end = name.char_indices().map(|(at, _)| at).find(|&at| at > MOST);
    &name[..end.unwrap_or(name.len())]
}

impl Site {
    fn is(&self, site: SpanSite<'_>) -> bool {
        let place = self
            .place
            .as_ref()
            .map(|(file, line)| (file.as_str(), *line));
        place == site.file.map(|file| (file, site.line.unwrap_or(0)))
            && self.step == site.step
            && self.measured == site.measured
    }
}
