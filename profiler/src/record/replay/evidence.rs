//! What was observed: records become lines, and the summary hears of them.

#[cfg(feature = "candle")]
use super::Write;
use super::{Replay, SpanName};
use crate::record::cold::Evidence;
use crate::record::cuts::Spot;
use crate::record::names;
use crate::record::site::RecordSite;
use crate::record::zeros;
use crate::trace::{GradientEvent, GradientExtra, GradientState, TraceEvent};
use crate::view::summary::{Statistics, gradient_of, scalar_alarms};

/// So many gradients wait for an explanation.
const MOST_UNEXPLAINED: usize = 65_536;

/// Where evidence belongs.
pub(in crate::record) struct Where<'a> {
    pub(in crate::record) id: u64,
    pub(in crate::record) span: SpanName,
    /// Names the span and those around it.
    pub(in crate::record) path: &'a dyn Fn() -> String,
    /// What tells the spans around it, and it, from others.
    pub(in crate::record) chain: &'a dyn Fn() -> Vec<u64>,
    /// The span or one around it says that the graph ends in it.
    pub(in crate::record) detached: bool,
    /// When it was recorded, in nanoseconds.
    pub(in crate::record) now: u64,
    /// When the span began, where it is open on the thread's own stack.
    pub(in crate::record) since: u64,
}

impl Replay {
    pub(in crate::record) fn evidence(&mut self, at: Where<'_>, evidence: Evidence) {
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
            return self.budget.drop_record(evidence.label());
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
                self.line_with_room(&TraceEvent::TensorStats(*event));
            }
            #[cfg(feature = "candle")]
            Evidence::Later(later) => self.later.push((id, span, path(), later)),
            Evidence::Scalar {
                mut event,
                value,
                alarms,
            } => {
                event.span_id = span_id;
                self.digest.scalar(&event.label, value, alarms);
                if alarms != scalar_alarms(&event, value) {
                    event.extra.get_or_insert_default().alarm = Some(alarms);
                }
                self.line_with_room(&TraceEvent::TensorStats(*event));
            }
            Evidence::Tensor(mut event) => {
                event.span_id = span_id;
                self.line_with_room(&TraceEvent::Tensor(*event));
            }
            Evidence::DeviceMemory(mut event) => {
                event.timestamp_ns = now;
                self.digest
                    .device_memory(&event.device, event.used_bytes.unwrap_or(0));
                self.line_with_room(&TraceEvent::DeviceMemory(*event));
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
                self.line_with_room(&TraceEvent::Op(*event));
            }
            Evidence::Gradient { event, var } => match var {
                Some(var) if event.state == GradientState::Missing => {
                    if self.handed && self.unexplained.len() < MOST_UNEXPLAINED {
                        self.unexplained.push((event, var));
                    } else {
                        self.missing(event, var);
                    }
                }
                _ => self.gradient(event),
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
    pub(super) fn read_back(&mut self, write: Write<'_>) {
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
            self.make_room(write);
        }
    }

    /// Writes a gradient, or keeps it with room for its line where the capture promises some.
    /// A variable without a gradient, which may lie behind a cut.
    pub(super) fn missing(&mut self, mut event: Box<GradientEvent>, var: u64) {
        if let Some(reason) = self.cuts.reason(var, names::length_in_norm(var)) {
            event.extra.get_or_insert_default().reason = Some(reason);
        }
        self.gradient(event);
    }

    fn gradient(&mut self, event: Box<GradientEvent>) {
        let Some(promise) = &mut self.promise else {
            let line = self.finished_gradient(event);
            return self.line_with_room(&line);
        };
        let before = promise.bytes();
        let fits = |more| self.budget.fits(self.lines.len(), more);
        match promise.take(event, fits) {
            Ok(()) => {
                self.budget.release(before);
                self.budget.keep(promise.bytes());
            }
            Err(event) => self.budget.drop_record(&event.key),
        }
    }

    pub(super) fn finished_gradient(&mut self, mut event: Box<GradientEvent>) -> TraceEvent {
        self.gradients += 1;
        event.event_id = format!("gradient-{}", self.gradients);
        if let Some(extra) = &mut event.extra {
            extra.pass = extra
                .pass
                .and_then(|pass| self.passes.number(&event.root, pass));
            if **extra == GradientExtra::default() {
                event.extra = None;
            }
        }
        if event.state == GradientState::Zero {
            if zeros::twice(&event.root, &event.key, self.origin) {
                event.extra.get_or_insert_default().zero_before = true;
            }
        } else if event.state != GradientState::Missing {
            // Another pass of the step may not depend on it.
            zeros::forget(&event.root, &event.key);
        }
        self.digest.gradient(&gradient_of(&event));
        TraceEvent::Gradient(*event)
    }
}

/// What a record is of.
pub(super) fn label_of(event: &TraceEvent) -> &str {
    match event {
        TraceEvent::TensorStats(event) => &event.label,
        TraceEvent::Tensor(event) => event.label.as_deref().unwrap_or("tensor"),
        TraceEvent::Op(event) => &event.op_name,
        TraceEvent::DeviceMemory(event) => &event.device,
        TraceEvent::Gradient(event) => &event.key,
        _ => "",
    }
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
