//! The JSON of Chrome's trace viewer, which Perfetto reads, in its array form.

use std::collections::HashMap;
use std::io::{self, Write};

use serde_json::{Map, Value, json};

use super::json_text::{micros, text};
use super::tracks::{Slice, Tracks, What};
use super::{gradient_norms, offsets, thread_names, title, track_name};
use crate::trace::span_index::SpanIndex;
use crate::trace::{EdgeEvent, MemoryAction, SpanRecord, TraceDocument};
use crate::view::summary::scalar_of;
use crate::view::text::number;

/// Writes traces as one timeline: a process for each trace, a track for each thread, slices for spans and operations,
/// counters for device memory, recorded storages, numbers and gradient norms, arrows from a span to those that it
/// started on other tracks and from an operation to the one that used its output. Traces are placed by the times at
/// which they were opened.
///
/// # Errors
/// What `to` says.
pub fn chrome(traces: &[TraceDocument], to: &mut dyn Write) -> io::Result<()> {
    let mut writer = Writer {
        to,
        any: false,
        next_track: 1,
        next_flow: 1,
    };
    writer.to.write_all(b"[")?;
    for (at, (trace, offset)) in traces.iter().zip(offsets(traces)).enumerate() {
        let mut process = Process {
            trace,
            // Process 0 is the idle one of an operating system.
            pid: at + 1,
            offset,
            tracks: Tracks::of(trace),
            first_track: 0,
        };
        process.first_track = writer.reserve(process.tracks.tracks.len());
        process.names(&mut writer)?;
        process.slices(&mut writer)?;
        process.counters(&mut writer)?;
        process.device_intervals(&mut writer)?;
    }
    writer.to.write_all(b"\n]\n")
}

struct Writer<'a> {
    to: &'a mut dyn Write,
    any: bool,
    next_track: usize,
    next_flow: u64,
}

impl Writer<'_> {
    /// So many numbers of threads that are unique in the file.
    fn reserve(&mut self, tracks: usize) -> usize {
        let first = self.next_track;
        self.next_track += tracks;
        first
    }

    fn start(&mut self, phase: char, pid: usize, tid: usize) -> io::Result<()> {
        let comma = if self.any { "," } else { "" };
        self.any = true;
        write!(
            self.to,
            "{comma}\n{{\"ph\":\"{phase}\",\"pid\":{pid},\"tid\":{tid}"
        )
    }

    fn at(&mut self, nanoseconds: u64) -> io::Result<()> {
        self.to.write_all(b",\"ts\":")?;
        micros(self.to, nanoseconds)
    }

    fn name(&mut self, name: &str) -> io::Result<()> {
        self.to.write_all(b",\"name\":")?;
        text(self.to, name)
    }

    fn end(&mut self) -> io::Result<()> {
        self.to.write_all(b"}")
    }

    fn name_of(&mut self, what: &str, pid: usize, tid: usize, name: &str) -> io::Result<()> {
        self.start('M', pid, tid)?;
        self.name(what)?;
        self.to.write_all(b",\"args\":{\"name\":")?;
        text(self.to, name)?;
        self.to.write_all(b"}")?;
        self.end()
    }

    fn counter(&mut self, pid: usize, at: u64, name: &str, values: &Value) -> io::Result<()> {
        self.start('C', pid, 0)?;
        self.at(at)?;
        self.name(name)?;
        write!(self.to, ",\"args\":{values}")?;
        self.end()
    }
}

/// An arrow that begins or ends at a slice.
#[derive(Clone, Copy)]
struct Arrow {
    id: u64,
    name: &'static str,
    ends: bool,
}

struct Process<'a> {
    trace: &'a TraceDocument,
    pid: usize,
    offset: u64,
    tracks: Tracks,
    /// The number of the first track as a thread.
    first_track: usize,
}

impl Process<'_> {
    /// A time of the trace on the common scale.
    fn at(&self, nanoseconds: u64) -> u64 {
        nanoseconds.saturating_add(self.offset)
    }

    fn names(&self, writer: &mut Writer<'_>) -> io::Result<()> {
        writer.name_of(
            "process_name",
            self.pid,
            self.first_track,
            &title(self.trace),
        )?;
        let names = thread_names(self.trace);
        for (place, track) in self.tracks.tracks.iter().enumerate() {
            let name = track_name(track, &names);
            writer.name_of("thread_name", self.pid, self.first_track + place, &name)?;
        }
        Ok(())
    }

    fn slices(&self, writer: &mut Writer<'_>) -> io::Result<()> {
        let arrows = self.arrows(writer);
        let statistics = self.statistics();
        for (place, slice) in self.tracks.slices.iter().enumerate() {
            let tid = self.first_track + slice.track;
            writer.start('X', self.pid, tid)?;
            writer.at(self.at(slice.start_ns))?;
            writer.to.write_all(b",\"dur\":")?;
            micros(writer.to, slice.end_ns - slice.start_ns)?;
            self.describe(writer, slice, &statistics)?;
            writer.end()?;
            for arrow in arrows.get(&place).into_iter().flatten() {
                // Right behind its slice, so that the slice is the innermost one of the track at this time.
                writer.start(if arrow.ends { 'f' } else { 's' }, self.pid, tid)?;
                writer.at(self.at(slice.start_ns))?;
                writer.name(arrow.name)?;
                write!(writer.to, ",\"cat\":\"flow\",\"id\":{}", arrow.id)?;
                if arrow.ends {
                    writer.to.write_all(b",\"bp\":\"e\"")?;
                }
                writer.end()?;
            }
        }
        Ok(())
    }

    fn describe(
        &self,
        writer: &mut Writer<'_>,
        slice: &Slice,
        statistics: &HashMap<&str, Map<String, Value>>,
    ) -> io::Result<()> {
        match slice.what {
            What::Span(place) => match self.trace.spans.get(place) {
                Some(span) => {
                    writer.name(&span.name)?;
                    write!(writer.to, ",\"cat\":\"{}\",\"args\":", span.kind)?;
                    span_details(writer.to, span, statistics.get(span.id.as_str()))
                }
                None => Ok(()),
            },
            What::Op(place) => match self.trace.ops.get(place) {
                Some(op) => {
                    writer.name(&op.op_name)?;
                    let what = format!("{} {:?}", op.dtype, op.shape);
                    let details = json!({
                        "span": op.span_id, "output": what, "device": op.device, "tensor": op.output,
                        "inputs": op.inputs, "output_dense_bytes": op.output_dense_bytes,
                        "input_dense_bytes": op.input_dense_bytes,
                    });
                    write!(writer.to, ",\"cat\":\"operation\",\"args\":{details}")
                }
                None => Ok(()),
            },
        }
    }

    /// By the id of a span: label, and what was found in the tensor.
    fn statistics(&self) -> HashMap<&str, Map<String, Value>> {
        let mut all: HashMap<&str, Map<String, Value>> = HashMap::new();
        for stats in &self.trace.tensor_stats {
            let text = match scalar_of(stats) {
                Some(value) => number(value, 6),
                None => format!(
                    "{} {:?}: rms {}, mean {}, abs max {}, not finite {}",
                    stats.dtype,
                    stats.shape,
                    number(stats.rms, 6),
                    number(stats.mean, 6),
                    number(stats.abs_max, 6),
                    stats.non_finite
                ),
            };
            let of_span = all.entry(&stats.span_id).or_default();
            of_span.insert(stats.label.clone(), json!(text));
        }
        // As for the counters: the details tell what no scale has a place for.
        if let Some(measured) = self.trace.spans.iter().find(|span| span.measured) {
            for (root, norm) in gradient_norms(self.trace) {
                if !norm.is_finite() {
                    let of_span = all.entry(&measured.id).or_default();
                    of_span.insert(norm_of(&root), json!("not finite"));
                }
            }
        }
        all
    }

    /// By the place of a slice. An arrow never points back in time.
    fn arrows(&self, writer: &mut Writer<'_>) -> HashMap<usize, Vec<Arrow>> {
        let mut pairs: Vec<(usize, usize, &'static str)> = Vec::new();
        for (place, slice) in self.tracks.slices.iter().enumerate() {
            let parent = slice
                .parent
                .and_then(|parent| Some((parent, self.tracks.slices.get(parent)?)));
            if let Some((parent, above)) = parent
                && above.track != slice.track
            {
                pairs.push((parent, place, "started"));
            }
        }
        let producers = self.producers();
        for edge in &self.trace.edges {
            if let EdgeEvent::Data {
                from_tensor,
                to_tensor,
            } = edge
                && let (Some(from), Some(to)) = (
                    producers.get(from_tensor.as_str()),
                    producers.get(to_tensor.as_str()),
                )
            {
                pairs.push((*from, *to, "data"));
            }
        }
        let mut arrows: HashMap<usize, Vec<Arrow>> = HashMap::new();
        for (from, to, name) in pairs.into_iter().filter(|(from, to, _)| from < to) {
            let id = writer.next_flow;
            writer.next_flow += 1;
            for (place, ends) in [(from, false), (to, true)] {
                arrows
                    .entry(place)
                    .or_default()
                    .push(Arrow { id, name, ends });
            }
        }
        arrows
    }

    /// By the id of a tensor: the slice of the operation that made it, or else of the span that it was seen in.
    fn producers(&self) -> HashMap<&str, usize> {
        if self.trace.edges.is_empty() {
            return HashMap::new();
        }
        let mut spans = HashMap::new();
        let mut producers = HashMap::new();
        for (place, slice) in self.tracks.slices.iter().enumerate() {
            match slice.what {
                What::Span(span) => {
                    if let Some(span) = self.trace.spans.get(span) {
                        spans.insert(span.id.as_str(), place);
                    }
                }
                What::Op(op) => {
                    if let Some(output) = self.trace.ops.get(op).and_then(|op| op.output.as_deref())
                    {
                        producers.insert(output, place);
                    }
                }
            }
        }
        for tensor in &self.trace.tensors {
            if let Some(place) = spans.get(tensor.span_id.as_str()) {
                producers.entry(&tensor.tensor_id).or_insert(*place);
            }
        }
        producers
    }

    fn counters(&self, writer: &mut Writer<'_>) -> io::Result<()> {
        let pid = self.pid;
        for sample in &self.trace.device_memory {
            let mut values = Map::new();
            for (name, bytes) in [
                ("used", sample.used_bytes),
                ("free", sample.free_bytes),
                ("reserved", sample.reserved_bytes),
            ] {
                values.extend(bytes.map(|bytes| (name.to_owned(), json!(bytes))));
            }
            if !values.is_empty() {
                let name = format!("memory of {}", sample.device);
                writer.counter(
                    pid,
                    self.at(sample.timestamp_ns),
                    &name,
                    &Value::Object(values),
                )?;
            }
        }
        for (at, device, bytes) in storages(self.trace) {
            let name = format!("recorded storages on {device}");
            writer.counter(pid, self.at(at), &name, &json!({"bytes": bytes}))?;
        }
        let index = SpanIndex::of(&self.trace.spans);
        let end_of = |id: &str| {
            let span = self.trace.spans.get(index.get(id)?)?;
            Some(span.end_ns())
        };
        let mut numbers: Vec<(u64, &str, f64)> = Vec::new();
        for stats in &self.trace.tensor_stats {
            // What is not finite has no place on a scale; the span's details have it.
            if let Some(value) = scalar_of(stats).filter(|value| value.is_finite()) {
                let at = end_of(&stats.span_id).unwrap_or(self.trace.terminal.timestamp_ns);
                numbers.push((at, &stats.label, value));
            }
        }
        numbers.sort_by_key(|(at, ..)| *at);
        for (at, label, value) in numbers {
            writer.counter(pid, self.at(at), label, &json!({"value": value}))?;
        }
        let measured = self.trace.spans.iter().find(|span| span.measured);
        let at = measured.map_or(self.trace.terminal.timestamp_ns, SpanRecord::end_ns);
        let norms = gradient_norms(self.trace);
        for (root, norm) in norms.into_iter().filter(|(_, norm)| norm.is_finite()) {
            let name = norm_of(&root);
            writer.counter(pid, self.at(at), &name, &json!({"value": norm}))?;
        }
        Ok(())
    }

    /// A device's times are its own: they stand on tracks that say so.
    fn device_intervals(&self, writer: &mut Writer<'_>) -> io::Result<()> {
        let mut tracks: HashMap<(&str, &str, &str), usize> = HashMap::new();
        let mut intervals: Vec<_> = self.trace.device_intervals.iter().collect();
        intervals.sort_by_key(|interval| interval.start_ns);
        if intervals.is_empty() {
            return Ok(());
        }
        let index = SpanIndex::of(&self.trace.spans);
        for interval in intervals {
            let key = (&*interval.device, &*interval.stream_id, &*interval.clock_id);
            let tid = match tracks.get(&key) {
                Some(tid) => *tid,
                None => {
                    let tid = writer.reserve(1);
                    tracks.insert(key, tid);
                    let (device, stream, clock) = key;
                    let name = format!("{device} stream {stream} (its own clock, {clock})");
                    writer.name_of("thread_name", self.pid, tid, &name)?;
                    tid
                }
            };
            let span = index.get(&interval.span_id);
            let span = span.and_then(|place| self.trace.spans.get(place));
            writer.start('X', self.pid, tid)?;
            writer.at(interval.start_ns)?;
            writer.to.write_all(b",\"dur\":")?;
            micros(writer.to, interval.duration_ns)?;
            writer.name(span.map_or(&interval.span_id, |span| &span.name))?;
            let details = json!({"span": interval.span_id, "backend": interval.backend});
            write!(writer.to, ",\"cat\":\"device\",\"args\":{details}")?;
            writer.end()?;
        }
        Ok(())
    }
}

fn norm_of(root: &str) -> String {
    format!("gradient norm of {root}")
}

fn span_details(
    to: &mut dyn Write,
    span: &SpanRecord,
    statistics: Option<&Map<String, Value>>,
) -> io::Result<()> {
    to.write_all(b"{\"id\":")?;
    text(to, &span.id)?;
    if span.measured {
        to.write_all(b",\"measured\":true")?;
    }
    if let Some(step) = span.step {
        write!(to, ",\"step\":\"{}\"", step.as_str())?;
    }
    if !span.closed {
        to.write_all(b",\"never_ended\":true")?;
    }
    let extras = [
        span.start_extra.as_deref().map(serde_json::to_value),
        span.end_extra.as_deref().map(serde_json::to_value),
    ];
    for extra in extras.into_iter().flatten() {
        for (key, value) in extra?.as_object().into_iter().flatten() {
            write!(to, ",\"{key}\":{value}")?;
        }
    }
    if let Some(statistics) = statistics {
        let statistics = serde_json::to_string(statistics)?;
        write!(to, ",\"recorded\":{statistics}")?;
    }
    to.write_all(b"}")
}

/// Live bytes by device, after each event.
fn storages(trace: &TraceDocument) -> Vec<(u64, &str, u64)> {
    let mut live: HashMap<(&str, &str), u64> = HashMap::new();
    let mut totals: HashMap<&str, u64> = HashMap::new();
    let mut events: Vec<_> = trace.memory.iter().collect();
    events.sort_by_key(|event| event.timestamp_ns);
    let mut counters = Vec::new();
    for event in events {
        let key = (&*event.device, &*event.storage_id);
        let total = totals.entry(&event.device).or_default();
        match event.action {
            MemoryAction::Alloc => {
                if live.insert(key, event.bytes).is_none() {
                    *total = total.saturating_add(event.bytes);
                }
            }
            MemoryAction::Free => *total = total.saturating_sub(live.remove(&key).unwrap_or(0)),
        }
        counters.push((event.timestamp_ns, &*event.device, *total));
    }
    counters
}
