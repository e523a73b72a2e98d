//! Numbers over time.

/// What is shown of one number over time.
#[derive(Debug, Default)]
pub(super) struct ScalarRow {
    pub(super) values: u64,
    pub(super) first: f64,
    pub(super) last: f64,
    pub(super) non_finite: u64,
}

impl ScalarRow {
    pub(super) fn take(&mut self, value: f64) {
        if self.values == 0 {
            self.first = value;
        }
        self.last = value;
        self.values += 1;
        self.non_finite += u64::from(!value.is_finite());
    }
}
