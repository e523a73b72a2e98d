//! What the health check would object to, gathered while the session runs.

use std::collections::BTreeMap;

/// For each rule the first objection and their number, so that a thousand of one kind are one line.
#[derive(Debug, Default)]
pub(super) struct Findings {
    by_rule: BTreeMap<&'static str, (String, u64)>,
}

impl Findings {
    pub(super) fn add(&mut self, rule: &'static str, text: String) {
        self.by_rule.entry(rule).or_insert((text, 0)).1 += 1;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_rule.is_empty()
    }

    /// One line for each rule.
    pub(super) fn lines(&self) -> impl Iterator<Item = String> {
        self.by_rule
            .iter()
            .map(|(rule, (text, count))| match count {
                0 | 1 => format!("{rule}: {text}"),
                _ => format!("{rule}: {text} (the first of {count})"),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_is_one_line() {
        let mut findings = Findings::default();
        assert!(findings.is_empty());
        findings.add("unpaired_free", "a".into());
        findings.add("unpaired_free", "b".into());
        findings.add("measurement_count", "c".into());
        let lines: Vec<String> = findings.lines().collect();
        assert_eq!(
            lines,
            ["measurement_count: c", "unpaired_free: a (the first of 2)"]
        );
    }
}
