//! What a trace boils down to while it is written.

use super::bounded::Rows;
use super::gradients::{Gradient, Gradients};
use super::graph::GraphSize;
use super::left_out::LeftOut;
use super::memory::Memory;
use super::scalars::ScalarRow;
use super::sites::{ClosedSpan, SiteId, Sites, SpanSite};
use super::tensors::{Statistics, Tensors};
use crate::allocator::Taken;

/// The notes of a trace that are shown; later ones are counted.
const MOST_NOTES: usize = 32;
/// So many cuts of the graph.
const MOST_CUTS: usize = 256;

/// What the meta line and the start of the measured region say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Meta {
    pub(crate) entrypoint: String,
    /// `train` or `infer`.
    pub(crate) phase: String,
    pub(crate) capture_step: u64,
    pub(crate) device: String,
    pub(crate) rank: Option<u64>,
    /// From the end of the call before to the start of this one.
    pub(crate) since_previous_ns: Option<u64>,
    /// Tokens, images or the like that the region went through.
    pub(crate) items: Option<u64>,
}

/// The time of a call site.
#[cfg(feature = "cli")]
#[derive(Debug, Clone, Copy)]
pub(crate) struct SiteTime<'a> {
    pub(crate) name: &'a str,
    pub(crate) calls: u64,
    pub(crate) total_ns: u64,
    pub(crate) measured: bool,
}

/// A trace boiled down. It takes everything in the order of execution, in bounded memory.
#[derive(Debug, Default)]
pub(crate) struct Digest {
    pub(super) meta: Meta,
    pub(super) sites: Sites,
    pub(super) tensors: Tensors,
    pub(super) scalars: Rows<ScalarRow>,
    pub(super) gradients: Gradients,
    /// The largest graph of a loss.
    pub(super) graph: Option<GraphSize>,
    /// A graph that was built, where no backward pass ran: its tensors and their bytes.
    pub(super) unused_graph: Option<(u64, u64)>,
    pub(super) cuts: Vec<String>,
    pub(super) memory: Memory,
    pub(super) notes: Vec<String>,
    pub(super) more_notes: u64,
    pub(super) failed: Option<String>,
    pub(super) left_out: LeftOut,
    pub(super) late: u64,
    pub(super) waited_ns: u64,
}

impl Digest {
    pub(crate) fn new() -> Digest {
        Digest::default()
    }

    /// May be called again when more is known.
    pub(crate) fn meta(&mut self, meta: Meta) {
        self.meta = meta;
    }

    /// The row of a call site. A writer asks once for each of its call sites.
    pub(crate) fn site(&mut self, site: SpanSite<'_>) -> SiteId {
        self.sites.id(site)
    }

    /// A span of the site was closed. The root, which is the whole session, is no call and left
    /// out.
    pub(crate) fn closed(&mut self, site: SiteId, span: ClosedSpan) {
        if let Some(time) = self.sites.close(site, span) {
            self.sites.part(time);
        }
    }

    /// Both at once, for who keeps no rows.
    #[cfg(test)]
    pub(crate) fn span(&mut self, site: SpanSite<'_>, span: ClosedSpan) {
        let site = self.site(site);
        self.closed(site, span);
    }

    /// Statistics were taken of a tensor in the span of that name.
    pub(crate) fn statistics(&mut self, label: &str, span: &str, statistics: &Statistics<'_>) {
        self.tensors.take(label, span, statistics);
    }

    /// A number was recorded, which is an alarm or not.
    pub(crate) fn scalar(&mut self, label: &str, value: f64, alarms: bool) {
        if let Some(row) = self.scalars.row(label) {
            row.take(value, alarms);
        }
    }

    /// A gradient was looked at.
    pub(crate) fn gradient(&mut self, gradient: &Gradient<'_>) {
        self.gradients.take(gradient);
    }

    /// A loss was differentiated.
    pub(crate) fn graph(&mut self, graph: GraphSize) {
        let largest = self.graph.get_or_insert_default();
        if graph.nodes >= largest.nodes {
            *largest = graph;
        }
    }

    /// A graph was built, and no backward pass ran.
    pub(crate) fn unused_graph(&mut self, nodes: u64, bytes: u64) {
        self.unused_graph = Some((nodes, bytes));
    }

    /// A place cuts the graph.
    pub(crate) fn cut(&mut self, place: String) {
        match self.cuts.len() < MOST_CUTS {
            true => self.cuts.push(place),
            false => self.more_notes += 1,
        }
    }

    /// A span of the site took so much of its thread's memory.
    pub(crate) fn span_memory(&mut self, site: SiteId, taken: Taken, measured: bool) {
        if measured {
            self.memory.step = Some((taken.net, taken.peak));
        } else {
            self.sites.take_memory(site, taken);
        }
    }

    /// So many bytes of a device were in use.
    pub(crate) fn device_memory(&mut self, device: &str, used: u64) {
        if let Some(row) = self.memory.devices.row(device) {
            row.take(used);
        }
    }

    /// So many bytes of recorded storages were alive at once.
    pub(crate) fn storages(&mut self, peak: u64) {
        self.memory.storages = Some(peak.max(self.memory.storages.unwrap_or(0)));
    }

    /// One more problem, in words.
    pub(crate) fn note(&mut self, problem: impl Into<String>) {
        match self.notes.len() < MOST_NOTES {
            true => self.notes.push(problem.into()),
            false => self.more_notes += 1,
        }
    }

    /// The process's memory grew, in words.
    pub(crate) fn growth(&mut self, growth: String) {
        self.memory.growth = Some(growth);
    }

    /// The trace ended as failed.
    pub(crate) fn failed(&mut self, reason: impl Into<String>) {
        self.failed = Some(reason.into());
    }

    /// So many spans and records of a call site found no room in the trace.
    pub(crate) fn dropped(&mut self, site: &str, count: u64) {
        self.left_out.add(site, count);
    }

    /// What found no room, in words.
    pub(crate) fn left_out(&self) -> Option<String> {
        self.left_out.sentence()
    }

    /// So many records came after the end.
    pub(crate) fn late(&mut self, count: u64) {
        self.late = self.late.saturating_add(count);
    }

    /// The program waited so long for the writer.
    pub(crate) fn waited(&mut self, nanoseconds: u64) {
        self.waited_ns = self.waited_ns.saturating_add(nanoseconds);
    }

    /// The numbers, without those that say once more what the gradients of a root come to: the norm has a row there.
    pub(super) fn own_scalars(&self) -> impl Iterator<Item = (&str, &ScalarRow)> {
        self.scalars.iter().filter(|(label, row)| {
            let root = label.strip_suffix("/grad_norm");
            let mut roots = self.gradients.iter();
            !roots.any(|(of, gradients)| root == Some(of) && gradients.has_norm(row))
        })
    }

    /// The name of a row, empty for what found none.
    pub(crate) fn site_name(&self, site: SiteId) -> &str {
        self.sites.row(site).map_or("", |row| &row.name)
    }

    /// Where it is, if that is known.
    pub(crate) fn site_place(&self, site: SiteId) -> Option<(&str, u32)> {
        let place = self.sites.row(site)?.place.as_ref();
        place.map(|(file, line)| (file.as_str(), *line))
    }

    /// What the meta line says.
    #[cfg(feature = "cli")]
    pub(crate) fn run(&self) -> &Meta {
        &self.meta
    }

    /// The time of the measured region.
    #[cfg(feature = "cli")]
    pub(crate) fn measured_ns(&self) -> u64 {
        self.sites.measured_ns
    }

    /// Why the trace failed, if it did.
    #[cfg(feature = "cli")]
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    /// The call sites that were called.
    #[cfg(feature = "cli")]
    pub(crate) fn times(&self) -> impl Iterator<Item = SiteTime<'_>> {
        let called = self.sites.rows.iter().filter(|site| site.calls > 0);
        called.map(|site| SiteTime {
            name: &site.name,
            calls: site.calls,
            total_ns: site.total_ns,
            measured: site.measured,
        })
    }

    /// Peaks of memory, by what they are of.
    #[cfg(feature = "cli")]
    pub(crate) fn memory_figures(&self) -> Vec<(String, u64)> {
        let step = self
            .memory
            .step
            .map(|(_, peak)| ("heap of the step's thread".to_owned(), peak));
        let storages = self
            .memory
            .storages
            .map(|peak| ("recorded storages".to_owned(), peak));
        let devices = self
            .memory
            .devices
            .iter()
            .map(|(device, row)| (device.to_owned(), row.most));
        step.into_iter().chain(devices).chain(storages).collect()
    }

    /// Whether the trace holds anything but the measured region.
    pub(super) fn holds_evidence(&self) -> bool {
        self.sites
            .rows
            .iter()
            .any(|site| site.calls > 0 && !site.measured)
            || self.sites.others.calls > 0
            || self.memory.storages.is_some()
            || self.tensors.rows.len() + self.scalars.len() + self.gradients.len() > 0
    }
}
