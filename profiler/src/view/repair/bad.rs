//! Which lines of a broken trace are no good. A file may consist of nothing else, so they take little room.

use std::collections::HashMap;

use super::MOST_TOLD;

/// The numbers of the bad lines, in stretches, and what is wrong with the first of them.
#[derive(Default)]
pub(super) struct BadLines {
    /// First and last line of each stretch, in order.
    stretches: Vec<(u64, u64)>,
    reasons: HashMap<u64, String>,
}

impl BadLines {
    /// Adds a line, which comes after those that were added before. The reason is asked for only where it will be told.
    pub(super) fn add(&mut self, line: u64, reason: impl FnOnce() -> String) {
        if self.reasons.len() < MOST_TOLD {
            self.reasons.insert(line, reason());
        }
        match self.stretches.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(line) => *last = line,
            _ => self.stretches.push((line, line)),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.stretches.is_empty()
    }

    /// Why the line is bad, if it is; without words, where those have been told that are.
    pub(super) fn reason(&self, line: u64) -> Option<&str> {
        let after = self.stretches.partition_point(|(first, _)| *first <= line);
        let (_, last) = self.stretches.get(after.checked_sub(1)?)?;
        (line <= *last).then(|| self.reasons.get(&line).map_or("", String::as_str))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_known_by_number_and_the_first_by_reason() {
        let mut bad = BadLines::default();
        assert!(bad.is_empty());
        for line in [2, 3, 4, 9].into_iter().chain(100..10_000) {
            bad.add(line, || format!("line {line}"));
        }
        assert_eq!(bad.stretches.len(), 3, "they stand in stretches");
        assert_eq!(bad.reasons.len(), MOST_TOLD);
        for (line, reason) in [
            (2, "line 2"),
            (4, "line 4"),
            (9, "line 9"),
            (115, "line 115"),
            (116, ""),
            (9_999, ""),
        ] {
            assert_eq!(bad.reason(line), Some(reason), "{line}");
        }
        for line in [0, 1, 5, 8, 10, 99, 10_000] {
            assert_eq!(bad.reason(line), None, "{line}");
        }
    }
}
