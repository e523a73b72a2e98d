//! The traces of the ranks of one step as one trace.
//!
//! The merged trace has a root, below it one measured region from the start of the first rank's to the end of the last
//! one's, and beside that each rank's own tree, its root named after the rank. Labels, tensors, storages and gradients
//! get the rank in front of their names, and so do the findings of the ranks' writers. What the ranks promised is promised only where all did.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};

use crate::capability::{CaptureContract, CoverageLevel, MeasurementScope};
use crate::trace::span_index::SpanIndex;
use crate::trace::{
    EdgeEvent, HealthSeverity, SpanEndEvent, SpanKind, SpanRecord, SpanStartEvent, SpanStartExtra,
    TimingMode, TraceDocument, TraceEvent, TraceRunMeta, analyze_health, stamp,
};
use crate::view::export::offsets;

mod terminal;

/// How the clocks of ranks are brought together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    /// By the times at which the traces were opened, known to a millisecond and as good as the machines' clocks.
    Clock,
    /// The measured regions start together.
    Measured,
}

/// A trace, and the rank that it is of.
struct Rank<'a> {
    name: String,
    /// What the trace is called in messages.
    file: &'a str,
    trace: &'a TraceDocument,
    /// What its times lie behind those of the merged trace.
    offset: u64,
    /// The place of a span by its old id, and the new numbers by place.
    places: SpanIndex,
    numbers: Vec<u64>,
    /// The first number of its threads.
    first_thread: u64,
}

/// The events of the merged trace.
///
/// # Errors
/// Fewer than two traces, an invalid one, two of the same rank, traces of different phases, or a thread's number that
/// cannot be counted on from.
pub(crate) fn merge(traces: &[(String, TraceDocument)], align: Align) -> Result<Vec<TraceEvent>> {
    ensure!(
        traces.len() > 1,
        "merge takes the traces of two ranks or more"
    );
    for (name, trace) in traces {
        let health = analyze_health(trace);
        if let Some(issue) = health.of(HealthSeverity::Error).next() {
            bail!("{name} is invalid: {} ({})", issue.message, issue.code);
        }
    }
    let documents: Vec<&TraceDocument> = traces.iter().map(|(_, trace)| trace).collect();
    let mut ranks = ranks(traces)?;
    place(&mut ranks, &documents, align);
    let mut next_id = 3;
    let mut next_thread = 1;
    for rank in &mut ranks {
        rank.first_thread = next_thread;
        let threads = rank
            .trace
            .spans
            .iter()
            .filter_map(thread_of)
            .max()
            .unwrap_or(0);
        let after = threads.checked_add(1);
        next_thread = after.and_then(|count| next_thread.checked_add(count)).with_context(|| {
            format!("{}: there is a thread number {threads}, beyond which none is left for other ranks", rank.file)
        })?;
        let spans = rank.trace.spans.iter().enumerate();
        let mut starts: Vec<(u64, usize)> =
            spans.map(|(place, span)| (span.start_ns, place)).collect();
        starts.sort_unstable();
        rank.numbers = vec![0; starts.len()];
        for (_, place) in starts {
            if let Some(number) = rank.numbers.get_mut(place) {
                *number = next_id;
            }
            next_id += 1;
        }
    }
    let end = ranks
        .iter()
        .map(|rank| rank.at(rank.trace.terminal.timestamp_ns));
    let end = end.max().unwrap_or(0);
    let mut events = vec![TraceEvent::meta(meta(&ranks)?)];
    events.push(start(1, None, &entrypoint(&ranks), 0, false));
    let measured = measured(&ranks);
    if let Some((from, to)) = measured {
        events.push(start(2, Some(1), &entrypoint(&ranks), from, true));
        events.push(ended(2, to - from));
    }
    let mut gradients = 0;
    for rank in &ranks {
        rank.spans(&mut events);
        rank.evidence(&mut events, &mut gradients);
    }
    events.push(ended(1, end));
    events.push(TraceEvent::Terminal(terminal::terminal(&ranks, end)));
    Ok(events)
}

fn thread_of(span: &SpanRecord) -> Option<u64> {
    span.start_extra.as_deref().and_then(|extra| extra.thread)
}

fn ranks(traces: &[(String, TraceDocument)]) -> Result<Vec<Rank<'_>>> {
    let mut ranks: Vec<Rank<'_>> = Vec::new();
    for (at, (file, trace)) in traces.iter().enumerate() {
        let rank = trace
            .run
            .tags
            .get("rank")
            .cloned()
            .unwrap_or_else(|| at.to_string());
        let name = format!("rank {rank}");
        if let Some(other) = ranks.iter().find(|other| other.name == name) {
            bail!(
                "{} and {file} are both of {name}; merge takes one trace of each rank: name the files of one step and run, or \
                 give each run a folder of its own",
                other.file
            );
        }
        ranks.push(Rank {
            name,
            file,
            trace,
            offset: 0,
            places: SpanIndex::of(&trace.spans),
            numbers: Vec::new(),
            first_thread: 0,
        });
    }
    Ok(ranks)
}

fn place(ranks: &mut [Rank<'_>], traces: &[&TraceDocument], align: Align) {
    let offsets = match align {
        Align::Clock => offsets(traces.iter().copied()),
        Align::Measured => {
            let starts: Vec<u64> = traces
                .iter()
                .map(|trace| measured_of(trace).map_or(0, |span| span.start_ns))
                .collect();
            let last = starts.iter().max().copied().unwrap_or(0);
            starts.into_iter().map(|start| last - start).collect()
        }
    };
    for (rank, offset) in ranks.iter_mut().zip(offsets) {
        rank.offset = offset;
    }
}

fn measured_of(trace: &TraceDocument) -> Option<&SpanRecord> {
    trace.spans.iter().find(|span| span.measured)
}

/// From the first start to the last end; what never ended in a failed trace lasts until that does.
fn measured(ranks: &[Rank<'_>]) -> Option<(u64, u64)> {
    let times = ranks.iter().filter_map(|rank| {
        let span = measured_of(rank.trace)?;
        let end = match span.closed {
            true => span.end_ns(),
            false => rank.trace.terminal.timestamp_ns,
        };
        Some((rank.at(span.start_ns), rank.at(end)))
    });
    times.reduce(|(from, to), (start, end)| (from.min(start), to.max(end)))
}

/// The values of all ranks, each once, in one text.
fn joined<'a>(ranks: &[Rank<'a>], of: impl Fn(&'a TraceRunMeta) -> &'a str) -> String {
    let mut values: Vec<&str> = Vec::new();
    for rank in ranks {
        let value = of(&rank.trace.run);
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values.join(", ")
}

fn entrypoint(ranks: &[Rank<'_>]) -> String {
    joined(ranks, |run| &run.entrypoint)
}

fn meta(ranks: &[Rank<'_>]) -> Result<TraceRunMeta> {
    let Some(first) = ranks.first() else {
        bail!("there is no rank");
    };
    let run = &first.trace.run;
    let all = |holds: fn(&TraceRunMeta) -> bool| ranks.iter().all(|rank| holds(&rank.trace.run));
    for rank in ranks {
        let phase = rank.trace.run.phase;
        ensure!(
            phase == run.phase,
            "{} is of phase {}, {} of {}; ranks of one step do the same",
            first.file,
            run.phase.as_str(),
            rank.file,
            phase.as_str()
        );
    }
    let mut tags: BTreeMap<String, String> = run.tags.clone();
    tags.retain(|key, value| {
        key != "rank"
            && ranks
                .iter()
                .all(|rank| rank.trace.run.tags.get(key) == Some(value))
    });
    let names: Vec<&str> = ranks
        .iter()
        .filter_map(|rank| rank.name.strip_prefix("rank "))
        .collect();
    tags.insert("ranks".to_owned(), names.join(","));
    // Each rank goes through its own items; the rate of all is that of their sum.
    let items = ranks
        .iter()
        .map(|rank| rank.trace.run.tags.get("items")?.parse::<u64>().ok());
    // A sum that is no number is not known.
    let items = items
        .reduce(|sum, items| sum?.checked_add(items?))
        .flatten();
    if let Some(items) = items {
        tags.insert("items".to_owned(), items.to_string());
    }
    let earliest = ranks.iter().min_by_key(|rank| rank.offset).unwrap_or(first);
    let step = ranks
        .iter()
        .map(|rank| rank.trace.run.capture_step)
        .max()
        .unwrap_or(1);
    let warmup = ranks
        .iter()
        .map(|rank| rank.trace.run.warmup_steps)
        .min()
        .unwrap_or(0);
    let synchronized = all(|run| run.timing_mode == TimingMode::DeviceSynchronized);
    Ok(TraceRunMeta {
        run_id: stamp::run_id(),
        correlation_id: joined(ranks, |run| &run.correlation_id),
        entrypoint: entrypoint(ranks),
        phase: run.phase,
        timestamp: earliest.trace.run.timestamp.clone(),
        capture_step: step,
        warmup_steps: warmup.min(step.saturating_sub(1)),
        device: joined(ranks, |run| &run.device),
        measured_region_device_synchronized: all(|run| run.measured_region_device_synchronized),
        timing_mode: if synchronized {
            TimingMode::DeviceSynchronized
        } else {
            TimingMode::Host
        },
        capture_contract: contract(ranks),
        comparison_identity: None,
        tags,
        candle_version: run.candle_version.clone(),
    })
}

/// Labels and manifests are of single ranks, and not promised of all together.
fn contract(ranks: &[Rank<'_>]) -> CaptureContract {
    let level = |of: fn(&CaptureContract) -> CoverageLevel| {
        let levels = ranks
            .iter()
            .map(|rank| of(&rank.trace.run.capture_contract));
        // None of all is none, all of all is all; in between is a part.
        let levels: Vec<CoverageLevel> = levels.collect();
        match levels.first() {
            Some(first) if levels.iter().all(|level| level == first) => *first,
            _ => CoverageLevel::Partial,
        }
    };
    let scopes: Vec<MeasurementScope> = ranks
        .iter()
        .map(|rank| rank.trace.run.capture_contract.measurement_scope)
        .collect();
    let scope = scopes
        .first()
        .copied()
        .filter(|first| scopes.iter().all(|scope| scope == first));
    let gradients = match level(|contract| contract.gradients) {
        CoverageLevel::Complete => CoverageLevel::Partial,
        level => level,
    };
    CaptureContract {
        measurement_scope: scope.unwrap_or(MeasurementScope::Unknown),
        operations: level(|contract| contract.operations),
        activations: level(|contract| contract.activations),
        tensors: level(|contract| contract.tensors),
        gradients,
        logical_memory: level(|contract| contract.logical_memory),
        physical_memory: level(|contract| contract.physical_memory),
        device_timing: level(|contract| contract.device_timing),
        ..CaptureContract::default()
    }
}

fn id(number: u64) -> String {
    format!("s{number}")
}

fn start(
    number: u64,
    parent: Option<u64>,
    name: &str,
    start_ns: u64,
    measured: bool,
) -> TraceEvent {
    TraceEvent::SpanStart(SpanStartEvent {
        id: id(number),
        parent_id: parent.map(id),
        name: name.to_owned(),
        start_ns,
        kind: SpanKind::Function,
        measured,
        step: None,
        extra: None,
    })
}

fn ended(number: u64, duration_ns: u64) -> TraceEvent {
    TraceEvent::SpanEnd(SpanEndEvent {
        id: id(number),
        duration_ns,
        extra: None,
    })
}

impl Rank<'_> {
    fn at(&self, nanoseconds: u64) -> u64 {
        nanoseconds.saturating_add(self.offset)
    }

    /// A span's new id; one that is not there keeps naming none.
    fn id(&self, old: &str) -> String {
        let place = self.places.get(old);
        let number = place.and_then(|place| self.numbers.get(place));
        number.map_or_else(|| self.named(old), |number| id(*number))
    }

    fn named(&self, name: &str) -> String {
        format!("{}/{name}", self.name)
    }

    fn spans(&self, events: &mut Vec<TraceEvent>) {
        let mut named = Vec::new();
        for span in &self.trace.spans {
            let is_root = span.parent_id.is_none();
            let mut extra = span.start_extra.as_deref().cloned().unwrap_or_default();
            self.thread(&mut extra, &mut named);
            events.push(TraceEvent::SpanStart(SpanStartEvent {
                id: self.id(&span.id),
                parent_id: Some(
                    span.parent_id
                        .as_deref()
                        .map_or(id(1), |parent| self.id(parent)),
                ),
                name: if is_root {
                    self.name.clone()
                } else {
                    span.name.clone()
                },
                start_ns: self.at(span.start_ns),
                kind: span.kind,
                measured: false,
                step: span.step,
                extra: Some(Box::new(extra)),
            }));
            if span.closed {
                events.push(TraceEvent::SpanEnd(SpanEndEvent {
                    id: self.id(&span.id),
                    duration_ns: span.duration_ns,
                    extra: span.end_extra.clone(),
                }));
            }
        }
    }

    /// All threads of ranks have numbers, so that none is taken for the merged trace's own.
    fn thread(&self, extra: &mut SpanStartExtra, named: &mut Vec<u64>) {
        let number = self.first_thread + extra.thread.unwrap_or(0);
        extra.since_previous_ns = None;
        extra.thread = Some(number);
        if extra.thread_name.is_some() || !named.contains(&number) {
            let name = extra.thread_name.take();
            extra.thread_name =
                Some(name.map_or_else(|| self.name.clone(), |name| self.named(&name)));
            named.push(number);
        }
    }

    fn evidence(&self, events: &mut Vec<TraceEvent>, gradients: &mut u64) {
        let trace = self.trace;
        for op in &trace.ops {
            let mut op = op.clone();
            op.span_id = self.id(&op.span_id);
            op.inputs = op.inputs.iter().map(|input| self.named(input)).collect();
            op.output = op.output.map(|output| self.named(&output));
            op.timestamp_ns = self.at(op.timestamp_ns);
            events.push(TraceEvent::Op(op));
        }
        for tensor in &trace.tensors {
            let mut tensor = tensor.clone();
            tensor.span_id = self.id(&tensor.span_id);
            tensor.tensor_id = self.named(&tensor.tensor_id);
            tensor.label = tensor.label.map(|label| self.named(&label));
            events.push(TraceEvent::Tensor(tensor));
        }
        for stats in &trace.tensor_stats {
            let mut stats = stats.clone();
            stats.span_id = self.id(&stats.span_id);
            stats.label = self.named(&stats.label);
            events.push(TraceEvent::TensorStats(stats));
        }
        for event in &trace.memory {
            let mut event = event.clone();
            event.timestamp_ns = self.at(event.timestamp_ns);
            event.span_id = self.id(&event.span_id);
            event.storage_id = self.named(&event.storage_id);
            event.tensor_id = self.named(&event.tensor_id);
            events.push(TraceEvent::Memory(event));
        }
        for sample in &trace.device_memory {
            let mut sample = sample.clone();
            sample.timestamp_ns = self.at(sample.timestamp_ns);
            sample.device = self.named(&sample.device);
            events.push(TraceEvent::DeviceMemory(sample));
        }
        for interval in &trace.device_intervals {
            let mut interval = interval.clone();
            interval.span_id = self.id(&interval.span_id);
            interval.clock_id = self.named(&interval.clock_id);
            events.push(TraceEvent::DeviceInterval(interval));
        }
        for gradient in &trace.gradients {
            let mut gradient = gradient.clone();
            *gradients += 1;
            gradient.event_id = format!("gradient-{gradients}");
            gradient.root = self.named(&gradient.root);
            events.push(TraceEvent::Gradient(gradient));
        }
        for edge in &trace.edges {
            events.push(TraceEvent::Edge(match edge {
                EdgeEvent::Call {
                    from_span,
                    to_span,
                    host_duration_ns,
                } => EdgeEvent::Call {
                    from_span: self.id(from_span),
                    to_span: self.id(to_span),
                    host_duration_ns: *host_duration_ns,
                },
                EdgeEvent::Data {
                    from_tensor,
                    to_tensor,
                } => EdgeEvent::Data {
                    from_tensor: self.named(from_tensor),
                    to_tensor: self.named(to_tensor),
                },
            }));
        }
    }
}
