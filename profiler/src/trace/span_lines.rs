//! The two lines of a span, written by hand: a capture holds little else, and the writer shares the machine with the
//! training. The same keys in the same order as the events in `events`.

use crate::allocator::Taken;
use crate::phase::ExecutionStep;
use crate::trace::SpanKind;

/// A span's first line.
pub(crate) struct StartLine<'a> {
    pub(crate) id: u64,
    pub(crate) parent: Option<u64>,
    /// The name as a JSON string, quotes included.
    pub(crate) name: &'a [u8],
    pub(crate) start_ns: u64,
    pub(crate) kind: SpanKind,
    pub(crate) measured: bool,
    pub(crate) step: Option<ExecutionStep>,
    /// The file as a JSON string, and the line; on the first span of a call site.
    pub(crate) place: Option<(&'a [u8], u32)>,
    pub(crate) thread: Option<u64>,
    /// As a JSON string; on the first span of a thread.
    pub(crate) thread_name: Option<&'a [u8]>,
    pub(crate) since_previous_ns: Option<u64>,
}

/// A span's last line.
#[derive(Default)]
pub(crate) struct EndLine {
    pub(crate) id: u64,
    pub(crate) duration_ns: u64,
    pub(crate) busy_ns: Option<u64>,
    pub(crate) polls: Option<u64>,
    pub(crate) overhead_ns: Option<u64>,
    pub(crate) cut: bool,
    pub(crate) cancelled: bool,
    pub(crate) panicked: bool,
    pub(crate) open_at_end: bool,
    pub(crate) memory: Option<Taken>,
}

impl StartLine<'_> {
    pub(crate) fn write(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(br#"{"kind":"span_start","id":"s"#);
        number(to, self.id);
        if let Some(parent) = self.parent {
            to.extend_from_slice(br#"","parent_id":"s"#);
            number(to, parent);
        }
        to.extend_from_slice(br#"","name":"#);
        to.extend_from_slice(self.name);
        to.extend_from_slice(br#","start_ns":"#);
        number(to, self.start_ns);
        to.extend_from_slice(match self.kind {
            SpanKind::Function => br#","span_kind":"function","measured":"#,
            SpanKind::Op => br#","span_kind":"op","measured":"#.as_slice(),
            SpanKind::Module => br#","span_kind":"module","measured":"#,
        });
        to.extend_from_slice(if self.measured { b"true" } else { b"false" });
        if let Some(step) = self.step {
            to.extend_from_slice(br#","step":""#);
            to.extend_from_slice(step.as_str().as_bytes());
            to.push(b'"');
        }
        if let Some((file, line)) = self.place {
            to.extend_from_slice(br#","file":"#);
            to.extend_from_slice(file);
            key(to, "line", u64::from(line));
        }
        if let Some(thread) = self.thread {
            key(to, "thread", thread);
        }
        if let Some(name) = self.thread_name {
            to.extend_from_slice(br#","thread_name":"#);
            to.extend_from_slice(name);
        }
        if let Some(since) = self.since_previous_ns {
            key(to, "since_previous_ns", since);
        }
        to.extend_from_slice(b"}\n");
    }
}

impl EndLine {
    pub(crate) fn write(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(br#"{"kind":"span_end","id":"s"#);
        number(to, self.id);
        to.extend_from_slice(br#"","duration_ns":"#);
        number(to, self.duration_ns);
        for (name, value) in [
            ("busy_ns", self.busy_ns),
            ("polls", self.polls),
            ("overhead_ns", self.overhead_ns),
        ] {
            if let Some(value) = value {
                key(to, name, value);
            }
        }
        if let Some(memory) = self.memory {
            to.extend_from_slice(b",\"mem_net\":");
            to.extend_from_slice(itoa::Buffer::new().format(memory.net).as_bytes());
            key(to, "mem_peak", memory.peak);
        }
        for (name, set) in [
            ("cut", self.cut),
            ("cancelled", self.cancelled),
            ("panicked", self.panicked),
            ("open_at_end", self.open_at_end),
        ] {
            if set {
                to.extend_from_slice(b",\"");
                to.extend_from_slice(name.as_bytes());
                to.extend_from_slice(b"\":true");
            }
        }
        to.extend_from_slice(b"}\n");
    }
}

fn key(to: &mut Vec<u8>, name: &str, value: u64) {
    to.extend_from_slice(b",\"");
    to.extend_from_slice(name.as_bytes());
    to.extend_from_slice(b"\":");
    number(to, value);
}

fn number(to: &mut Vec<u8>, value: u64) {
    to.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// A text as a JSON string.
pub(crate) fn quoted(text: &str) -> Vec<u8> {
    // Texts always serialise; an empty string would still be a string.
    serde_json::to_vec(text).unwrap_or_else(|_| b"\"\"".to_vec())
}

/// The bytes of a text inside a JSON string.
pub(crate) fn escaped_len(text: &str) -> usize {
    text.chars().map(escaped_char).sum()
}

fn escaped_char(char: char) -> usize {
    match char {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        _ => char.len_utf8(),
    }
}

/// As much of a text from its beginning as has at most so many bytes inside a JSON string, with the mark of a cut.
pub(crate) fn cut_to(mut text: String, most: usize) -> String {
    const MARK: char = '…';
    if escaped_len(&text) <= most {
        return text;
    }
    let mut room = most.saturating_sub(MARK.len_utf8());
    let fits = text.char_indices().find(|(_, char)| {
        let left = room.checked_sub(escaped_char(*char));
        room = left.unwrap_or(0);
        left.is_none()
    });
    text.truncate(fits.map_or(text.len(), |(at, _)| at));
    text.push(MARK);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_by_what_it_takes_in_the_file() {
        let texts = [
            "plain",
            "quo\"te\\",
            "\u{1}\u{8}\u{c}\n\r\t\u{1f}\u{7f}",
            "é🙂\u{2028}",
        ];
        for text in texts {
            let written = quoted(text).len() - 2;
            assert_eq!(escaped_len(text), written, "{text:?}");
            assert_eq!(cut_to(text.to_owned(), written), text);
            for most in 3..written {
                let cut = cut_to(text.to_owned(), most);
                assert!(quoted(&cut).len() - 2 <= most, "{cut:?}");
                assert!(text.starts_with(cut.strip_suffix('…').expect("its mark")));
            }
        }
        assert_eq!(
            cut_to("\u{1}".repeat(4096), 6 * 4096 - 1).chars().count(),
            4096
        );
    }
}
