//! Our own keys: written after the standard ones, ignored by other readers of the format.
//!
//! The standard keys of an event are parsed by its derived `Deserialize`, exactly as strictly as
//! the format is. `Split` stands between that and the JSON text and takes our keys out of the
//! stream on the way, so that a line is walked once, and a foreign value under one of our keys
//! (which the format allows) never makes a trace unreadable.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{
    self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor, value::StrDeserializer,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A value under one of our keys.
trait ExtraValue: Default {
    /// Nothing to write.
    fn is_absent(&self) -> bool;
    /// The value, or the absent one where it is not of this type.
    fn from_json(value: Value) -> Self;
}

impl<T: PlainValue> ExtraValue for Option<T> {
    fn is_absent(&self) -> bool {
        self.as_ref().is_none_or(|value| !value.is_writable())
    }

    fn from_json(value: Value) -> Self {
        serde_json::from_value(value).ok().flatten()
    }
}

/// A flag is written only when it is true.
impl ExtraValue for bool {
    fn is_absent(&self) -> bool {
        !self
    }

    fn from_json(value: Value) -> Self {
        value.as_bool().unwrap_or(false)
    }
}

trait PlainValue: de::DeserializeOwned {
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
    /// Stores `value` if `key` is one of ours; gives it back otherwise.
    fn put(&mut self, key: &str, value: Value);
    /// Whether `key` is one of ours.
    fn knows(key: &str) -> bool;
}

/// An event without keys of ours.
impl Extra for () {
    fn put(&mut self, _: &str, _: Value) {}

    fn knows(_: &str) -> bool {
        false
    }
}

impl<T: Extra> Extra for Option<Box<T>> {
    fn put(&mut self, key: &str, value: Value) {
        self.get_or_insert_default().put(key, value);
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
            fn put(&mut self, key: &str, value: Value) {
                match key {
                    $(stringify!($field) => self.$field = ExtraValue::from_json(value),)*
                    _ => {}
                }
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

/// A deserializer of a struct that hands the standard keys on and keeps ours.
pub(super) struct Split<'x, D, X> {
    pub(super) inner: D,
    pub(super) extra: &'x mut X,
}

impl<'de, D: Deserializer<'de>, X: Extra> Deserializer<'de> for Split<'_, D, X> {
    type Error = D::Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let visitor = SplitVisitor {
            visitor,
            fields,
            extra: self.extra,
        };
        self.inner.deserialize_struct(name, fields, visitor)
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_any(visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

struct SplitVisitor<'x, V, X> {
    visitor: V,
    fields: &'static [&'static str],
    extra: &'x mut X,
}

impl<'de, V: Visitor<'de>, X: Extra> Visitor<'de> for SplitVisitor<'_, V, X> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(f)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_map(SplitMap {
            map,
            fields: self.fields,
            extra: self.extra,
            kind_seen: false,
        })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_seq(seq)
    }
}

struct SplitMap<'x, A, X> {
    map: A,
    fields: &'static [&'static str],
    extra: &'x mut X,
    kind_seen: bool,
}

impl<'de, A: MapAccess<'de>, X: Extra> MapAccess<'de> for SplitMap<'_, A, X> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        loop {
            let Some(key) = self.map.next_key_seed(KeyOf::<X>::new(self.fields))? else {
                return Ok(None);
            };
            match key {
                Key::Standard(name) => {
                    return seed
                        .deserialize(StrDeserializer::<A::Error>::new(name))
                        .map(Some);
                }
                Key::Ours(name) => self.extra.put(&name, self.map.next_value()?),
                Key::Kind if self.kind_seen => return Err(de::Error::duplicate_field("kind")),
                Key::Kind => {
                    self.kind_seen = true;
                    self.map.next_value::<Checked>()?;
                }
                Key::Foreign => {
                    self.map.next_value::<Checked>()?;
                }
            }
        }
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

enum Key {
    Standard(&'static str),
    Ours(String),
    Kind,
    Foreign,
}

struct KeyOf<X> {
    fields: &'static [&'static str],
    extra: PhantomData<X>,
}

impl<X> KeyOf<X> {
    fn new(fields: &'static [&'static str]) -> Self {
        Self {
            fields,
            extra: PhantomData,
        }
    }
}

impl<'de, X: Extra> DeserializeSeed<'de> for KeyOf<X> {
    type Value = Key;

    fn deserialize<D: Deserializer<'de>>(self, inner: D) -> Result<Key, D::Error> {
        inner.deserialize_str(self)
    }
}

impl<X: Extra> Visitor<'_> for KeyOf<X> {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: de::Error>(self, key: &str) -> Result<Key, E> {
        let standard = self.fields.iter().find(|field| **field == key);
        Ok(match standard {
            Some(field) => Key::Standard(field),
            None if X::knows(key) => Key::Ours(key.to_owned()),
            None if key == "kind" => Key::Kind,
            None => Key::Foreign,
        })
    }
}

/// Walks a value without keeping it. Unlike [`IgnoredAny`] it looks into numbers and texts, and so
/// refuses exactly what a reader that keeps the value refuses.
pub(super) struct Checked;

impl<'de> Deserialize<'de> for Checked {
    fn deserialize<D: Deserializer<'de>>(inner: D) -> Result<Self, D::Error> {
        inner.deserialize_any(Checked)
    }
}

impl<'de> Visitor<'de> for Checked {
    type Value = Checked;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_str<E>(self, _: &str) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_unit<E>(self) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_none<E>(self) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<Checked, D::Error> {
        Checked::deserialize(inner)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Checked, A::Error> {
        while seq.next_element::<Checked>()?.is_some() {}
        Ok(Checked)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Checked, A::Error> {
        while map.next_entry::<Checked, Checked>()?.is_some() {}
        Ok(Checked)
    }
}
