//! Sessions by hand that do not live to be finished.

use std::time::Duration;

use anyhow::Result;
use candle_profiler::{ProfileRun, SpanKind, TraceSession};

fn work(session: &TraceSession) {
    drop(session.begin_span("before", SpanKind::Function));
    // Longer than lines are kept back.
    std::thread::sleep(Duration::from_millis(60));
    drop(session.begin_span("after", SpanKind::Function));
}

fn open() -> Result<TraceSession> {
    TraceSession::open("hand.jsonl", ProfileRun::training("hand", 1, "cpu"))
}

/// The process exits inside a session.
pub(crate) fn exit() -> Result<()> {
    let session = open()?;
    let _region = session.begin_measurement("region");
    work(&session);
    std::process::exit(3);
}

/// The session is given out of hand, and the program ends well.
pub(crate) fn forget() -> Result<()> {
    let session = Box::leak(Box::new(open()?));
    drop(session.begin_measurement("region"));
    work(session);
    Ok(())
}

/// The process waits for its end inside a session.
pub(crate) fn hang() -> Result<()> {
    let session = open()?;
    let _region = session.begin_measurement("region");
    work(&session);
    println!("ready");
    loop {
        std::thread::sleep(Duration::from_millis(100));
    }
}
