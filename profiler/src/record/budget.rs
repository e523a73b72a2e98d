//! The most bytes of one trace: what finds no room is left out whole, and counted.

use std::collections::BTreeMap;

const OTHERS: &str = "(others)";

/// Bytes kept for the end of each open span, and the start of one whose parent is not known yet.
const SPAN_END: u64 = 2 * 1024;
/// Bytes kept for the root's end and the terminal line without its counts.
const TERMINAL: u64 = 16 * 1024;
/// Bytes kept for the counts; call sites that find no room in them share one entry.
const COUNTS: u64 = 12 * 1024;

/// How much room is left.
pub(super) struct Budget {
    most: u64,
    /// Bytes of lines that have left the buffer.
    written: u64,
    open: u64,
    dropped: BTreeMap<String, u64>,
    /// Bytes that the counts take at most.
    counts: u64,
}

impl Budget {
    pub(super) fn new(most: u64) -> Self {
        Self {
            most,
            written: 0,
            open: 0,
            dropped: BTreeMap::new(),
            counts: 0,
        }
    }

    /// Whether `line` bytes fit, with `buffered` bytes not yet written.
    pub(super) fn fits(&self, buffered: usize, line: usize) -> bool {
        let kept = self.open * SPAN_END + TERMINAL + COUNTS;
        self.written + kept + (buffered + line) as u64 <= self.most
    }

    pub(super) fn written(&mut self, bytes: usize) {
        self.written += bytes as u64;
    }

    pub(super) fn opened(&mut self) {
        self.open += 1;
    }

    pub(super) fn closed(&mut self) {
        self.open = self.open.saturating_sub(1);
    }

    /// Counts a span or record that was left out.
    pub(super) fn drop(&mut self, name: &str) {
        // An entry takes its name, each character escaped at worst, and a number.
        let entry = 6 * name.len() as u64 + 32;
        let known = self.dropped.contains_key(name);
        let name = if known || self.counts + entry + 64 <= COUNTS {
            name
        } else {
            OTHERS
        };
        if !known && name != OTHERS {
            self.counts += entry;
        }
        *self.dropped.entry(name.to_owned()).or_default() += 1;
    }

    pub(super) fn dropped(&self) -> &BTreeMap<String, u64> {
        &self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_kept_for_what_must_still_be_written() {
        let mut budget = Budget::new(10_000 + TERMINAL + COUNTS - 4_096);
        assert!(budget.fits(0, 5_000));
        assert!(!budget.fits(0, 6_000), "the terminal line needs its room");
        budget.opened();
        assert!(!budget.fits(0, 4_500), "so does the end of an open span");
        budget.closed();
        budget.written(5_000);
        assert!(!budget.fits(0, 1_000));
        assert!(!budget.fits(500, 500), "buffered lines count");
    }

    #[test]
    fn what_is_left_out_is_counted_by_name_and_many_names_together() {
        let mut budget = Budget::new(0);
        for index in 0..1000 {
            budget.drop(&format!("site {index}"));
        }
        budget.drop("site 0");
        assert_eq!(budget.dropped()["site 0"], 2);
        assert!(budget.dropped()[OTHERS] > 500);
        assert_eq!(budget.dropped().values().sum::<u64>(), 1001);
        let written = serde_json::to_vec(budget.dropped()).unwrap().len() as u64;
        assert!(written <= COUNTS, "{written}");
    }
}
