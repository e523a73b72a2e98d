//! Numbers in words that a person reads at a glance.

/// A time in the unit that a person would choose, with three digits.
pub(crate) fn duration(nanoseconds: u64) -> String {
    const UNITS: [(&str, f64); 3] = [("µs", 1e3), ("ms", 1e6), ("s", 1e9)];
    if nanoseconds < 1_000 {
        return format!("{nanoseconds} ns");
    }
    let nanoseconds = nanoseconds as f64;
    for (unit, size) in UNITS {
        let value = nanoseconds / size;
        if value < 999.5 {
            return format!("{} {unit}", three_digits(value));
        }
    }
    format!("{:.1} h", nanoseconds / 3.6e12)
}

/// Bytes in the unit that a person would choose.
pub(crate) fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1_000 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut units = UNITS.iter();
    let mut unit = units.next();
    while value >= 999.5
        && let Some(next) = units.next()
    {
        unit = Some(next);
        value /= 1024.0;
    }
    // Nearly a KiB is less than 1 of them, and shown with as many digits.
    format!("{} {}", three_digits(value), unit.unwrap_or(&"B"))
}

/// The same of a change, with its sign.
pub(crate) fn signed_bytes(change: i64) -> String {
    let sign = match change {
        0 => "",
        1.. => "+",
        _ => "-",
    };
    format!("{sign}{}", bytes(change.unsigned_abs()))
}

/// A value from 1 to 1000 with three digits.
fn three_digits(value: f64) -> String {
    let decimals = match value {
        _ if value < 9.995 => 2,
        _ if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

/// A whole number with its thousands parted.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut parted = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            parted.push(',');
        }
        parted.push(digit);
    }
    parted
}

/// `1 tensor`, `1,200 tensors`.
pub(crate) fn counted(number: u64, one: &str, many: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ => format!("{} {many}", count(number)),
    }
}

/// A measured number with so many digits (1 to 17), in plain notation where that is short.
pub(crate) fn number(value: f64, digits: usize) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if !value.is_finite() {
        return match value {
            _ if value.is_nan() => "NaN",
            _ if value > 0.0 => "inf",
            _ => "-inf",
        }
        .to_owned();
    }
    let digits = digits.clamp(1, 17);
    // Rounding first: 9.9996 has one digit more before the point than it seems to have.
    let rounded = format!("{value:.*e}", digits - 1);
    let (mantissa, exponent) = rounded.split_once('e').unwrap_or((&rounded, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !(-4..6).contains(&exponent) {
        return format!("{}e{exponent}", without_zeros(mantissa));
    }
    let decimals = usize::try_from(digits as i32 - 1 - exponent).unwrap_or(0);
    without_zeros(&format!("{value:.decimals$}")).to_owned()
}

fn without_zeros(number: &str) -> &str {
    match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.'),
        false => number,
    }
}

/// A part of a whole in per cent; a dash where there is no whole.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    match whole {
        0 => "-".to_owned(),
        _ => format!("{:.1}%", part as f64 * 100.0 / whole as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits_and_a_fitting_unit() {
        let cases = [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1.00 µs"),
            (45_600, "45.6 µs"),
            (999_499, "999 µs"),
            (999_500, "1.00 ms"),
            (1_234_567, "1.23 ms"),
            (9_996_000, "10.0 ms"),
            (12_300_000_000, "12.3 s"),
            (999_000_000_000, "999 s"),
            (3_600_000_000_000, "1.0 h"),
        ];
        for (nanoseconds, text) in cases {
            assert_eq!(duration(nanoseconds), text);
        }
        assert!(super::super::columns(&duration(u64::MAX)) <= 11);
    }

    #[test]
    fn bytes_have_three_digits_and_a_fitting_unit() {
        let cases = [
            (0, "0 B"),
            (999, "999 B"),
            (1_000, "0.98 KiB"),
            (1_024, "1.00 KiB"),
            (12_900_000, "12.3 MiB"),
            (1_073_741_824, "1.00 GiB"),
            (u64::MAX, "16.0 EiB"),
        ];
        for (number, text) in cases {
            assert_eq!(bytes(number), text);
        }
        assert_eq!(signed_bytes(2048), "+2.00 KiB");
        assert_eq!(signed_bytes(-2048), "-2.00 KiB");
        assert_eq!(signed_bytes(0), "0 B");
    }

    #[test]
    fn numbers_are_short() {
        let cases = [
            (0.0, "0"),
            (-0.0, "0"),
            (1.0, "1"),
            (0.5, "0.5"),
            (2.316124, "2.316"),
            (-1234.5678, "-1235"),
            (99_999.6, "100000"),
            (999_999.6, "1e6"),
            (0.000123456, "0.0001235"),
            (0.0000123456, "1.235e-5"),
            (-1.23456e-12, "-1.235e-12"),
            (f64::MAX, "1.798e308"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-inf"),
        ];
        for (value, text) in cases {
            assert_eq!(number(value, 4), text);
        }
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_000), "1,000");
        assert_eq!(count(12_345_678), "12,345,678");
        assert_eq!(percent(1, 3), "33.3%");
        assert_eq!(percent(1, 0), "-");
    }
}
