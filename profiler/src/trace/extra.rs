//! Our own keys: written after the standard ones, ignored by other readers of the format.
//!
//! A foreign value under one of our keys, which the format allows, never makes a trace unreadable.

use std::collections::BTreeMap;

use serde::de::MapAccess;
use serde::{Deserialize, Serialize};

use super::lenient::{Checked, Lenient, Wanted};

/// A value under one of our keys.
trait ExtraValue: Sized {
    /// What is read.
    type Plain: Wanted;
    /// Nothing to write.
    fn is_absent(&self) -> bool;
    /// The value, or the absent one where it was not of this type.
    fn of(read: Option<Self::Plain>) -> Self;
}

impl<T: PlainValue> ExtraValue for Option<T> {
    type Plain = T;

    fn is_absent(&self) -> bool {
        self.as_ref().is_none_or(|value| !value.is_writable())
    }

    fn of(read: Option<T>) -> Self {
        read
    }
}

/// A flag is written only when it is true.
impl ExtraValue for bool {
    type Plain = bool;

    fn is_absent(&self) -> bool {
        !self
    }

    fn of(read: Option<bool>) -> Self {
        read.unwrap_or(false)
    }
}

trait PlainValue: Wanted {
    fn is_writable(&self) -> bool {
        true
    }
}

impl PlainValue for f64 {
    /// JSON has no NaN and no infinity.
    fn is_writable(&self) -> bool {
        self.is_finite()
    }
}

impl PlainValue for bool {}
impl PlainValue for i64 {}
impl PlainValue for u32 {}
impl PlainValue for u64 {}
impl PlainValue for String {}
impl PlainValue for Vec<String> {}
impl PlainValue for Vec<usize> {}
impl PlainValue for BTreeMap<String, u64> {}

/// The keys of one kind of event.
pub(super) trait Extra: Default {
    /// Reads the value that stands next under `key`, which is one of ours.
    fn read<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error>;
    /// Whether `key` is one of ours.
    fn knows(key: &str) -> bool;
}

/// An event without keys of ours.
impl Extra for () {
    fn read<'de, A: MapAccess<'de>>(&mut self, _: &str, map: &mut A) -> Result<(), A::Error> {
        map.next_value::<Checked>().map(drop)
    }

    fn knows(_: &str) -> bool {
        false
    }
}

impl<T: Extra> Extra for Option<Box<T>> {
    fn read<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        self.get_or_insert_default().read(key, map)
    }

    fn knows(key: &str) -> bool {
        T::knows(key)
    }
}

/// Why a variable that is held fast has no gradient.
pub(crate) const FROZEN: &str = "frozen";
/// Why what is kept beside the variables, such as running means, has no gradient.
pub(crate) const BUFFER: &str = "buffer";

macro_rules! extras {
    ($($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $field:ident: $type:ty,)* })*) => {$(
        $(#[$about])*
        #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct $name {
            $(
                $(#[$doc])*
                #[serde(skip_serializing_if = "ExtraValue::is_absent")]
                pub $field: $type,
            )*
        }

        impl Extra for $name {
            fn read<'de, A: MapAccess<'de>>(
                &mut self,
                key: &str,
                map: &mut A,
            ) -> Result<(), A::Error> {
                match key {
                    $(stringify!($field) => {
                        let Lenient(value) = map.next_value()?;
                        self.$field = ExtraValue::of(value);
                    })*
                    _ => map.next_value::<Checked>().map(drop)?,
                }
                Ok(())
            }

            fn knows(key: &str) -> bool {
                matches!(key, $(stringify!($field))|*)
            }
        }
    )*};
}

extras! {
    /// Our own keys of a `span_start`.
    SpanStartExtra {
        /// The source file of the call site; on its first span only.
        file: Option<String>,
        /// The line in `file`.
        line: Option<u32>,
        /// The thread, where it is not the one that opened the session.
        thread: Option<u64>,
        /// The thread's name; on its first span only.
        thread_name: Option<String>,
        /// Nanoseconds since the measured region of the same name ended before.
        since_previous_ns: Option<u64>,
    }
    /// Our own keys of a `span_end`.
    SpanEndExtra {
        /// Nanoseconds that a future was being polled.
        busy_ns: Option<u64>,
        /// How often it was.
        polls: Option<u64>,
        /// Nanoseconds that the profiler itself took inside the span.
        overhead_ns: Option<u64>,
        /// Bytes allocated less bytes freed by the span's thread.
        mem_net: Option<i64>,
        /// The most bytes above the start's level.
        mem_peak: Option<u64>,
        /// Closed because a span below it was closed first.
        cut: bool,
        /// Its future was dropped before it was done.
        cancelled: bool,
        /// Left by a panic.
        panicked: bool,
        /// Ended by the end of the session.
        open_at_end: bool,
    }
    /// Our own keys of a `tensor`.
    TensorExtra {
        /// Whether candle tracks it for a backward pass.
        tracked: Option<bool>,
        /// `cut` where the graph ends although an input depended on a variable.
        autograd: Option<String>,
        /// The operation that would have kept the graph.
        twin: Option<String>,
    }
    /// Our own keys of a `tensor_stats`.
    TensorStatsExtra {
        /// The smallest finite element.
        min: Option<f64>,
        /// The largest finite element.
        max: Option<f64>,
        /// The standard deviation of the finite elements.
        std: Option<f64>,
        /// The root of the sum of their squares.
        l2: Option<f64>,
        /// How many elements are zero.
        zeros: Option<u64>,
        /// How many are NaN.
        nan: Option<u64>,
        /// How many are +inf.
        pos_inf: Option<u64>,
        /// How many are -inf.
        neg_inf: Option<u64>,
        /// The share above 90 % of the largest finite number of the dtype.
        overflow_share: Option<f64>,
        /// The share that is not zero but below the smallest normal number of the dtype.
        underflow_share: Option<f64>,
        /// The index of the first element that is not finite.
        first_non_finite: Option<Vec<usize>>,
        /// Whether the values are an alarm, where that is not what it usually is: NaN and +inf that are meant
        /// (`allow_nonfinite`) are none, -inf is one where the run asked for that.
        alarm: Option<bool>,
    }
    /// Our own keys of a `gradient`.
    GradientExtra {
        /// Why it is missing.
        reason: Option<String>,
        /// The family of the parameter.
        family: Option<String>,
        /// It is zero, and was in the capture before of the same run.
        zero_before: bool,
        /// The backward pass of its root, from the second on.
        pass: Option<u64>,
    }
    /// Our own keys of a `terminal`.
    TerminalExtra {
        /// Spans left out to keep within the budget, by call site.
        dropped: Option<BTreeMap<String, u64>>,
        /// Records that came after the end.
        late: Option<u64>,
        /// Nanoseconds that callers waited for the writer.
        waited_ns: Option<u64>,
        /// Tensors in the largest graph that was differentiated, variables included.
        graph_nodes: Option<u64>,
        /// The dense bytes of those that are no variables.
        graph_bytes: Option<u64>,
        /// How many of them were made in earlier steps.
        graph_carried: Option<u64>,
        /// Bytes of gradients that belong to no variable.
        graph_constant_bytes: Option<u64>,
        /// Tensors in a graph that was built where no backward pass ran.
        unused_graph_nodes: Option<u64>,
        /// Their dense bytes.
        unused_graph_bytes: Option<u64>,
        /// The places that cut the graph, a sentence each.
        cuts: Option<Vec<String>>,
        /// Other findings, a sentence each.
        notes: Option<Vec<String>>,
        /// How the memory of the process grew from call to call, as a sentence.
        growth: Option<String>,
    }
}

// No float in these, so equality is total.
impl Eq for SpanStartExtra {}
impl Eq for SpanEndExtra {}
impl Eq for TensorExtra {}
impl Eq for GradientExtra {}
impl Eq for TerminalExtra {}
