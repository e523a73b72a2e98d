//! Small pieces of JSON written by hand: a million slices are not worth a million trees of values.

use std::io::{self, Write};

/// A text in quotes.
pub(super) fn text(to: &mut dyn Write, text: &str) -> io::Result<()> {
    serde_json::to_writer(to, text).map_err(io::Error::from)
}

/// Nanoseconds as microseconds, in digits, so that none is lost to rounding.
pub(super) fn micros(to: &mut dyn Write, nanoseconds: u64) -> io::Result<()> {
    write!(to, "{}.{:03}", nanoseconds / 1000, nanoseconds % 1000)
}
