//! Any bytes: an error or a trace, and what our reader takes it writes as it was.

#![no_main]

use candle_profiler::trace::{analyze_health, parse_trace, parse_trace_reader, write_jsonl};
use candle_profiler_fuzz::{FOLDER, bounded};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(document) = bounded(data, || parse_trace_reader(data)) else {
        return;
    };
    let health = analyze_health(&document);
    let written = FOLDER.path().join("t.jsonl");
    write_jsonl(&written, &document.to_events()).expect("events that were read");
    let again = parse_trace(&written).expect("a trace that was written");
    assert_eq!(document.spans.len(), again.spans.len());
    assert_eq!(health, analyze_health(&again));
});
