//! Text for a terminal: widths, cuts, units. Nothing here lets a name steer the terminal.

use std::fmt::Write;
use std::path::Path;

/// The text with everything escaped that a terminal would obey or not show, cut in the middle to
/// at most so many columns.
pub(crate) fn printable(text: &str, most: usize) -> String {
    // No more than this is looked at, so that a text of megabytes costs no more than its ends.
    let mut clean = String::new();
    let head = text.char_indices().nth(most + 1);
    let tail = text.char_indices().rev().nth(most);
    match (head, tail) {
        (Some((head, _)), Some((tail, _))) if head < tail => {
            escape_into(&mut clean, &text[..head]);
            escape_into(&mut clean, &text[tail..]);
        }
        _ => escape_into(&mut clean, text),
    }
    fit(&clean, most)
}

/// A text of several sources as one line that a terminal shows as it is.
#[cfg(feature = "cli")]
pub(crate) fn printable_line(text: &str) -> String {
    const MOST: usize = 4096;
    printable(&text.replace(['\n', '\t'], " "), MOST)
}

fn escape_into(out: &mut String, text: &str) {
    for letter in text.chars() {
        match obeyed_or_hidden(letter) {
            true => out.extend(letter.escape_default()),
            false => out.push(letter),
        }
    }
}

/// Control characters, and the marks that reorder or hide the text around them.
fn obeyed_or_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        )
}

/// How many columns a text takes, at most.
pub(crate) fn columns(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

/// Two for East Asian and pictured characters, one for all others. Marks that take no column of
/// their own are counted too: a line that is too short harms nothing.
fn columns_of(letter: char) -> usize {
    let wide = matches!(
        letter as u32,
        0x1100..=0x115f | 0x2e80..=0xa4cf | 0xac00..=0xd7a3 | 0xf900..=0xfaff | 0xfe30..=0xfe6f
        | 0xff00..=0xff60 | 0xffe0..=0xffe6 | 0x1f000..=0x1faff | 0x20000..=0x3fffd
    );
    1 + usize::from(wide)
}

/// The text itself where it fits into so many columns, else its two ends around `…`.
pub(crate) fn fit(text: &str, most: usize) -> String {
    if columns(text) <= most {
        return text.to_owned();
    }
    let Some(room) = most.checked_sub(1) else {
        return String::new();
    };
    // The end of a path says more than its start, so it gets the odd column.
    let head = text.len() - from(text.chars(), room / 2, text.len());
    let tail = from(text.chars().rev(), room - room / 2, text.len());
    format!("{}…{}", &text[..head], &text[tail..])
}

/// What is left of `length` bytes once the letters that fit into so many columns are taken.
fn from(letters: impl Iterator<Item = char>, mut room: usize, mut length: usize) -> usize {
    for letter in letters {
        let Some(rest) = room.checked_sub(columns_of(letter)) else {
            break;
        };
        room = rest;
        length -= letter.len_utf8();
    }
    length
}

/// The text in lines of at most so many columns, broken at spaces where that is possible.
pub(crate) fn wrap(text: &str, most: usize) -> Vec<String> {
    let most = most.max(2);
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut used = 0;
    for word in text.split_whitespace() {
        let width = columns(word);
        if used > 0 && used + 1 + width <= most {
            line.push(' ');
            line.push_str(word);
            used += 1 + width;
            continue;
        }
        if used > 0 {
            lines.push(std::mem::take(&mut line));
            used = 0;
        }
        for letter in word.chars() {
            if used + columns_of(letter) > most {
                lines.push(std::mem::take(&mut line));
                used = 0;
            }
            line.push(letter);
            used += columns_of(letter);
        }
    }
    if used > 0 {
        lines.push(line);
    }
    lines
}

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

/// Values as one line of at most so many columns: each between the least and the most of them, `×` where one is not
/// finite or not there.
#[cfg(feature = "cli")]
pub(crate) fn sparkline(values: &[f64], most: usize) -> String {
    const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let finite = || values.iter().copied().filter(|value| value.is_finite());
    let least = finite().fold(f64::INFINITY, f64::min);
    let range = finite().fold(f64::NEG_INFINITY, f64::max) - least;
    let columns = values.len().min(most.max(1));
    let column = |at: usize| {
        // Each column shows the mean of the values that fall into it.
        let part = values.get(at * values.len() / columns..(at + 1) * values.len() / columns)?;
        if part.iter().any(|value| !value.is_finite()) {
            return Some('×');
        }
        let mean = part.iter().sum::<f64>() / part.len() as f64;
        let level = match range > 0.0 && range.is_finite() {
            true => ((mean - least) / range * 7.0).round() as usize,
            false => 0,
        };
        LEVELS.get(level).copied()
    };
    (0..columns).filter_map(column).collect()
}

/// A part of a whole in per cent; a dash where there is no whole.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    match whole {
        0 => "-".to_owned(),
        _ => format!("{:.1}%", part as f64 * 100.0 / whole as f64),
    }
}

/// A path as one word of a shell command, whatever bytes it is made of.
pub(crate) fn shell_word(path: &Path) -> String {
    let mut bytes = path.as_os_str().as_encoded_bytes().to_vec();
    // A path that starts like an option would be taken for one.
    if bytes.starts_with(b"-") {
        bytes.splice(..0, *b"./");
    }
    let text = String::from_utf8_lossy(&bytes);
    let windows = cfg!(windows);
    let is_plain = |byte: u8| {
        byte.is_ascii_alphanumeric() || b"/._-+=:,@%".contains(&byte) || (windows && byte == b'\\')
    };
    if !bytes.is_empty() && bytes.iter().all(|&byte| is_plain(byte)) {
        return text.into_owned();
    }
    if windows {
        return format!("\"{}\"", printable(&text, 4096));
    }
    match std::str::from_utf8(&bytes) {
        Ok(text) if !text.chars().any(obeyed_or_hidden) => {
            format!("'{}'", text.replace('\'', "'\\''"))
        }
        _ => escaped_word(&bytes),
    }
}

/// Quotes in the way of bash and zsh that can say any byte in plain letters.
fn escaped_word(bytes: &[u8]) -> String {
    let mut word = String::from("$'");
    let escape = |word: &mut String, bytes: &[u8]| {
        for byte in bytes {
            // Writing into a text cannot fail.
            let _ = write!(word, "\\x{byte:02x}");
        }
    };
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter {
                '\'' | '\\' => word.extend(['\\', letter]),
                _ if obeyed_or_hidden(letter) => {
                    escape(&mut word, letter.encode_utf8(&mut [0; 4]).as_bytes());
                }
                _ => word.push(letter),
            }
        }
        escape(&mut word, chunk.invalid());
    }
    word + "'"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_escaped() {
        assert_eq!(printable("plain tensor ж", 80), "plain tensor ж");
        assert_eq!(
            printable("a\u{1b}[31m\n\t\u{9b}", 80),
            "a\\u{1b}[31m\\n\\t\\u{9b}"
        );
        assert_eq!(printable("x\u{202e}y\u{200d}", 80), "x\\u{202e}y\\u{200d}");
    }

    #[test]
    fn long_texts_keep_their_ends() {
        assert_eq!(fit("abcdefghij", 10), "abcdefghij");
        assert_eq!(fit("abcdefghij", 7), "abc…hij");
        assert_eq!(fit("abcdefghij", 6), "ab…hij");
        assert_eq!(fit("abc", 1), "…");
        assert_eq!(fit("abc", 0), "");
        assert_eq!(fit("層層層層層", 6), "層…層");
        let long = "x".repeat(10_000_000) + "end";
        assert_eq!(printable(&long, 9), "xxxx…xend");
    }

    #[test]
    fn lines_break_at_spaces_and_only_then_in_words() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("one twothreefour", 6), ["one", "twothr", "eefour"]);
        assert_eq!(wrap("  ", 6), [] as [&str; 0]);
        assert_eq!(wrap("層層層", 4), ["層層", "層"]);
    }

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
        assert!(columns(&duration(u64::MAX)) <= 11);
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

    #[cfg(feature = "cli")]
    #[test]
    fn trends_show_the_way_of_the_values() {
        assert_eq!(sparkline(&[0.0, 1.0, 2.0, 7.0], 8), "▁▂▃█");
        assert_eq!(sparkline(&[3.0, 3.0], 8), "▁▁");
        assert_eq!(sparkline(&[1.0, f64::NAN, 2.0], 8), "▁×█");
        assert_eq!(sparkline(&[], 8), "");
        let long: Vec<f64> = (0..1000).map(f64::from).collect();
        assert_eq!(sparkline(&long, 8), "▁▂▃▄▅▆▇█");
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

    #[cfg(unix)]
    #[test]
    fn paths_survive_a_shell() {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt;
        use std::process::Command;
        let paths: [&[u8]; 9] = [
            b"a/b.jsonl",
            b"a b",
            b"it's",
            b"$HOME `id` \"x\" \\",
            b"-rf",
            b"tab\there\n",
            b"\xff\xfe'x",
            "層".as_bytes(),
            "\u{202e}txt".as_bytes(),
        ];
        for path in paths {
            let word = shell_word(Path::new(OsStr::from_bytes(path)));
            assert!(!word.chars().any(obeyed_or_hidden), "{word:?}");
            let script = format!("printf %s. {word}");
            let Ok(output) = Command::new("bash").args(["-c", &script]).output() else {
                return;
            };
            let said = output.stdout.strip_prefix(b"./").unwrap_or(&output.stdout);
            assert_eq!(said, [path, b"."].concat());
        }
        assert_eq!(shell_word(Path::new("out/run-2.jsonl")), "out/run-2.jsonl");
    }
}
