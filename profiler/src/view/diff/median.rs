//! Medians, and how sure they are.

/// Traces of each side from which on an interval says something.
const ENOUGH: usize = 5;
const RESAMPLES: usize = 2_000;

/// Where a ratio lies with 95 % confidence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Interval {
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// The middle value, or the mean of the middle two; none of nothing.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = match sorted.len() % 2 {
        0 => *sorted.get(sorted.len() / 2 - 1)?,
        _ => upper,
    };
    Some(lower + (upper - lower) / 2.0)
}

/// The bootstrap's interval of the ratio of medians, the same at each run; none where a side has too few traces or a
/// median of nothing.
pub(super) fn ratio_interval(before: &[f64], after: &[f64]) -> Option<Interval> {
    if before.len().min(after.len()) < ENOUGH || median(before)? <= 0.0 {
        return None;
    }
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut ratios: Vec<f64> = (0..RESAMPLES)
        .filter_map(|_| {
            let before = median(&random.resample(before))?;
            let after = median(&random.resample(after))?;
            Some(after / before)
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    let low = *ratios.get(ratios.len() / 40)?;
    let high = *ratios.get(ratios.len() - 1 - ratios.len() / 40)?;
    Some(Interval { low, high })
}

/// xorshift64*: as random as a resample needs.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
        ((number * bound as u64) >> 32) as usize
    }

    fn resample(&mut self, values: &[f64]) -> Vec<f64> {
        let pick = |_| values.get(self.below(values.len())).copied();
        (0..values.len()).filter_map(pick).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_few_values() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn an_interval_holds_the_ratio_and_says_when_nothing_changed() {
        let before: Vec<f64> = (0..20).map(|at| 100.0 + f64::from(at)).collect();
        let same = ratio_interval(&before, &before).expect("enough");
        assert!(same.low < 1.0 && 1.0 < same.high, "{same:?}");
        let slower: Vec<f64> = before.iter().map(|value| value * 1.5).collect();
        let slower = ratio_interval(&before, &slower).expect("enough");
        assert!(slower.low > 1.3 && slower.low < 1.5 && slower.high > 1.5 && slower.high < 1.7);
        assert_eq!(ratio_interval(&before[..4], &before), None);
    }
}
