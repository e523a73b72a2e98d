//! Small charts in a line of text.

/// Values as one line of at most so many columns: each between the least and the most of them, `×` where one is not
/// finite or not there.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trends_show_the_way_of_the_values() {
        assert_eq!(sparkline(&[0.0, 1.0, 2.0, 7.0], 8), "▁▂▃█");
        assert_eq!(sparkline(&[3.0, 3.0], 8), "▁▁");
        assert_eq!(sparkline(&[1.0, f64::NAN, 2.0], 8), "▁×█");
        assert_eq!(sparkline(&[], 8), "");
        let long: Vec<f64> = (0..1000).map(f64::from).collect();
        assert_eq!(sparkline(&long, 8), "▁▂▃▄▅▆▇█");
    }
}
