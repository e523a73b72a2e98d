//! The lines of `candle-graph/trace/6`, read as today's events and written from them.
//!
//! What the old schema lacks is left out when it is written: statistics, device intervals, flows of data, the last line
//! and our own keys. What it has under other names is moved.

use serde::de::Error;
use serde_json::{Map, Value, json};

use super::events::{EdgeEvent, TraceEvent};
use super::schema::LEGACY_SCHEMA;
use crate::capability::CaptureContract;

/// Keys with another name then: (kind, then, now).
const MOVED: [(&str, &str, &str); 4] = [
    ("op", "storage_bytes", "output_dense_bytes"),
    ("op", "input_storage_bytes", "input_dense_bytes"),
    ("tensor", "storage_bytes", "dense_bytes"),
    ("edge", "duration_ns", "host_duration_ns"),
];

/// Whether a text that is no event of today may be one of the old schema: only its first line says so.
pub(super) fn is_meta(line: &str) -> bool {
    line.contains(LEGACY_SCHEMA)
}

/// Reads one line.
pub(super) fn parse_line(line: &str) -> serde_json::Result<TraceEvent> {
    let mut line: Value = serde_json::from_str(line)?;
    if let Some(event) = line.as_object_mut() {
        modernise(event).map_err(serde_json::Error::custom)?;
    }
    serde_json::from_value(line)
}

fn modernise(event: &mut Map<String, Value>) -> Result<(), String> {
    let kind = match event.get("kind").and_then(Value::as_str) {
        Some(kind) => kind.to_owned(),
        None => return Ok(()),
    };
    for (of, then, now) in MOVED {
        if kind == of
            && let Some(value) = event.remove(then)
        {
            event.insert(now.to_owned(), value);
        }
    }
    let mut default = |key: &str, value: Value| {
        event.entry(key).or_insert(value);
    };
    match kind.as_str() {
        "meta" => default("capture_contract", json!(CaptureContract::default())),
        "op" => {
            default("input_dense_bytes", json!(0));
            default("shape", json!([]));
        }
        "tensor" => default("shape", json!([])),
        "memory" => {
            let tensor = event.get("tensor_id").cloned().unwrap_or_default();
            event.insert("storage_id".to_owned(), tensor);
        }
        "edge" => {
            event.insert("edge_kind".to_owned(), json!("call"));
        }
        "device_memory" => {
            for key in ["used_bytes", "free_bytes"] {
                if event.get(key).is_none_or(Value::is_null) {
                    return Err(format!("device_memory has no {key}, schema {LEGACY_SCHEMA:?} requires it"));
                }
            }
        }
        "tensor_stats" | "device_interval" | "terminal" => {
            return Err(format!("schema {LEGACY_SCHEMA:?} has no `{kind}`"));
        }
        _ => {}
    }
    Ok(())
}

/// An event as a line of the old schema; none where it has no such line.
pub(crate) fn line_of(event: &TraceEvent) -> serde_json::Result<Option<Value>> {
    match event {
        TraceEvent::TensorStats(_)
        | TraceEvent::DeviceInterval(_)
        | TraceEvent::Terminal(_)
        | TraceEvent::Edge(EdgeEvent::Data { .. }) => return Ok(None),
        TraceEvent::DeviceMemory(sample)
            if sample.used_bytes.is_none() || sample.free_bytes.is_none() =>
        {
            return Ok(None);
        }
        _ => {}
    }
    let mut line = serde_json::to_value(without_extra(event))?;
    let Some(keys) = line.as_object_mut() else {
        return Ok(None);
    };
    match event {
        TraceEvent::Meta { .. } => {
            keys.insert("schema".to_owned(), json!(LEGACY_SCHEMA));
            keys.remove("capture_contract");
            keys.remove("comparison_identity");
        }
        TraceEvent::Memory(event) => {
            // The tensor's id stands for its storage: tensors that share one must be told as one.
            keys.insert("tensor_id".to_owned(), json!(event.storage_id));
            keys.remove("storage_id");
        }
        TraceEvent::Tensor(_) => {
            keys.remove("label");
        }
        TraceEvent::Edge(_) => {
            keys.remove("edge_kind");
        }
        TraceEvent::DeviceMemory(_) => {
            keys.remove("capacity_bytes");
        }
        _ => {}
    }
    let kind = keys.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    for (of, then, now) in MOVED {
        if kind == of
            && let Some(value) = keys.remove(now)
        {
            keys.insert(then.to_owned(), value);
        }
    }
    Ok(Some(line))
}

fn without_extra(event: &TraceEvent) -> TraceEvent {
    let mut event = event.clone();
    match &mut event {
        TraceEvent::SpanStart(start) => start.extra = None,
        TraceEvent::SpanEnd(end) => end.extra = None,
        TraceEvent::Tensor(tensor) => tensor.extra = None,
        TraceEvent::Gradient(gradient) => gradient.extra = None,
        _ => {}
    }
    event
}
