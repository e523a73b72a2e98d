//! Gradients of a root, and which of its variables have none.

use super::bounded::Names;
use super::scalars::ScalarRow;
use crate::trace::{self, BUFFER, FROZEN, GradientEvent};

/// Whether a gradient is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GradientState {
    Present,
    Missing,
    Zero,
    NonFinite,
}

/// The gradient of one variable.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gradient<'a> {
    /// What was differentiated.
    pub(crate) root: &'a str,
    /// The variable.
    pub(crate) key: &'a str,
    pub(crate) state: GradientState,
    pub(crate) norm: Option<f64>,
    /// Why a missing one is missing.
    pub(crate) reason: Option<&'a str>,
}

/// The gradients of one root.
#[derive(Debug, Default)]
pub(super) struct GradientRow {
    pub(super) present: u64,
    pub(super) missing: Names,
    /// Frozen variables and buffers, which are to have none.
    pub(super) untrained: Names,
    pub(super) zero: Names,
    pub(super) non_finite: Names,
    /// Of what is present and finite.
    pub(super) norm: f64,
}

/// The root of the sum of two squares, neither of which needs to be a number itself. `f64::hypot` would do, but makes
/// every program that links this load the library of mathematics when it starts.
fn length(a: f64, b: f64) -> f64 {
    let (less, more) = if a < b { (a, b) } else { (b, a) };
    if more > 0.0 {
        let share = less / more;
        more * (1.0 + share * share).sqrt()
    } else {
        0.0
    }
}

impl GradientRow {
    pub(super) fn take(&mut self, gradient: &Gradient<'_>) {
        match gradient.state {
            GradientState::Present => self.present += 1,
            GradientState::Zero => self.zero.push(gradient.key),
            GradientState::NonFinite => self.non_finite.push(gradient.key),
            GradientState::Missing => match gradient.reason {
                Some(reason @ (FROZEN | BUFFER)) => {
                    self.untrained.push(&format!("{} ({reason})", gradient.key));
                }
                Some(reason) => self.missing.push(&format!("{} ({reason})", gradient.key)),
                None => self.missing.push(gradient.key),
            },
        }
        self.norm = length(self.norm, gradient.norm.unwrap_or(0.0));
    }

    /// Whether a number is the norm of these gradients, and nothing but it.
    pub(super) fn has_norm(&self, row: &ScalarRow) -> bool {
        // The sums are made in different orders.
        const ROUNDING: f64 = 1e-6;
        let same = match self.non_finite.count() {
            0 => (row.last - self.norm).abs() <= ROUNDING * self.norm,
            _ => !row.last.is_finite(),
        };
        row.values == 1 && same
    }

    pub(super) fn all(&self) -> u64 {
        let named = [&self.missing, &self.untrained, &self.zero, &self.non_finite];
        self.present + named.iter().map(|names| names.count()).sum::<u64>()
    }
}

/// A gradient as the summary takes it.
pub(crate) fn gradient_of(event: &GradientEvent) -> Gradient<'_> {
    let extra = event.extra.as_deref();
    Gradient {
        root: &event.root,
        key: &event.key,
        state: match event.state {
            trace::GradientState::Present => GradientState::Present,
            trace::GradientState::Missing => GradientState::Missing,
            trace::GradientState::Zero => GradientState::Zero,
            trace::GradientState::NonFinite => GradientState::NonFinite,
        },
        norm: event.norm,
        reason: extra.and_then(|extra| extra.reason.as_deref()),
    }
}
