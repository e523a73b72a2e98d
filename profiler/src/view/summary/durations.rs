//! How long the calls of a site took, in a few hundred bytes or a few thousand.

/// So many are kept as they are.
const KEPT: usize = 64;
/// Steps of each power of two once there are more: a duration is then known to 0.8 %.
const STEPS: u32 = 64;

/// The durations of one site.
#[derive(Debug, Default, Clone)]
pub(super) struct Durations {
    few: Vec<u64>,
    /// How many there are of each step; empty while `few` holds all.
    steps: Vec<u32>,
    sum: u64,
    calls: u64,
}

impl Durations {
    pub(super) fn take(&mut self, nanoseconds: u64) {
        self.sum = self.sum.saturating_add(nanoseconds);
        self.calls += 1;
        if self.steps.is_empty() {
            if self.few.len() < KEPT {
                self.few.push(nanoseconds);
                return;
            }
            for kept in std::mem::take(&mut self.few) {
                self.count(kept);
            }
        }
        self.count(nanoseconds);
    }

    fn count(&mut self, nanoseconds: u64) {
        let step = step_of(nanoseconds);
        if self.steps.len() <= step {
            self.steps.resize(step + 1, 0);
        }
        if let Some(count) = self.steps.get_mut(step) {
            *count = count.saturating_add(1);
        }
    }

    pub(super) fn mean(&self) -> u64 {
        self.sum.checked_div(self.calls).unwrap_or(0)
    }

    /// The smallest duration that so large a share of the calls did not exceed.
    pub(super) fn percentile(&self, share: f64) -> u64 {
        let rank = ((self.calls as f64 * share).ceil() as u64).max(1);
        if self.steps.is_empty() {
            let mut sorted = self.few.clone();
            sorted.sort_unstable();
            let place = usize::try_from(rank - 1).unwrap_or(usize::MAX);
            return sorted.get(place).or(sorted.last()).copied().unwrap_or(0);
        }
        let mut seen = 0;
        for (step, count) in self.steps.iter().enumerate() {
            seen += u64::from(*count);
            if seen >= rank {
                return middle_of(step);
            }
        }
        0
    }
}

/// Below [`STEPS`] each nanosecond has its own step; above, each power of two has as many.
fn step_of(nanoseconds: u64) -> usize {
    let Some(shift) = nanoseconds
        .checked_ilog2()
        .and_then(|log| log.checked_sub(STEPS.ilog2()))
    else {
        return nanoseconds as usize;
    };
    // From 0 to 58, and from STEPS to 2 · STEPS - 1.
    (shift * STEPS) as usize + (nanoseconds >> shift) as usize
}

fn middle_of(step: usize) -> u64 {
    let steps = STEPS as usize;
    let Some(shift) = (step / steps).checked_sub(1).filter(|shift| *shift > 0) else {
        return step as u64;
    };
    let first = ((step - shift * steps) as u64) << shift;
    first + (1 << (shift - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_are_exact_and_many_are_near() {
        let mut durations = Durations::default();
        for duration in [5, 1, 4, 2, 3] {
            durations.take(duration);
        }
        assert_eq!((durations.percentile(0.5), durations.percentile(0.95)), (3, 5));
        assert_eq!(durations.mean(), 3);
        let mut durations = Durations::default();
        for duration in 1..=100_000_u64 {
            durations.take(duration * 1_003);
        }
        for share in [0.01, 0.5, 0.95, 0.999, 1.0] {
            let exact = share * 100_000.0 * 1_003.0;
            let found = durations.percentile(share) as f64;
            assert!((found / exact - 1.0).abs() < 0.008, "{share}: {found}, {exact}");
        }
    }

    #[test]
    fn every_duration_has_a_step_of_its_size() {
        let mut last = 0;
        for duration in (0..64).flat_map(|bit| [(1u64 << bit) - 1, 1 << bit, (1 << bit) + 1]) {
            let near = middle_of(step_of(duration));
            assert!(near.abs_diff(duration) <= duration / 128 + 1, "{duration}: {near}");
            assert!(duration < last || step_of(duration) >= step_of(last));
            last = duration;
        }
        assert!(step_of(u64::MAX) < 59 * 64 + 64);
    }
}
