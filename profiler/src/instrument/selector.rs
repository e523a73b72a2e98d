//! Which call is captured.

use anyhow::{Result, ensure};

/// Chooses one call by its number, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CaptureSelector {
    selected: u64,
}

impl CaptureSelector {
    /// Chooses the call with this number.
    ///
    /// # Errors
    /// 0, because calls are counted from 1.
    pub fn new(selected_invocation: u64) -> Result<Self> {
        ensure!(
            selected_invocation > 0,
            "capture selector: selected_invocation is 0, calls are counted from 1"
        );
        Ok(Self {
            selected: selected_invocation,
        })
    }

    /// Whether this call is the one.
    #[inline]
    pub fn is_selected(self, invocation: u64) -> bool {
        invocation == self.selected
    }

    /// The number of the call.
    pub fn selected_invocation(self) -> u64 {
        self.selected
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_call_is_chosen_and_zero_is_refused() {
        let selector = CaptureSelector::new(3).unwrap();
        let chosen: Vec<u64> = (0..6).filter(|call| selector.is_selected(*call)).collect();
        assert_eq!(chosen, [3]);
        assert_eq!(selector.selected_invocation(), 3);
        assert!(
            CaptureSelector::new(0)
                .unwrap_err()
                .to_string()
                .contains("selected_invocation is 0")
        );
    }
}
