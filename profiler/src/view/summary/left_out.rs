//! What a trace left out to keep within its budget, in words.

use crate::view::text::{count, counted, printable};

/// Call sites and labels that are named.
const MOST_NAMED: usize = 6;
/// The most characters of one of them.
const NAME: usize = 80;

/// Spans and records that found no room, by call site and label.
#[derive(Debug, Default)]
pub(crate) struct LeftOut {
    /// All of them.
    count: u64,
    /// The most frequent, those first.
    named: Vec<(String, u64)>,
}

impl LeftOut {
    /// So many of a call site or a label.
    pub(crate) fn add(&mut self, name: &str, count: u64) {
        self.count = self.count.saturating_add(count);
        let at = self.named.partition_point(|(_, more)| *more >= count);
        if at < MOST_NAMED {
            self.named.insert(at, (name.to_owned(), count));
            self.named.truncate(MOST_NAMED);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// `1,234 spans and records`
    pub(crate) fn counted(&self) -> String {
        counted(self.count, "span or record", "spans and records")
    }

    /// What it was, and what keeps it. Nothing where there is nothing to tell.
    pub(crate) fn sentence(&self) -> Option<String> {
        if self.is_empty() {
            return None;
        }
        let were = if self.count == 1 { "was" } else { "were" };
        let known: u64 = self.named.iter().map(|(_, count)| count).sum();
        let named = self.named.iter().map(|(name, times)| {
            // A site of several names is told by the first, and its place.
            let name = name.replacen(", … (", " and others (", 1);
            format!("{} of {}", count(*times), printable(&name, NAME))
        });
        let others = self.count.saturating_sub(known);
        let others = (others > 0).then(|| format!("{} of others", count(others)));
        let named: Vec<String> = named.chain(others).collect();
        Some(format!(
            "{} {were} left out to keep within the budget (a larger CANDLE_PROFILE_BUDGET keeps more): {}",
            self.counted(),
            named.join(", ")
        ))
    }
}
