//! Any bytes as a trace that broke off: an error, or a trace that parses.

#![no_main]

use std::fs;

use candle_profiler::trace::parse_trace;
use candle_profiler::view::{RepairOptions, repair};
use candle_profiler_fuzz::{FOLDER, bounded};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let broken = FOLDER.path().join("t.jsonl.partial");
    // What stands after a line of its own is the list of open spans.
    let (trace, list) = split(data);
    fs::write(&broken, trace).expect("a file");
    if let Some(list) = list {
        fs::write(FOLDER.path().join("t.jsonl.open"), list).expect("a file");
    }
    let mut options = RepairOptions::default();
    options.force = true;
    if let Ok(repaired) = bounded(data, || repair(&broken, &options)) {
        parse_trace(&repaired.path).expect("a repaired trace");
        fs::remove_file(&repaired.path).expect("to remove it");
    }
    let _ = fs::remove_file(&broken);
    let _ = fs::remove_file(FOLDER.path().join("t.jsonl.open"));
});

fn split(data: &[u8]) -> (&[u8], Option<&[u8]>) {
    const BETWEEN: &[u8] = b"\n----\n";
    let at = data
        .windows(BETWEEN.len())
        .position(|window| window == BETWEEN);
    match at {
        Some(at) => (&data[..=at], Some(&data[at + BETWEEN.len()..])),
        None => (data, None),
    }
}
