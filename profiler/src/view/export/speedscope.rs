//! The files of speedscope, one profile for each track.

use std::collections::HashMap;
use std::io::{self, Write};

use super::json_text::text;
use super::tracks::{Slice, Tracks, What};
use super::{thread_names, title, track_name};
use crate::trace::TraceDocument;

/// Writes traces as one file: a profile for each track of each trace, in nanoseconds from the opening of its session.
///
/// # Errors
/// What `to` says.
pub fn speedscope(traces: &[TraceDocument], to: &mut dyn Write) -> io::Result<()> {
    let laid: Vec<Tracks> = traces.iter().map(Tracks::of).collect();
    let mut frames = Frames::default();
    for (trace, tracks) in traces.iter().zip(&laid) {
        for slice in &tracks.slices {
            frames.of(trace, slice);
        }
    }
    let mut frame = frames.list.iter().peekable();
    to.write_all(b"{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"exporter\":\"candle-profiler\",\n\"name\":")?;
    text(to, &traces.iter().map(title).collect::<Vec<_>>().join(", "))?;
    to.write_all(b",\n\"shared\":{\"frames\":[")?;
    while let Some((name, place)) = frame.next() {
        to.write_all(b"\n{\"name\":")?;
        text(to, name)?;
        if let Some((file, line)) = place {
            to.write_all(b",\"file\":")?;
            text(to, file)?;
            write!(to, ",\"line\":{line}")?;
        }
        to.write_all(if frame.peek().is_some() { b"}," } else { b"}" })?;
    }
    to.write_all(b"\n]},\n\"profiles\":[")?;
    let mut any = false;
    for (trace, tracks) in traces.iter().zip(&laid) {
        let names = thread_names(trace);
        for (track, slices) in tracks.tracks.iter().zip(tracks.by_track()) {
            to.write_all(if any { b",\n" } else { b"\n" })?;
            any = true;
            let name = format!("{}: {}", title(trace), track_name(track, &names));
            profile(to, &name, trace, tracks, &slices, &mut frames)?;
        }
    }
    to.write_all(b"\n]}\n")
}

type Place<'a> = Option<(&'a str, u32)>;

/// The frames, each once.
#[derive(Default)]
struct Frames<'a> {
    known: HashMap<&'a str, usize>,
    list: Vec<(&'a str, Place<'a>)>,
}

impl<'a> Frames<'a> {
    fn of(&mut self, trace: &'a TraceDocument, slice: &Slice) -> usize {
        let (name, place) = match slice.what {
            What::Span(span) => trace.spans.get(span).map_or(("", None), |span| {
                let extra = span.start_extra.as_deref();
                let place = extra.and_then(|extra| Some((extra.file.as_deref()?, extra.line?)));
                (span.name.as_str(), place)
            }),
            What::Op(op) => (trace.ops.get(op).map_or("", |op| &op.op_name), None),
        };
        let frame = *self.known.entry(name).or_insert_with(|| {
            self.list.push((name, None));
            self.list.len() - 1
        });
        // Only the first span of a call site says where it is.
        if let Some((_, known)) = self.list.get_mut(frame) {
            *known = known.or(place);
        }
        frame
    }
}

fn profile<'a>(
    to: &mut dyn Write,
    name: &str,
    trace: &'a TraceDocument,
    tracks: &Tracks,
    slices: &[usize],
    frames: &mut Frames<'a>,
) -> io::Result<()> {
    let slices = || slices.iter().filter_map(|place| tracks.slices.get(*place));
    let start = slices().map(|slice| slice.start_ns).min().unwrap_or(0);
    let end = slices().map(|slice| slice.end_ns).max().unwrap_or(0);
    to.write_all(b"{\"type\":\"evented\",\"name\":")?;
    text(to, name)?;
    write!(to, ",\"unit\":\"nanoseconds\",\"startValue\":{start},\"endValue\":{end},\"events\":[")?;
    let mut any = false;
    let mut event = |to: &mut dyn Write, kind: char, frame: usize, at: u64| {
        let comma = if any { "," } else { "" };
        any = true;
        write!(to, "{comma}\n{{\"type\":\"{kind}\",\"frame\":{frame},\"at\":{at}}}")
    };
    let mut open: Vec<(usize, u64)> = Vec::new();
    for slice in slices() {
        while let Some((frame, end)) = open.pop_if(|(_, end)| *end <= slice.start_ns) {
            event(to, 'C', frame, end)?;
        }
        let frame = frames.of(trace, slice);
        event(to, 'O', frame, slice.start_ns)?;
        open.push((frame, slice.end_ns));
    }
    while let Some((frame, end)) = open.pop() {
        event(to, 'C', frame, end)?;
    }
    to.write_all(b"]}")
}
