//! What may stand where in a trace. Holds a few bytes for each span, whatever a trace's length.

use anyhow::{Result, bail, ensure};

use super::events::{SpanEndEvent, SpanStartEvent, TensorStatsEvent, TerminalEvent, TraceEvent};
use super::memory::exact_elem_count;
use super::schema::{RunOutcome, Schema};
use super::span_index::SpanIndex;

/// How the fault of a trace ends that was not written to its end.
pub(crate) const CUT_OFF: &str = "the trace was cut off";

/// Follows the records of a trace and refuses what cannot come next.
#[derive(Debug, Default)]
pub(crate) struct Sequence {
    schema: Option<Schema>,
    index: SpanIndex,
    /// Whether the span of each place has ended; a place is a span's position among the starts.
    closed: Vec<bool>,
    ended: bool,
}

impl Sequence {
    /// Takes the next record, and gives the place of the span that it starts or ends. After an error everything is as
    /// it was before.
    ///
    /// # Errors
    /// What [`super::parse_trace`] says of a record in the wrong place, and of impossible statistics or endings.
    pub(crate) fn admit(&mut self, event: &TraceEvent) -> Result<Option<usize>> {
        ensure!(
            !self.ended,
            "there is a record after the `terminal` one, which must be the last"
        );
        if let TraceEvent::Meta { schema, .. } = event {
            ensure!(
                self.schema.is_none(),
                "there is a second `meta` record, only the first one may be"
            );
            self.schema = Some(Schema::named(schema)?);
            return Ok(None);
        }
        let Some(schema) = self.schema else {
            bail!("the first record is no `meta`, which every trace starts with");
        };
        match event {
            TraceEvent::SpanStart(start) => return self.start(start).map(Some),
            TraceEvent::SpanEnd(end) => return self.end(end).map(Some),
            TraceEvent::TensorStats(stats) => {
                ensure!(
                    schema.has_tensor_stats(),
                    "schema {:?} has no `tensor_stats`, they came with the one after it",
                    schema.name()
                );
                check_stats(stats)?;
            }
            TraceEvent::Terminal(terminal) => {
                check_terminal(terminal)?;
                self.ended = true;
            }
            _ => {}
        }
        Ok(None)
    }

    /// Whether the last record may be the last.
    pub(crate) fn finish(&self) -> Result<()> {
        match self.schema {
            None => bail!("there is no record at all; a trace starts with a `meta` one"),
            Some(schema) if !self.ended && schema.has_terminal() => {
                bail!("there is no `terminal` record; {CUT_OFF}")
            }
            Some(_) => Ok(()),
        }
    }

    /// The place of a span that has started.
    pub(crate) fn place(&self, id: &str) -> Option<usize> {
        self.index.get(id)
    }

    /// Whether `terminal` has come.
    pub(crate) fn has_terminal(&self) -> bool {
        self.ended
    }

    fn start(&mut self, start: &SpanStartEvent) -> Result<usize> {
        ensure!(
            self.index.get(&start.id).is_none(),
            "span {:?} starts twice, an id stands for one span",
            start.id
        );
        let place = self.closed.len();
        ensure!(
            self.index.insert(&start.id, place),
            "there are more spans than can be read"
        );
        self.closed.push(false);
        Ok(place)
    }

    fn end(&mut self, end: &SpanEndEvent) -> Result<usize> {
        let place = self.index.get(&end.id);
        let Some((place, closed)) =
            place.and_then(|place| Some((place, self.closed.get_mut(place)?)))
        else {
            bail!(
                "span {:?} ends, but no span of this id has started before",
                end.id
            );
        };
        ensure!(!*closed, "span {:?} ends twice", end.id);
        *closed = true;
        Ok(place)
    }
}

/// Whether a trace that holds evidence of the host until `latest_ns` may end so.
///
/// # Errors
/// An end before some of it.
pub(crate) fn check_end(terminal: &TerminalEvent, latest_ns: u64) -> Result<()> {
    ensure!(
        terminal.timestamp_ns >= latest_ns,
        "the `terminal` record's timestamp_ns is {}, before host evidence at {latest_ns}; it must not be before any",
        terminal.timestamp_ns
    );
    Ok(())
}

fn check_terminal(terminal: &TerminalEvent) -> Result<()> {
    match (terminal.outcome, terminal.reason.as_deref()) {
        (RunOutcome::Complete, None) => Ok(()),
        (RunOutcome::Complete, Some(reason)) => {
            bail!(
                "the outcome is `complete`, but there is a reason {reason:?}; only `failed` has one"
            )
        }
        (RunOutcome::Failed, reason) => {
            ensure!(
                reason.is_some_and(|reason| !reason.trim().is_empty()),
                "the outcome is `failed`, but the reason is {reason:?}; it must say why"
            );
            Ok(())
        }
    }
}

fn check_stats(stats: &TensorStatsEvent) -> Result<()> {
    ensure!(
        !stats.label.trim().is_empty(),
        "tensor_stats: label is {:?}, it must not be empty",
        stats.label
    );
    ensure!(
        exact_elem_count(&stats.shape) == Some(stats.elements),
        "tensor_stats {:?}: elements is {}, it must be the product of shape {:?}",
        stats.label,
        stats.elements,
        stats.shape
    );
    ensure!(
        stats.non_finite <= stats.elements,
        "tensor_stats {:?}: non_finite is {}, of {} elements",
        stats.label,
        stats.non_finite,
        stats.elements
    );
    for (field, value, lowest) in [
        ("rms", stats.rms, 0.0),
        ("abs_max", stats.abs_max, 0.0),
        ("mean", stats.mean, f64::MIN),
    ] {
        ensure!(
            value.is_finite() && value >= lowest,
            "tensor_stats {:?}: {field} is {value}, allowed is a finite number from {lowest}",
            stats.label
        );
    }
    Ok(())
}
