//! The most bytes one trace may take.

use super::Complaint;

pub(super) const DEFAULT: u64 = 1 << 30;
/// Less would not hold a region's own lines next to what is dropped.
pub(super) const LEAST: u64 = 64 << 10;
pub(super) const ALLOWED: &str =
    "bytes such as 500000, 64MiB or 1GB (kB, MB, GB, KiB, MiB, GiB), at least 64KiB";

/// In lower case: units are told apart by their letters alone.
const UNITS: [(&str, u64); 8] = [
    ("", 1),
    ("b", 1),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
];

pub(super) fn parse(subject: &'static str, text: &str) -> Result<u64, Complaint> {
    bytes(text.trim()).map_err(|why| Complaint::new(subject, text, why, ALLOWED))
}

fn bytes(text: &str) -> Result<u64, String> {
    let digits = text
        .find(|letter: char| !letter.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim().to_ascii_lowercase();
    let Some((_, factor)) = UNITS.iter().find(|(name, _)| *name == unit) else {
        return Err(format!("`{unit}` is no unit"));
    };
    if number.is_empty() {
        return Err("it has no number".to_owned());
    }
    match number
        .parse::<u64>()
        .ok()
        .and_then(|n| n.checked_mul(*factor))
    {
        None => Err("it is too large".to_owned()),
        Some(bytes) if bytes < LEAST => Err("it is below 64KiB".to_owned()),
        Some(bytes) => Ok(bytes),
    }
}
