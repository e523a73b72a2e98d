//! The most bytes of one trace: what finds no room is left out whole, and counted.

use std::collections::{BTreeMap, HashMap};

use super::site::SpanSource;
use crate::trace::span_lines::{cut_to, escaped_len};

const OTHERS: &str = "(others)";

/// More bytes than a line has without its texts.
pub(super) const LINE: usize = 1024;
/// More bytes than a span's last line has.
pub(super) const SPAN_END: usize = 512;
/// The most bytes of the reason why a capture failed.
pub(super) const REASON: usize = 8 * 1024;
/// Bytes kept for the root's end and the terminal line with its reason, without its counts.
const TERMINAL: u64 = 16 * 1024;
/// Bytes kept for the counts; what finds no room in them shares one entry.
const COUNTS: u64 = 12 * 1024;
/// The most bytes of a name among the counts.
const NAME: usize = 256;

/// How much room is left.
pub(super) struct Budget {
    most: u64,
    /// Bytes of lines that have left the buffer.
    written: u64,
    /// Bytes kept for lines that must still be written: ends of open spans, and what was promised.
    kept: u64,
    /// Spans that were left out, by their call site.
    spans: HashMap<usize, LeftOut>,
    /// The same of records, by their label.
    records: BTreeMap<String, u64>,
    /// What found no room among these.
    others: u64,
    /// Bytes that the counts take at most.
    counts: u64,
}

/// What a call site would have recorded.
struct LeftOut {
    name: String,
    place: (&'static str, u32),
    /// There were other names than this one.
    many: bool,
    count: u64,
}

impl LeftOut {
    /// Whether this is the name, which may have been cut.
    fn is_named(&self, name: &str) -> bool {
        let own = self.name.strip_suffix('…').unwrap_or(&self.name);
        name == self.name || (name.len() >= NAME && name.starts_with(own))
    }

    fn with_place(&self) -> String {
        let (file, line) = self.place;
        let more = if self.many { ", …" } else { "" };
        format!("{}{more} ({file}:{line})", self.name)
    }
}

impl Budget {
    pub(super) fn new(most: u64) -> Self {
        Self {
            most,
            written: 0,
            kept: 0,
            spans: HashMap::new(),
            records: BTreeMap::new(),
            others: 0,
            counts: 0,
        }
    }

    /// Whether `line` bytes fit, with `buffered` bytes not yet written.
    pub(super) fn fits(&self, buffered: usize, line: usize) -> bool {
        let kept = self.kept + TERMINAL + COUNTS;
        self.written + kept + (buffered + line) as u64 <= self.most
    }

    pub(super) fn written(&mut self, bytes: usize) {
        self.written += bytes as u64;
    }

    /// Keeps room for what must still be written.
    pub(super) fn keep(&mut self, bytes: usize) {
        self.kept += bytes as u64;
    }

    /// That is written now.
    pub(super) fn release(&mut self, bytes: usize) {
        self.kept = self.kept.saturating_sub(bytes as u64);
    }

    /// Counts a span that was left out.
    pub(super) fn drop_span(&mut self, source: &SpanSource) {
        let name = source.name();
        if let Some(site) = self.spans.get_mut(&source.key()) {
            site.count += 1;
            site.many |= !site.is_named(&name);
            return;
        }
        let place = source.place();
        let name = cut_to(name.into_owned(), NAME);
        if !self.has_entry(escaped_len(&name) + escaped_len(place.0)) {
            self.others += 1;
            return;
        }
        let site = LeftOut {
            name,
            place,
            many: false,
            count: 1,
        };
        self.spans.insert(source.key(), site);
    }

    /// Counts a record that was left out.
    pub(super) fn drop_record(&mut self, label: &str) {
        if let Some(count) = self.records.get_mut(label) {
            *count += 1;
        } else if label.len() <= NAME && self.has_entry(escaped_len(label)) {
            self.records.insert(label.to_owned(), 1);
        } else {
            self.others += 1;
        }
    }

    /// Takes room for a count and its name; `false`: there is none.
    fn has_entry(&mut self, name: usize) -> bool {
        // Quotes, separators, a line's number and the count.
        let entry = name as u64 + 64;
        let fits = self.counts + entry + 64 <= COUNTS;
        if fits {
            self.counts += entry;
        }
        fits
    }

    /// What was left out: by call site, which has its place where its spans or those of several sites had different
    /// names; and by label.
    pub(super) fn dropped(&self) -> BTreeMap<String, u64> {
        let mut places: HashMap<&str, Option<(&str, u32)>> = HashMap::new();
        for site in self.spans.values() {
            places
                .entry(&site.name)
                .and_modify(|place| *place = place.filter(|place| *place == site.place))
                .or_insert(Some(site.place));
        }
        let mut all = self.records.clone();
        for site in self.spans.values() {
            let alone = places.get(site.name.as_str()).is_some_and(Option::is_some);
            let name = match alone && !site.many {
                true => site.name.clone(),
                false => site.with_place(),
            };
            *all.entry(name).or_default() += site.count;
        }
        if self.others > 0 {
            *all.entry(OTHERS.to_owned()).or_default() += self.others;
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{CallSite, Name};

    static ONE: CallSite = CallSite(Name::Text("one"), "src/a.rs", 1, 0);
    static SAME: CallSite = CallSite(Name::Text("same"), "src/a.rs", 2, 0);
    static AGAIN: CallSite = CallSite(Name::Text("same"), "src/b.rs", 3, 0);

    #[test]
    fn room_is_kept_for_what_must_still_be_written() {
        let mut budget = Budget::new(10_000 + TERMINAL + COUNTS - 4_096);
        assert!(budget.fits(0, 5_000));
        assert!(!budget.fits(0, 6_000), "the terminal line needs its room");
        budget.keep(2_000);
        assert!(!budget.fits(0, 4_500), "so does the end of an open span");
        budget.release(2_000);
        budget.written(5_000);
        assert!(!budget.fits(0, 1_000));
        assert!(!budget.fits(500, 500), "buffered lines count");
    }

    #[test]
    fn spans_are_counted_by_call_site_whatever_their_names() {
        let mut budget = Budget::new(0);
        for number in 0..1000 {
            let name = format!("layer {number}").into();
            budget.drop_span(&SpanSource::Named(&ONE, name));
            budget.drop_span(&SpanSource::Site(&SAME));
            budget.drop_span(&SpanSource::Site(&AGAIN));
        }
        let expected = [
            ("layer 0, … (src/a.rs:1)", 1000),
            ("same (src/a.rs:2)", 1000),
            ("same (src/b.rs:3)", 1000),
        ];
        let expected = expected.map(|(name, count)| (name.to_owned(), count));
        assert_eq!(budget.dropped(), BTreeMap::from(expected));
    }

    #[test]
    fn records_are_counted_by_label_and_many_labels_together() {
        let mut budget = Budget::new(0);
        for index in 0..1000 {
            budget.drop_record(&format!("label \u{1} {index}"));
        }
        budget.drop_record("label \u{1} 0");
        let dropped = budget.dropped();
        assert_eq!(dropped["label \u{1} 0"], 2);
        assert!(dropped[OTHERS] > 500);
        assert_eq!(dropped.values().sum::<u64>(), 1001);
        let written = serde_json::to_vec(&dropped).unwrap().len() as u64;
        assert!(written <= COUNTS, "{written}");
    }
}
