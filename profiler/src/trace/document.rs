//! A whole trace in memory.

use std::borrow::Borrow;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::ancestry::depths;
use super::events::{
    DeviceIntervalEvent, DeviceMemoryEvent, EdgeEvent, GradientEvent, MemoryEvent, OpEvent,
    SpanEndEvent, SpanStartEvent, TensorEvent, TensorStatsEvent, TerminalEvent, TraceEvent,
};
use super::memory::{MemoryAction, resolve_dense_tensor_bytes};
use super::schema::{RunOutcome, SpanRecord, TraceRunMeta, TraceSummary};
use super::sequence::{Sequence, check_end};
use super::span_index::SpanIndex;
use super::storages::Storages;

/// A trace: what its lines say, by kind. `spans` are sorted by id, the rest is in the order of the
/// lines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TraceDocument {
    /// The schema that the trace names.
    pub schema: String,
    /// Where it comes from.
    pub run: TraceRunMeta,
    /// The spans.
    #[serde(default)]
    pub spans: Vec<SpanRecord>,
    /// The operations.
    #[serde(default)]
    pub ops: Vec<OpEvent>,
    /// The tensors.
    #[serde(default)]
    pub tensors: Vec<TensorEvent>,
    /// The statistics.
    #[serde(default)]
    pub tensor_stats: Vec<TensorStatsEvent>,
    /// The lives of storages.
    #[serde(default)]
    pub memory: Vec<MemoryEvent>,
    /// The samples of device memory.
    #[serde(default)]
    pub device_memory: Vec<DeviceMemoryEvent>,
    /// The times measured by devices.
    #[serde(default)]
    pub device_intervals: Vec<DeviceIntervalEvent>,
    /// The gradients.
    #[serde(default)]
    pub gradients: Vec<GradientEvent>,
    /// The calls and flows of data.
    #[serde(default)]
    pub edges: Vec<EdgeEvent>,
    /// How it ended.
    pub terminal: TerminalEvent,
}

impl TraceDocument {
    /// Puts a trace together from its events in order.
    ///
    /// # Errors
    /// What makes a stream no trace: see [`super::parse_trace`]. The record is named by its
    /// number, from 1.
    pub fn from_events(events: impl IntoIterator<Item = TraceEvent>) -> Result<Self> {
        let mut builder = Builder::default();
        for (index, event) in events.into_iter().enumerate() {
            builder
                .push(event)
                .with_context(|| format!("record {}", index + 1))?;
        }
        builder.finish()
    }

    /// The latest time that anything on the host claims.
    pub(crate) fn latest_host_ns(&self) -> u64 {
        let spans = self.spans.iter().map(SpanRecord::end_ns);
        let ops = self
            .ops
            .iter()
            .map(|op| op.timestamp_ns.saturating_add(op.duration_ns));
        let memory = self.memory.iter().map(|event| event.timestamp_ns);
        let device_memory = self.device_memory.iter().map(|event| event.timestamp_ns);
        spans
            .chain(ops)
            .chain(memory)
            .chain(device_memory)
            .max()
            .unwrap_or(0)
    }

    /// A few numbers about the whole.
    pub fn build_summary(&self) -> TraceSummary {
        let count = |action| {
            let same = self.memory.iter().filter(|event| event.action == action);
            same.count()
        };
        TraceSummary {
            op_count: self.ops.len(),
            total_ns: self
                .spans
                .iter()
                .filter(|span| span.measured)
                .fold(0, |total, span| total.saturating_add(span.duration_ns)),
            span_count: self.spans.len(),
            root_span_count: self
                .spans
                .iter()
                .filter(|span| span.parent_id.is_none())
                .count(),
            max_depth: self.max_depth(),
            alloc_count: count(MemoryAction::Alloc),
            free_count: count(MemoryAction::Free),
            logical_peak_bytes: self.logical_peak_bytes(),
        }
    }

    /// Of the spans one above the other, a parent that is missing or in a ring being none.
    fn max_depth(&self) -> usize {
        let index = SpanIndex::of(&self.spans);
        let parent = |place: usize| {
            let parent = self.spans.get(place)?.parent_id.as_deref()?;
            index.get(parent)
        };
        let depths = depths(self.spans.len(), parent);
        depths.into_iter().max().map_or(0, |depth| depth as usize)
    }

    fn logical_peak_bytes(&self) -> Option<u64> {
        let mut storages = Storages::default();
        for event in &self.memory {
            let storage = (event.device.as_str(), event.storage_id.as_str());
            storages.take(storage, event.action, event.bytes, event.timestamp_ns);
        }
        storages.peak()
    }

    /// The events of this trace again: `meta`, then spans with their ends, then the evidence by
    /// kind, then `terminal`.
    pub fn to_events(&self) -> Vec<TraceEvent> {
        self.events().collect()
    }

    /// The same, one at a time.
    pub(crate) fn events(&self) -> impl Iterator<Item = TraceEvent> {
        let meta = TraceEvent::Meta {
            schema: self.schema.clone(),
            run: Box::new(self.run.clone()),
        };
        let spans = self.spans.iter().flat_map(|span| {
            let start = TraceEvent::SpanStart(SpanStartEvent {
                id: span.id.clone(),
                parent_id: span.parent_id.clone(),
                name: span.name.clone(),
                start_ns: span.start_ns,
                kind: span.kind,
                measured: span.measured,
                step: span.step,
                extra: span.start_extra.clone(),
            });
            let end = span.closed.then(|| {
                TraceEvent::SpanEnd(SpanEndEvent {
                    id: span.id.clone(),
                    duration_ns: span.duration_ns,
                    extra: span.end_extra.clone(),
                })
            });
            [Some(start), end].into_iter().flatten()
        });
        let tensors = self.tensors.iter().cloned().map(TraceEvent::Tensor);
        let stats = self.tensor_stats.iter().cloned();
        let samples = self.device_memory.iter().cloned();
        let intervals = self.device_intervals.iter().cloned();
        let gradients = self.gradients.iter().cloned();
        std::iter::once(meta)
            .chain(spans)
            .chain(self.ops.iter().cloned().map(TraceEvent::Op))
            .chain(tensors)
            .chain(stats.map(TraceEvent::TensorStats))
            .chain(self.memory.iter().cloned().map(TraceEvent::Memory))
            .chain(samples.map(TraceEvent::DeviceMemory))
            .chain(intervals.map(TraceEvent::DeviceInterval))
            .chain(gradients.map(TraceEvent::Gradient))
            .chain(self.edges.iter().cloned().map(TraceEvent::Edge))
            .chain([TraceEvent::Terminal(self.terminal.clone())])
    }
}

/// Writes events as lines to `path`, whose folders are made where missing.
///
/// # Errors
/// What the file system says, with the path.
pub fn write_jsonl(path: impl AsRef<Path>, events: &[TraceEvent]) -> Result<()> {
    let path = path.as_ref();
    let write = || -> Result<()> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let mut file = BufWriter::new(File::create(path)?);
        write_lines(&mut file, events)?;
        file.flush()?;
        Ok(())
    };
    write().with_context(|| format!("write trace {}", path.display()))
}

/// Writes events as lines.
pub(crate) fn write_lines(
    to: &mut dyn Write,
    events: impl IntoIterator<Item = impl Borrow<TraceEvent>>,
) -> Result<()> {
    for event in events {
        serde_json::to_writer(&mut *to, event.borrow())?;
        to.write_all(b"\n")?;
    }
    Ok(())
}

/// Puts a document together event by event, and refuses what cannot stand where it does.
#[derive(Default)]
pub(super) struct Builder {
    sequence: Sequence,
    meta: Option<(String, TraceRunMeta)>,
    spans: Vec<SpanRecord>,
    ops: Vec<OpEvent>,
    tensors: Vec<TensorEvent>,
    tensor_stats: Vec<TensorStatsEvent>,
    memory: Vec<MemoryEvent>,
    device_memory: Vec<DeviceMemoryEvent>,
    device_intervals: Vec<DeviceIntervalEvent>,
    gradients: Vec<GradientEvent>,
    edges: Vec<EdgeEvent>,
    terminal: Option<TerminalEvent>,
}

impl Builder {
    pub(super) fn push(&mut self, event: TraceEvent) -> Result<()> {
        let place = self.sequence.admit(&event)?;
        match event {
            TraceEvent::Meta { schema, run } => self.meta = Some((schema, *run)),
            TraceEvent::SpanStart(start) => self.spans.push(started(start)),
            TraceEvent::SpanEnd(end) => {
                if let Some(span) = place.and_then(|place| self.spans.get_mut(place)) {
                    span.closed = true;
                    span.duration_ns = end.duration_ns;
                    span.end_extra = end.extra;
                }
            }
            TraceEvent::Op(mut op) => {
                op.output_dense_bytes =
                    resolve_dense_tensor_bytes(op.output_dense_bytes, &op.shape, &op.dtype);
                self.ops.push(op);
            }
            TraceEvent::Tensor(mut tensor) => {
                tensor.dense_bytes =
                    resolve_dense_tensor_bytes(tensor.dense_bytes, &tensor.shape, &tensor.dtype);
                self.tensors.push(tensor);
            }
            TraceEvent::TensorStats(stats) => self.tensor_stats.push(stats),
            TraceEvent::Memory(event) => self.memory.push(event),
            TraceEvent::DeviceMemory(sample) => self.device_memory.push(sample),
            TraceEvent::DeviceInterval(interval) => self.device_intervals.push(interval),
            TraceEvent::Gradient(gradient) => self.gradients.push(gradient),
            TraceEvent::Edge(edge) => self.edges.push(edge),
            TraceEvent::Terminal(terminal) => self.terminal = Some(terminal),
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Result<TraceDocument> {
        let Some((schema, run)) = self.meta else {
            bail!("there is no record at all; a trace starts with a `meta` one");
        };
        self.sequence.finish()?;
        let ended = self.terminal.is_some();
        // Of the old schema no trace has a last line: it was complete when it was there.
        let terminal = self.terminal.unwrap_or(TerminalEvent {
            outcome: RunOutcome::Complete,
            timestamp_ns: 0,
            reason: None,
            extra: None,
        });
        let mut document = TraceDocument {
            schema,
            run,
            spans: sorted_by_id(self.spans),
            ops: self.ops,
            tensors: self.tensors,
            tensor_stats: self.tensor_stats,
            memory: self.memory,
            device_memory: self.device_memory,
            device_intervals: self.device_intervals,
            gradients: self.gradients,
            edges: self.edges,
            terminal,
        };
        let latest = document.latest_host_ns();
        if !ended {
            document.terminal.timestamp_ns = latest;
        }
        check_end(&document.terminal, latest)?;
        Ok(document)
    }
}

fn started(start: SpanStartEvent) -> SpanRecord {
    SpanRecord {
        id: start.id,
        parent_id: start.parent_id,
        name: start.name,
        kind: start.kind,
        measured: start.measured,
        start_ns: start.start_ns,
        closed: false,
        duration_ns: 0,
        step: start.step,
        start_extra: start.extra,
        end_extra: None,
    }
}

/// Sorts by the text of the id. Most ids fit into eight bytes, so comparing those as one number
/// decides nearly everything, and the large records move once, within their list.
fn sorted_by_id(mut spans: Vec<SpanRecord>) -> Vec<SpanRecord> {
    spans.sort_by_cached_key(|span| leading_bytes(&span.id));
    let alike = |a: &SpanRecord, b: &SpanRecord| leading_bytes(&a.id) == leading_bytes(&b.id);
    for run in spans.chunk_by_mut(alike) {
        if run.len() > 1 {
            run.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        }
    }
    spans
}

fn leading_bytes(id: &str) -> u64 {
    let mut bytes = [0; 8];
    for (to, from) in bytes.iter_mut().zip(id.bytes()) {
        *to = from;
    }
    u64::from_be_bytes(bytes)
}
