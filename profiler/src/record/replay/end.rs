//! What ends a trace: promised gradients, open spans, cut graphs, the root, the terminal line.

use super::{ROOT, Replay, Write};
use crate::record::budget::REASON;
use crate::record::cuts::Cut;
use crate::record::names;
use crate::record::session::End;
use crate::trace::span_lines::{EndLine, cut_to};
use crate::trace::{RunOutcome, TerminalEvent, TraceEvent};
use crate::view::summary::HowClosed;

impl Replay {
    /// Writes the promised gradients. A promise that was not kept makes the capture fail.
    fn keep_promise(&mut self, end: End, write: Write<'_>) -> End {
        let Some(promise) = self.promise.take() else {
            return end;
        };
        let complete = matches!(end, End::Complete);
        self.budget.release(promise.bytes());
        let (events, broken) = promise.settle();
        for event in events {
            let line = self.finished_gradient(Box::new(event));
            self.line(&line);
            self.make_room(write);
        }
        match broken {
            Some(reason) if complete => End::Failed(reason),
            _ => end,
        }
    }

    /// Writes what ends a trace: the spans of other threads and futures, the root, the terminal line. `true`: it failed.
    pub(in crate::record) fn end(&mut self, at: u64, end: End, write: Write<'_>) -> bool {
        for (event, var) in std::mem::take(&mut self.unexplained) {
            self.missing(event, var);
            self.make_room(write);
        }
        let end = self.keep_promise(end, write);
        while let Some((id, span)) = self.open_detached.pop_first() {
            let cell = &span.cell;
            let parent = cell
                .parent
                .as_ref()
                .and_then(|parent| parent.nearest_open());
            let parent = parent.and_then(|parent| parent.id());
            let flags = HowClosed {
                open_at_end: true,
                ..HowClosed::default()
            };
            self.detached_lines(
                id,
                &span,
                parent,
                at.max(cell.start),
                flags,
                None,
                None,
                None,
            );
            self.make_room(write);
        }
        #[cfg(feature = "candle")]
        self.read_back(write);
        self.cut_graphs();
        let now = self.ns(at);
        EndLine {
            id: ROOT,
            duration_ns: now,
            overhead_ns: (self.root_overhead > 0).then_some(self.root_overhead.min(now)),
            ..EndLine::default()
        }
        .write(&mut self.lines);
        let (outcome, reason) = match end {
            End::Complete => (RunOutcome::Complete, None),
            End::Failed(reason) => (RunOutcome::Failed, Some(cut_to(reason, REASON))),
        };
        let failed = reason.is_some();
        let mut terminal = TerminalEvent {
            outcome,
            timestamp_ns: now,
            reason,
            extra: None,
        };
        let extra = terminal.extra.get_or_insert_default();
        extra.late = (self.late > 0).then_some(self.late);
        let dropped = self.budget.dropped();
        for (site, count) in &dropped {
            self.digest.dropped(site, *count);
        }
        extra.dropped = (!dropped.is_empty()).then_some(dropped);
        extra.waited_ns = (self.waited > 0).then_some(self.waited);
        self.digest.late(self.late);
        self.digest.waited(self.waited);
        self.digest.tell(extra);
        if let Some(reason) = &terminal.reason {
            self.digest.failed(reason.clone());
        }
        self.line(&TraceEvent::Terminal(terminal));
        failed
    }

    /// Tells of the places that cut the graph.
    fn cut_graphs(&mut self) {
        let (nodes, bytes) = self.built;
        if nodes > 0 && !self.cuts.knows_of_backward() {
            self.digest.unused_graph(nodes, bytes);
        }
        for mut cut in self.cuts.judge(&|var| names::of(var).is_some()) {
            let sentence = cut.sentence();
            crate::say::once(&sentence);
            self.digest.cut(row_of_cut(&cut, sentence));
            let extra = cut.event.extra.get_or_insert_default();
            extra.tracked = Some(false);
            extra.autograd = Some("cut".to_owned());
            let twin = cut.twin();
            let mut event = cut.event;
            event.extra.get_or_insert_default().twin = twin;
            event.span_id = format!("s{}", cut.spot.span);
            self.line_with_room(&TraceEvent::Tensor(*event));
        }
    }
}

/// What the summary says of a cut besides the sentence of stderr.
fn row_of_cut(cut: &Cut, mut sentence: String) -> String {
    if cut.calls > 1 {
        sentence += &format!("; {} calls", cut.calls);
    }
    let named: Vec<String> = cut.lost.iter().filter_map(|var| names::of(*var)).collect();
    let shown = named.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
    let more = cut.lost.len() - named.len().min(3);
    match (named.len(), more) {
        (_, 0) if named.is_empty() => {}
        (0, more) => sentence += &format!("; {more} variables get no gradient"),
        (_, 0) => sentence += &format!("; no gradient for {shown}"),
        (_, more) => sentence += &format!("; no gradient for {shown} and {more} more"),
    }
    sentence
}
