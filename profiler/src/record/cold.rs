//! The records that are not a plain open or close. They take the same stream, boxed, in the order they happened.

use std::sync::Arc;

use super::crossing::{Backward, Crossing};
use super::detached::SpanCell;
use super::site::{RecordSite, SpanSource};
use crate::allocator::Taken;
use crate::nonfinite::Good;
#[cfg(feature = "candle")]
use crate::tensor::Later;
use crate::trace::{
    DeviceMemoryEvent, GradientEvent, OpEvent, TensorEvent, TensorStatsEvent, TensorStatsExtra,
};

/// A rare record of a thread's stream.
pub(crate) enum Cold {
    /// A span begins, with a name of its own or as the measured one.
    Open {
        source: SpanSource,
        measured: Option<MeasuredStart>,
    },
    /// The innermost frame ends: while its thread unwinds, or because a span below it did (`cut`).
    Close {
        cut: bool,
        panicked: bool,
        memory: Option<Taken>,
    },
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
    /// So many clock ticks were spent on observing, which came to nothing that is told; they are taken off the enclosing
    /// spans.
    Spent { ticks: u64 },
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
    /// What its thread took in it, where that is known.
    pub(crate) memory: Option<Taken>,
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
pub(crate) enum Evidence {
    Statistics {
        event: Box<TensorStatsEvent>,
        /// Whether values that are not finite are a problem; `None`: NaN and +inf are.
        alarm: Option<bool>,
        /// What the label's tensor held when it was all right, where it is not now.
        before: Option<Good>,
    },
    /// Statistics that a device still has to give.
    #[cfg(feature = "candle")]
    Later(Arc<Later>),
    Scalar {
        event: Box<TensorStatsEvent>,
        value: f64,
        /// Whether it is a problem that it is not finite.
        alarms: bool,
    },
    Tensor(Box<TensorEvent>),
    /// A device's memory, at the record's time.
    DeviceMemory(Box<DeviceMemoryEvent>),
    /// An operation between two readings of the clock, which the event leaves open.
    Op {
        event: Box<OpEvent>,
        from: u64,
        to: u64,
    },
    Gradient {
        event: Box<GradientEvent>,
        /// The variable's serial number, where it is known.
        var: Option<u64>,
    },
    /// Something tracked went into a call, something untracked came out.
    Crossing {
        crossing: Box<Crossing>,
        /// The place of a function that has no span of its own.
        site: Option<&'static RecordSite>,
    },
    /// A tracked tensor came out of a call right under the measured one: the tensors of its graph, and their bytes.
    Built {
        nodes: u64,
        bytes: u64,
    },
    /// A backward pass.
    Backward(Box<Backward>),
    /// The text of the function whose span this is detaches what calls by these names give, separated by blanks.
    Detaches(&'static str),
    /// A problem that only the summary tells.
    Note(String),
}

impl Evidence {
    /// More bytes than its line can have.
    pub(crate) fn most_bytes(&self) -> usize {
        let shape = match self {
            Self::Statistics { event, .. } => 2 * event.shape.len(),
            Self::Tensor(event) => event.shape.len(),
            Self::Op { event, .. } => event.shape.len() + 2 * event.inputs.len(),
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
            // What a device still has to give, and the reductions of it that wait there.
            #[cfg(feature = "candle")]
            Self::Later(_) => (size_of::<TensorStatsEvent>(), 0),
            Self::DeviceMemory(_) => (size_of::<DeviceMemoryEvent>(), 0),
            Self::Op { event, .. } => {
                let inputs = event.inputs.iter().map(String::len).sum::<usize>();
                (size_of::<OpEvent>() + inputs, event.shape.len())
            }
            Self::Gradient { .. } => (size_of::<GradientEvent>(), 0),
            Self::Crossing { crossing, .. } => (
                size_of::<Crossing>() + 64 * crossing.outputs.len(),
                crossing.inputs.len()
                    + crossing.vars.as_ref().map_or(0, Vec::len)
                    + crossing.made_of.as_ref().map_or(0, Vec::len),
            ),
            Self::Built { .. } | Self::Detaches(_) => (0, 0),
            Self::Backward(pass) => (
                size_of::<Backward>(),
                pass.reached.as_ref().map_or(0, Vec::len)
                    + pass.made_of.as_ref().map_or(0, Vec::len)
                    + 2 * pass.entries.as_ref().map_or(0, Vec::len),
            ),
            Self::Note(text) => (text.len(), 0),
        };
        event + shape * size_of::<usize>() + self.label().len()
    }

    /// What it is of.
    pub(crate) fn label(&self) -> &str {
        match self {
            Self::Statistics { event, .. } | Self::Scalar { event, .. } => &event.label,
            #[cfg(feature = "candle")]
            Self::Later(later) => later.label(),
            Self::Tensor(event) => event.label.as_deref().unwrap_or("tensor"),
            Self::Gradient { event, .. } => &event.key,
            Self::Op { event, .. } => &event.op_name,
            Self::DeviceMemory(event) => &event.device,
            Self::Crossing { .. }
            | Self::Built { .. }
            | Self::Backward(_)
            | Self::Detaches(_)
            | Self::Note(_) => "",
        }
    }
}
