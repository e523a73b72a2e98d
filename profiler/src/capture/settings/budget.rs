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
    match bytes(text.trim()) {
        Ok(bytes) if bytes < LEAST => Err(Complaint::out_of_range(
            subject,
            text,
            "is too small: at least 64KiB",
        )),
        Ok(bytes) => Ok(bytes),
        Err(why) => Err(Complaint::new(subject, text, why, ALLOWED)),
    }
}

fn bytes(text: &str) -> Result<u64, String> {
    // What people write numbers with, so that a unit is not blamed for a sign or a point.
    let in_number = |letter: char| letter.is_ascii_digit() || "+-.,_'".contains(letter);
    let end = text.find(|letter| !in_number(letter));
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let unit = unit.trim().to_ascii_lowercase();
    let is_whole = number.bytes().all(|byte| byte.is_ascii_digit());
    if !is_whole && number.contains(['.', ',']) {
        return Err(format!("`{number}`: whole numbers only"));
    }
    if !is_whole {
        return Err(format!("`{number}` is no number of bytes"));
    }
    let Some((_, factor)) = UNITS.iter().find(|(name, _)| *name == unit) else {
        return Err(format!("`{unit}` is no unit"));
    };
    if number.is_empty() {
        return Err("it has no number".to_owned());
    }
    let number = number.parse::<u64>().ok();
    number
        .and_then(|number| number.checked_mul(*factor))
        .ok_or_else(|| "it is too large".to_owned())
}
