//! What `.ci/instructions` counts the instructions of.
//!
//! `instructions KIND COUNT` makes so many calls with the profiler off, `instructions KIND COUNT FOLDER` makes them while
//! a capture is open that goes into the folder.

use std::hint::black_box;
use std::path::Path;

use anyhow::{Context, Result, bail};
use benches::subject::{Model, annotated, annotated_future, drive, outermost, plain, plain_future};
use candle_profiler::{measured, profile_step, record_scalar};

#[inline(never)]
#[profile_step(forward, name = "block {index}")]
fn named(index: u64) -> u64 {
    black_box(index)
}

#[inline(never)]
#[record_scalar("value")]
fn recorded(value: f64) -> f64 {
    black_box(value)
}

const MODEL: Model = Model { size: 3 };

fn times(count: u64, mut f: impl FnMut()) {
    for _ in 0..count {
        f();
    }
}

/// The calls; what runs in here is counted, and nothing else.
#[inline(never)]
fn counted(kind: &str, count: u64) -> Result<()> {
    match kind {
        "plain" => times(count, plain),
        "span" => times(count, annotated),
        "named" => times(count, || {
            named(3);
        }),
        "recorded" => times(count, || {
            recorded(0.5);
        }),
        "plain-method" => times(count, || {
            MODEL.plain();
        }),
        "plain-generic" => times(count, || {
            MODEL.plain_generic(7u32);
        }),
        "method" => times(count, || {
            MODEL.method();
        }),
        "generic" => times(count, || {
            MODEL.generic(7u32);
        }),
        "nested" => times(count, outermost),
        "plain-poll" => drive(plain_future(count)),
        "poll" => drive(annotated_future(count)),
        "plain-future" => times(count, || drive(plain_future(0))),
        "future" => times(count, || drive(annotated_future(0))),
        _ => bail!("there is no kind {kind}"),
    }
    Ok(())
}

#[measured]
fn capturing(kind: &str, count: u64) -> Result<()> {
    counted(kind, count)
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (kind, count, folder) = match arguments.as_slice() {
        [kind, count] => (kind, count, None),
        [kind, count, folder] => (kind, count, Some(folder)),
        _ => bail!("instructions KIND COUNT [FOLDER]"),
    };
    let count = count.parse().context("COUNT")?;
    match folder {
        None => counted(kind, count),
        Some(folder) => {
            benches::capture_every_call(Path::new(folder))?;
            capturing(kind, count)
        }
    }
}
