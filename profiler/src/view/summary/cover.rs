//! The time during which at least one of several spans ran.

/// Stretches that are kept apart; those before them are only summed up. Spans come in nearly the order of their times, so
/// that much later ones have no more to say of those.
const MOST: usize = 4096;

/// A set of times.
#[derive(Debug, Default)]
pub(super) struct Cover {
    /// From start to end, apart and in order.
    stretches: Vec<(u64, u64)>,
    /// What was covered before `until`.
    before_ns: u64,
    until: u64,
}

impl Cover {
    pub(super) fn add(&mut self, start: u64, end: u64) {
        let start = start.max(self.until);
        if start >= end {
            return;
        }
        // All that it touches become one with it.
        let from = self.stretches.partition_point(|(_, last)| *last < start);
        let to = self.stretches.partition_point(|(first, _)| *first <= end);
        let touched = self.stretches.get(from..to).unwrap_or_default();
        let first = touched
            .first()
            .map_or(start, |(first, _)| start.min(*first));
        let last = touched.last().map_or(end, |(_, last)| end.max(*last));
        self.stretches.splice(from..to.max(from), [(first, last)]);
        if self.stretches.len() > MOST {
            for (first, last) in self.stretches.drain(..MOST / 2) {
                self.before_ns += last - first;
                self.until = last;
            }
        }
    }

    /// How much of the region is covered.
    pub(super) fn within(&self, (from, to): (u64, u64)) -> u64 {
        let parts = self.stretches.iter().map(|(first, last)| {
            let end = (*last).min(to);
            end.saturating_sub((*first).max(from))
        });
        parts.fold(self.before_ns, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: (u64, u64) = (0, u64::MAX);

    #[test]
    fn what_lies_over_one_another_counts_once() {
        let mut cover = Cover::default();
        for (start, end) in [(50, 60), (10, 20), (15, 25), (60, 61), (30, 30), (52, 55)] {
            cover.add(start, end);
        }
        assert_eq!(cover.stretches, [(10, 25), (50, 61)]);
        assert_eq!((cover.within(ALL), cover.within((20, 55))), (26, 10));
        cover.add(0, 100);
        assert_eq!(cover.stretches, [(0, 100)]);
    }

    #[test]
    fn many_stretches_need_little_memory_and_lose_no_time() {
        let mut cover = Cover::default();
        for at in 0..100_000 {
            cover.add(at * 10, at * 10 + 7);
        }
        assert_eq!(cover.within(ALL), 700_000);
        assert!(cover.stretches.len() <= MOST);
    }
}
