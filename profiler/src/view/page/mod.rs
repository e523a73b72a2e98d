//! A page to look at traces with: one file that needs nothing else.
//!
//! The charts are drawn by uPlot (MIT, see `vendor/uPlot.LICENSE`), the timeline by `page.js` on a canvas: it draws each
//! pixel's column once, however many spans fall into it.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::export::tracks::{Tracks, What};
use super::summary::{Digest, Gradients, Statistics, scalar_of, trends};
use crate::trace::span_index::SpanIndex;
use crate::trace::{RunOutcome, SpanRecord, TensorStatsEvent, TraceDocument};

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
const LIBRARY: &str = include_str!("vendor/uPlot.iife.min.js");
const LIBRARY_STYLE: &str = include_str!("vendor/uPlot.min.css");

/// Lines of a span's own details that are shown.
const MOST_DETAILS: usize = 12;

/// A trace to be shown.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) name: String,
    pub(crate) document: TraceDocument,
    pub(crate) digest: Digest,
}

/// Writes the page of some traces.
///
/// # Errors
/// What `to` says.
pub(crate) fn write(traces: &[Shown], to: &mut dyn Write) -> io::Result<()> {
    let title = match traces {
        [only] => title_of(&only.document),
        traces => format!("{} traces", traces.len()),
    };
    let steps: Vec<trends::Step> = traces
        .iter()
        .map(|shown| trends::Step::of(&shown.name, &shown.digest))
        .collect();
    let data = Data {
        title: &title,
        traces,
        trends: (traces.len() > 1).then(|| trends::as_json(&steps)),
    };
    for (at, part) in PAGE.split(['{', '}']).enumerate() {
        match (at % 2, part) {
            (1, "title") => to.write_all(in_text(&title).as_bytes())?,
            (1, "style") => write!(to, "{LIBRARY_STYLE}\n{STYLE}")?,
            (1, "data") => serde_json::to_writer(InScript(&mut *to), &data)?,
            (1, "library") => to.write_all(LIBRARY.as_bytes())?,
            (1, "script") => to.write_all(SCRIPT.as_bytes())?,
            _ => to.write_all(part.as_bytes())?,
        }
    }
    Ok(())
}

fn in_text(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

/// JSON that no name can end early: `<` is the only letter that begins an end of a script.
struct InScript<'a>(&'a mut dyn Write);

impl Write for InScript<'_> {
    fn write(&mut self, json: &[u8]) -> io::Result<usize> {
        for (at, part) in json.split(|byte| *byte == b'<').enumerate() {
            if at > 0 {
                self.0.write_all(br"\u003c")?;
            }
            self.0.write_all(part)?;
        }
        Ok(json.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// What the script finds in the page. Traces are put into it one after another, so that only one is there at a time.
#[derive(Serialize)]
struct Data<'a> {
    title: &'a str,
    #[serde(serialize_with = "one_by_one")]
    traces: &'a [Shown],
    trends: Option<Value>,
}

fn one_by_one<S: Serializer>(traces: &[Shown], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(traces.iter().map(trace))
}

/// One of the traces.
#[derive(Serialize)]
struct Trace<'a> {
    title: String,
    about: String,
    summary: Value,
    names: Vec<&'a str>,
    tracks: Vec<Value>,
    spans: Spans,
    details: BTreeMap<usize, Vec<String>>,
    stats: Vec<Record<'a>>,
    gradients: Vec<Value>,
}

/// The statistics of a tensor, or a number.
#[derive(Serialize)]
struct Record<'a> {
    label: &'a str,
    span: Option<usize>,
    #[serde(rename = "type")]
    kind: String,
    non_finite: u64,
    /// What is not finite was not meant.
    alarm: bool,
    rms: f64,
    mean: f64,
    abs_max: f64,
    min: Option<f64>,
    max: Option<f64>,
    std: Option<f64>,
    zeros: Option<u64>,
    cut: bool,
}

/// The slice of each span.
struct Places<'a> {
    index: SpanIndex,
    slices: Vec<Option<usize>>,
    spans: &'a [SpanRecord],
}

impl<'a> Places<'a> {
    fn of(document: &'a TraceDocument, layout: &Tracks) -> Self {
        let mut slices = vec![None; document.spans.len()];
        for (at, slice) in layout.slices.iter().enumerate() {
            if let What::Span(span) = slice.what
                && let Some(slot) = slices.get_mut(span)
            {
                *slot = Some(at);
            }
        }
        Places {
            index: SpanIndex::of(&document.spans),
            slices,
            spans: &document.spans,
        }
    }

    fn get(&self, id: &str) -> Option<usize> {
        self.slices.get(self.index.get(id)?).copied().flatten()
    }

    fn measured(&self) -> Option<usize> {
        let span = self.spans.iter().rposition(|span| span.measured)?;
        self.slices.get(span).copied().flatten()
    }
}

fn title_of(trace: &TraceDocument) -> String {
    let run = &trace.run;
    let what = match run.phase.as_str() {
        "infer" => "call",
        _ => "step",
    };
    let rank = run.tags.get("rank");
    let rank = rank.map_or(String::new(), |rank| format!(", rank {rank}"));
    format!("{} {what} {}{rank}", run.entrypoint, run.capture_step)
}

fn trace(shown: &Shown) -> Trace<'_> {
    let document = &shown.document;
    let run = &document.run;
    let failed = match document.terminal.outcome {
        RunOutcome::Failed => ", failed",
        RunOutcome::Complete => "",
    };
    let layout = Tracks::of(document);
    let mut names = Names::default();
    let mut spans = Spans::default();
    let places = Places::of(document, &layout);
    spans.measured = places.measured();
    spans.depth = depths(&layout);
    for slice in &layout.slices {
        let name = match slice.what {
            What::Span(span) => document.spans.get(span).map_or("", |span| &span.name),
            What::Op(op) => document.ops.get(op).map_or("", |op| &op.op_name),
        };
        spans.name.push(names.of(name));
        spans.start.push(slice.start_ns);
        spans.length.push(slice.end_ns - slice.start_ns);
        spans.track.push(slice.track);
    }
    let cuts = cuts(document);
    let stats: Vec<Record<'_>> = document
        .tensor_stats
        .iter()
        .map(|stats| record(stats, places.get(&stats.span_id), &cuts))
        .collect();
    let mut details = details(document, &layout, &places);
    spans.bad = vec![0; layout.slices.len()];
    for stats in document.tensor_stats.iter().filter(|stats| alarms(stats)) {
        let at = places.get(&stats.span_id);
        if let Some(flag) = at.and_then(|at| spans.bad.get_mut(at)) {
            *flag = 1;
        }
    }
    for lines in details.values_mut() {
        lines.truncate(MOST_DETAILS);
    }
    Trace {
        title: title_of(document),
        about: format!(
            "{} on {}, {}{failed}",
            shown.name, run.device, run.timestamp
        ),
        summary: super::summary::json::summary(&shown.name, &shown.digest),
        names: names.list,
        tracks: track_names(document, &layout),
        spans,
        details,
        stats,
        gradients: gradients(document),
    }
}

/// Each variable once for each root, with its norms in all passes.
fn gradients(document: &TraceDocument) -> Vec<Value> {
    let all = Gradients::of(&document.gradients);
    let rows = all.iter().flat_map(|(root, row)| {
        row.variables().map(move |(key, variable)| {
            let norms = variable.norms();
            json!({
                "root": root, "key": key, "state": variable.state().as_str(), "passes": variable.passes(),
                "least": norms.map(|norms| norms.least), "most": norms.map(|norms| norms.most),
                "reason": variable.reason(),
            })
        })
    });
    rows.collect()
}

#[derive(Default, Serialize)]
struct Spans {
    name: Vec<usize>,
    start: Vec<u64>,
    length: Vec<u64>,
    track: Vec<usize>,
    depth: Vec<usize>,
    /// 1 where something is not finite.
    bad: Vec<u8>,
    measured: Option<usize>,
}

/// Names, each once.
#[derive(Default)]
struct Names<'a> {
    known: HashMap<&'a str, usize>,
    list: Vec<&'a str>,
}

impl<'a> Names<'a> {
    fn of(&mut self, name: &'a str) -> usize {
        *self.known.entry(name).or_insert_with(|| {
            self.list.push(name);
            self.list.len() - 1
        })
    }
}

/// How many slices are open around each on its track.
fn depths(layout: &Tracks) -> Vec<usize> {
    let mut open: Vec<Vec<u64>> = vec![Vec::new(); layout.tracks.len()];
    let depth = |slice: &super::export::tracks::Slice| {
        let Some(open) = open.get_mut(slice.track) else {
            return 0;
        };
        while open.pop_if(|end| *end <= slice.start_ns).is_some() {}
        open.push(slice.end_ns);
        open.len() - 1
    };
    layout.slices.iter().map(depth).collect()
}

fn track_names(trace: &TraceDocument, layout: &Tracks) -> Vec<Value> {
    let names = super::export::thread_names(trace);
    let name = |track: &super::export::tracks::Track| json!({"name": super::export::track_name(track, &names)});
    layout.tracks.iter().map(name).collect()
}

/// By span and label: the tensors at which the graph was cut.
fn cuts(trace: &TraceDocument) -> HashMap<(&str, &str), Option<&str>> {
    let cut = trace.tensors.iter().filter_map(|tensor| {
        let extra = tensor
            .extra
            .as_deref()
            .filter(|extra| extra.autograd.as_deref() == Some("cut"))?;
        Some((
            (tensor.span_id.as_str(), tensor.label.as_deref()?),
            extra.twin.as_deref(),
        ))
    });
    cut.collect()
}

/// As in the summary: -inf is usually meant, and a run may mean more than that.
fn alarms(stats: &TensorStatsEvent) -> bool {
    let told = stats.extra.as_deref().and_then(|extra| extra.alarm);
    Statistics::of(stats, told).alarms()
}

fn record<'a>(
    stats: &'a TensorStatsEvent,
    span: Option<usize>,
    cuts: &HashMap<(&str, &str), Option<&str>>,
) -> Record<'a> {
    let extra = stats.extra.as_deref();
    let scalar = scalar_of(stats);
    let key = (stats.span_id.as_str(), stats.label.as_str());
    Record {
        label: &stats.label,
        span,
        kind: scalar.map_or_else(
            || format!("{} {:?}", stats.dtype, stats.shape),
            |_| "number".to_owned(),
        ),
        non_finite: stats.non_finite,
        alarm: alarms(stats),
        rms: stats.rms,
        mean: stats.mean,
        abs_max: stats.abs_max,
        min: extra.and_then(|extra| extra.min),
        max: extra.and_then(|extra| extra.max),
        std: extra.and_then(|extra| extra.std),
        zeros: extra.and_then(|extra| extra.zeros),
        cut: cuts.contains_key(&key),
    }
}

/// By the place of a slice: what else is known of it, in lines.
fn details(
    trace: &TraceDocument,
    layout: &Tracks,
    places: &Places<'_>,
) -> BTreeMap<usize, Vec<String>> {
    let mut details: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for (at, slice) in layout.slices.iter().enumerate() {
        match slice.what {
            What::Span(span) => {
                if let Some(span) = trace.spans.get(span) {
                    let lines = span_lines(span);
                    if !lines.is_empty() {
                        details.insert(at, lines);
                    }
                }
            }
            What::Op(op) => {
                if let Some(op) = trace.ops.get(op) {
                    details.insert(
                        at,
                        vec![format!(
                            "gives {} {:?} on {}",
                            op.dtype, op.shape, op.device
                        )],
                    );
                }
            }
        }
    }
    for stats in &trace.tensor_stats {
        if let Some(at) = places.get(&stats.span_id) {
            let text = match scalar_of(stats) {
                Some(value) => format!("{} = {value}", stats.label),
                None => format!(
                    "{} {} {:?}: rms {:.4e}",
                    stats.label, stats.dtype, stats.shape, stats.rms
                ),
            };
            details.entry(at).or_default().push(text);
        }
    }
    for tensor in &trace.tensors {
        let extra = tensor.extra.as_deref();
        if extra.is_some_and(|extra| extra.autograd.as_deref() == Some("cut"))
            && let Some(at) = places.get(&tensor.span_id)
        {
            let label = tensor.label.as_deref().unwrap_or(&tensor.tensor_id);
            let twin = extra.and_then(|extra| extra.twin.as_deref());
            let twin = twin.map_or(String::new(), |twin| format!("; {twin} keeps it"));
            details
                .entry(at)
                .or_default()
                .push(format!("graph cut at {label}{twin}"));
        }
    }
    details
}

fn span_lines(span: &SpanRecord) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(step) = span.step {
        lines.push(format!("step: {}", step.as_str()));
    }
    if !span.closed {
        lines.push("never ended".to_owned());
    }
    if let Some(extra) = span.start_extra.as_deref()
        && let (Some(file), Some(line)) = (&extra.file, extra.line)
    {
        lines.push(format!("{file}:{line}"));
    }
    let Some(extra) = span.end_extra.as_deref() else {
        return lines;
    };
    let numbers = [
        ("busy", extra.busy_ns, " ns"),
        ("polls", extra.polls, ""),
        ("the profiler's own work", extra.overhead_ns, " ns"),
        ("most memory above the start", extra.mem_peak, " bytes"),
    ];
    for (name, value, unit) in numbers {
        lines.extend(value.map(|value| format!("{name}: {value}{unit}")));
    }
    for (text, is) in [
        ("closed early, by the end of a span around it", extra.cut),
        ("cancelled (its future was dropped)", extra.cancelled),
        ("left by a panic", extra.panicked),
        ("still open at the end", extra.open_at_end),
    ] {
        if is {
            lines.push(text.to_owned());
        }
    }
    lines
}
