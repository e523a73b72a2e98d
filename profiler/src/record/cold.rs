//! The records that are not a plain open or close. They take the same stream, boxed, in the order they happened.

use std::sync::Arc;

use super::detached::SpanCell;
use super::site::SpanSource;
use crate::trace::{GradientEvent, TensorEvent, TensorStatsEvent, TensorStatsExtra};

/// A rare record of a thread's stream.
pub(crate) enum Cold {
    /// A span begins, with a name of its own or as the measured one.
    Open {
        source: SpanSource,
        measured: Option<MeasuredStart>,
    },
    /// The innermost frame ends: while its thread unwinds, or because a span below it did (`cut`).
    Close { cut: bool, panicked: bool },
    /// The frame `below` levels under the innermost one has given out a handle.
    Given { below: u64, cell: Arc<SpanCell> },
    /// What follows happens inside `cell`'s span (`None`: the root), which this thread's stack does not hold.
    Enter { cell: Option<Arc<SpanCell>> },
    /// A detached span begins; its parent is decided when it ends. `on_stack`: it is a level of this thread's stack.
    OpenDetached { cell: Arc<SpanCell>, on_stack: bool },
    /// A detached span ended.
    CloseDetached(DetachedEnd),
    /// A panic began on this thread. Spans that open from here on did not cause it.
    Panic,
    /// Something was observed.
    Evidence {
        owner: Owner,
        evidence: Evidence,
        /// Clock ticks that observing took; they are taken off the enclosing spans.
        cost: u64,
    },
    /// The caller waited for the writer.
    Waited { ticks: u64 },
}

impl Cold {
    /// About the bytes that the record takes; the same whenever it is asked.
    pub(crate) fn weight(&self) -> usize {
        /// What goes with each: the box, and small texts.
        const OVERHEAD: usize = 64;
        let own = match self {
            Self::Open { source, .. } => source.own_text().len(),
            Self::OpenDetached { cell, .. } => {
                let source = cell.source.as_ref();
                size_of::<SpanCell>() + source.map_or(0, |source| source.own_text().len())
            }
            Self::Evidence { evidence, .. } => evidence.weight(),
            _ => 0,
        };
        size_of::<Self>() + OVERHEAD + own
    }
}

/// What only the measured span's start says.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MeasuredStart {
    pub(crate) since_previous_ns: Option<u64>,
}

/// How a detached span ended.
pub(crate) struct DetachedEnd {
    pub(crate) cell: Arc<SpanCell>,
    pub(crate) end: u64,
    /// The nearest ancestor that was still open; `None` is the root.
    pub(crate) parent: Option<Arc<SpanCell>>,
    pub(crate) cut: bool,
    pub(crate) panicked: bool,
    pub(crate) cancelled: bool,
    /// Ticks inside polls, and their number, where the span is a future's.
    pub(crate) polled: Option<(u64, u64)>,
}

/// Whose evidence it is.
pub(crate) enum Owner {
    /// The innermost open span.
    Innermost,
    /// The span that ended last on this level.
    LastEnded,
    /// A detached span, open or not.
    Cell(Arc<SpanCell>),
}

/// What can be observed. The writer fills in the span's id.
#[cfg_attr(
    not(feature = "candle"),
    allow(dead_code, reason = "without candle there are only numbers to observe")
)]
pub(crate) enum Evidence {
    Statistics {
        event: Box<TensorStatsEvent>,
        /// Whether values that are not finite are a problem; `None`: NaN and +inf are.
        alarm: Option<bool>,
    },
    Scalar {
        event: Box<TensorStatsEvent>,
        value: f64,
    },
    Tensor(Box<TensorEvent>),
    Gradient(Box<GradientEvent>),
    /// A problem that only the summary tells.
    Note(String),
}

impl Evidence {
    /// More bytes than its line can have.
    pub(crate) fn most_bytes(&self) -> usize {
        let shape = match self {
            Self::Statistics { event, .. } => 2 * event.shape.len(),
            Self::Tensor(event) => event.shape.len(),
            _ => 0,
        };
        1024 + 24 * shape + 6 * self.label().len()
    }

    fn weight(&self) -> usize {
        let (event, shape) = match self {
            Self::Statistics { event, .. } | Self::Scalar { event, .. } => (
                size_of::<TensorStatsEvent>() + size_of::<TensorStatsExtra>(),
                event.shape.len(),
            ),
            Self::Tensor(event) => (size_of::<TensorEvent>(), event.shape.len()),
            Self::Gradient(_) => (size_of::<GradientEvent>(), 0),
            Self::Note(text) => (text.len(), 0),
        };
        event + shape * size_of::<usize>() + self.label().len()
    }

    /// What it is of.
    pub(crate) fn label(&self) -> &str {
        match self {
            Self::Statistics { event, .. } | Self::Scalar { event, .. } => &event.label,
            Self::Tensor(event) => event.label.as_deref().unwrap_or("tensor"),
            Self::Gradient(event) => &event.key,
            Self::Note(_) => "",
        }
    }
}
