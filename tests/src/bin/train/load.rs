//! Steps that record more than any program should.

use anyhow::{Context, Result};
use candle_profiler::{current, measure_with, measured, profile_span, record_scalar, span};

#[profile_span]
fn short() {
    std::hint::black_box(());
}

#[measured]
fn spans_step(thousands: u32) {
    for _ in 0..thousands {
        let _block = span("block");
        for _ in 0..999 {
            short();
        }
    }
}

/// One capture of so many thousand spans.
pub(crate) fn spans(thousands: u32) -> Result<()> {
    spans_step(0);
    spans_step(thousands);
    println!("{}", peak_kilobytes()?);
    Ok(())
}

#[measured]
fn endless_step(thousands: u32) {
    for block in 0u32.. {
        if thousands == 0 {
            return;
        }
        if block == thousands {
            println!("ready");
        }
        let _block = span("block");
        for _ in 0..999 {
            short();
        }
    }
}

/// Spans without end, and as fast as they can be; says `ready` after so many thousand.
pub(crate) fn endless(thousands: u32) -> Result<()> {
    endless_step(0);
    endless_step(thousands);
    Ok(())
}

#[measured]
fn labels_step(thousands: u32) {
    for number in 0..thousands * 1000 {
        record_scalar(&format!("metric/{number}"), &f64::from(number));
    }
}

/// One capture of so many thousand numbers, each under a label of its own.
pub(crate) fn labels(thousands: u32) -> Result<()> {
    labels_step(0);
    labels_step(thousands);
    println!("{}", peak_kilobytes()?);
    Ok(())
}

/// So many thousand calls, each under a name of its own; then a second one under the first name.
pub(crate) fn names(thousands: u32) -> Result<()> {
    let numbers = 0..thousands * 1000;
    for number in numbers.chain([0]) {
        measure_with(format!("call {number}"), || {
            short();
            Ok::<(), std::fmt::Error>(())
        })?;
    }
    println!("{}", peak_kilobytes()?);
    Ok(())
}

#[measured]
fn long_labels_step(number: u32) {
    let text = "x".repeat(1 << 20);
    for number in 0..number {
        record_scalar(&text, &f64::from(number));
    }
}

/// One capture of so many numbers under a label of a megabyte.
pub(crate) fn long_labels(number: u32) -> Result<()> {
    long_labels_step(0);
    long_labels_step(number);
    println!("{}", peak_kilobytes()?);
    Ok(())
}

#[measured]
fn threads_step(thousands: u32) {
    let handle = current();
    std::thread::scope(|scope| {
        for number in 0..64 {
            let handle = handle.clone();
            scope.spawn(move || {
                let _entered = handle.enter();
                let _thread = span(format!("thread {number}"));
                for _ in 0..thousands * 1000 / 64 {
                    short();
                }
            });
        }
    });
}

/// 64 threads record so many thousand spans at once.
pub(crate) fn threads(thousands: u32) -> Result<()> {
    threads_step(0);
    threads_step(thousands);
    Ok(())
}

/// So many captures one after another; prints memory, threads and handles after a tenth of them and after all.
pub(crate) fn captures(number: u32) -> Result<()> {
    for step in 1..=number {
        measure_with("step", || {
            short();
            Ok::<(), std::fmt::Error>(())
        })?;
        if step == number / 10 || step == number {
            let handles = std::fs::read_dir("/proc/self/fd")?.count();
            let status = status()?;
            println!(
                "{} {} {handles}",
                field(&status, "VmRSS:")?,
                field(&status, "Threads:")?
            );
        }
    }
    Ok(())
}

/// Names and labels that must neither leave the traces' folder nor spoil a line.
pub(crate) const ODD_NAMES: [&str; 14] = [
    "a/b/c",
    "../../escape",
    "..",
    "/absolute",
    "C:\\windows\\path",
    "quo\"te'd",
    "back\\slash\\",
    "new\nline\r\ttab",
    "nul\0 bell\u{7} escape\u{1b}[31m",
    "🙂 emoji 🧮",
    "a\u{202e}b\u{2028}c",
    "{\"kind\":\"terminal\"}",
    ".hidden.",
    "nul",
];

/// Two calls under each odd name, with odd spans and labels inside; and under a megabyte of text, and under blanks.
pub(crate) fn odd_names() -> Result<()> {
    let long = "long ".repeat(200_000);
    for name in ODD_NAMES.into_iter().chain([long.as_str(), " \t "]) {
        for _ in 0..2 {
            measure_with(name, || {
                let _span = span(name);
                record_scalar(name, &1.0);
                Ok::<(), std::fmt::Error>(())
            })?;
        }
    }
    Ok(())
}

/// One call under a name that must not get to a terminal as it is, and is too long for a line.
pub(crate) fn odd_name_once() -> Result<()> {
    let name = format!("new\nline\u{1b}[2J {}", "long ".repeat(200_000));
    measure_with(name, || Ok::<(), std::fmt::Error>(()))?;
    Ok(())
}

/// Steps of a program that has all the handles open that it may have.
pub(crate) fn no_handles(steps: u32) -> Result<()> {
    let mut held = Vec::new();
    while let Ok(file) = std::fs::File::open("/dev/null") {
        held.push(file);
    }
    spans_step(0);
    for _ in 0..steps {
        spans_step(1);
    }
    println!("done");
    Ok(())
}

fn peak_kilobytes() -> Result<u64> {
    field(&status()?, "VmHWM:")
}

fn status() -> Result<String> {
    Ok(std::fs::read_to_string("/proc/self/status")?)
}

fn field(status: &str, name: &str) -> Result<u64> {
    let line = status
        .lines()
        .find(|line| line.starts_with(name))
        .context("no such field")?;
    let number = line.split_ascii_whitespace().nth(1).context("no number")?;
    Ok(number.parse()?)
}
