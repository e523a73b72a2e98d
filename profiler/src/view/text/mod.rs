//! Text for a terminal: widths, cuts, units. Nothing here lets a name steer the terminal.

mod shell;
#[cfg(feature = "cli")]
mod sparkline;
mod units;

pub(crate) use shell::shell_word;
#[cfg(feature = "cli")]
pub(crate) use sparkline::sparkline;
pub(crate) use units::{bytes, count, counted, duration, number, percent, signed_bytes};

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
}
