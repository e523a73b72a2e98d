//! From the text of a line to its event.
//!
//! The derived reader of [`TraceEvent`] copies every value before it knows the kind, at up to fifty times the size of the
//! text. Here the kind is found first, and the line then read as that kind's own type.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{self, DeserializeSeed, Deserializer as _, Error as _, MapAccess, Visitor};
use serde_json::{Deserializer, Result, from_str};

use super::events::{EdgeEvent, TraceEvent};
use super::lenient::Checked;
use super::schema::TraceRunMeta;
use super::split::Split;

/// What a line may be.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Meta,
    SpanStart,
    SpanEnd,
    Op,
    Tensor,
    TensorStats,
    Memory,
    DeviceMemory,
    DeviceInterval,
    Gradient,
    Edge,
    Terminal,
}

/// Reads one line.
pub(crate) fn parse_line(line: &str) -> Result<TraceEvent> {
    match parse_usual(line) {
        Some(event) => Ok(event),
        None => parse_any(line),
    }
}

/// A line that names its kind first, as all writers do: it is walked once. Whatever is refused here is asked again, so
/// that verdict and message are one.
fn parse_usual(line: &str) -> Option<TraceEvent> {
    let (kind, _) = line.strip_prefix(r#"{"kind":""#)?.split_once('"')?;
    match kind {
        "span_start" => from_str(line).map(TraceEvent::SpanStart),
        "span_end" => from_str(line).map(TraceEvent::SpanEnd),
        "op" => from_str(line).map(TraceEvent::Op),
        "tensor" => from_str(line).map(TraceEvent::Tensor),
        "tensor_stats" => from_str(line).map(TraceEvent::TensorStats),
        "memory" => from_str(line).map(TraceEvent::Memory),
        "device_memory" => from_str(line).map(TraceEvent::DeviceMemory),
        "device_interval" => from_str(line).map(TraceEvent::DeviceInterval),
        "gradient" => from_str(line).map(TraceEvent::Gradient),
        "terminal" => from_str(line).map(TraceEvent::Terminal),
        _ => return None,
    }
    .ok()
}

fn parse_any(line: &str) -> Result<TraceEvent> {
    Ok(match tag(line, "kind")? {
        Kind::Meta => TraceEvent::Meta {
            schema: tag(line, "schema")?,
            run: Box::new(plain::<TraceRunMeta>(line)?),
        },
        Kind::SpanStart => TraceEvent::SpanStart(from_str(line)?),
        Kind::SpanEnd => TraceEvent::SpanEnd(from_str(line)?),
        Kind::Op => TraceEvent::Op(from_str(line)?),
        Kind::Tensor => TraceEvent::Tensor(from_str(line)?),
        Kind::TensorStats => TraceEvent::TensorStats(from_str(line)?),
        Kind::Memory => TraceEvent::Memory(from_str(line)?),
        Kind::DeviceMemory => TraceEvent::DeviceMemory(from_str(line)?),
        Kind::DeviceInterval => TraceEvent::DeviceInterval(from_str(line)?),
        Kind::Gradient => TraceEvent::Gradient(from_str(line)?),
        Kind::Edge => TraceEvent::Edge(edge(line)?),
        Kind::Terminal => TraceEvent::Terminal(from_str(line)?),
    })
}

fn edge(line: &str) -> Result<EdgeEvent> {
    #[derive(Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum EdgeKind {
        Call,
        Data,
    }
    #[derive(Deserialize)]
    struct Call {
        from_span: String,
        to_span: String,
        host_duration_ns: u64,
    }
    #[derive(Deserialize)]
    struct Data {
        from_tensor: String,
        to_tensor: String,
    }
    Ok(match tag(line, "edge_kind")? {
        EdgeKind::Call => {
            let Call {
                from_span,
                to_span,
                host_duration_ns,
            } = plain(line)?;
            EdgeEvent::Call {
                from_span,
                to_span,
                host_duration_ns,
            }
        }
        EdgeKind::Data => {
            let Data {
                from_tensor,
                to_tensor,
            } = plain(line)?;
            EdgeEvent::Data {
                from_tensor,
                to_tensor,
            }
        }
    })
}

/// The line as a type that has no keys of ours, and would pass over others without a look at them.
pub(super) fn plain<'de, T: Deserialize<'de>>(line: &'de str) -> Result<T> {
    let mut from = Deserializer::from_str(line);
    let value = T::deserialize(Split {
        inner: &mut from,
        extra: &mut (),
    })?;
    from.end()?;
    Ok(value)
}

/// What stands under one key of the line, all of which is looked at.
pub(super) fn tag<'de, T: Deserialize<'de>>(line: &'de str, key: &'static str) -> Result<T> {
    let mut from = Deserializer::from_str(line);
    let value = from.deserialize_any(TagVisitor {
        key,
        value: PhantomData,
    })?;
    from.end()?;
    Ok(value)
}

/// Whether a key is this one; no other is kept.
struct IsKey(&'static str);

impl<'de> DeserializeSeed<'de> for IsKey {
    type Value = bool;

    fn deserialize<D: de::Deserializer<'de>>(self, from: D) -> std::result::Result<bool, D::Error> {
        from.deserialize_str(self)
    }
}

impl Visitor<'_> for IsKey {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: de::Error>(self, key: &str) -> std::result::Result<bool, E> {
        Ok(key == self.0)
    }
}

struct TagVisitor<T> {
    key: &'static str,
    value: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for TagVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with a `kind`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<T, A::Error> {
        let mut found = None;
        while let Some(is_wanted) = map.next_key_seed(IsKey(self.key))? {
            if !is_wanted {
                map.next_value::<Checked>()?;
            } else if found.is_some() {
                return Err(A::Error::duplicate_field(self.key));
            } else {
                found = Some(map.next_value()?);
            }
        }
        found.ok_or_else(|| A::Error::missing_field(self.key))
    }
}
