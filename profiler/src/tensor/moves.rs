//! Whether an optimizer moved the variables that a loss depends on.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use candle_core::Tensor;
use candle_core::backprop::GradStore;

use super::gradients::state_of;
use super::graph::serial;
use super::stats;
use crate::record::{Evidence, name_of};
use crate::trace::GradientState;

/// Which optimizer, by its address, has been seen to move which variable.
static MOVED: Mutex<Option<HashSet<(usize, u64)>>> = Mutex::new(None);

/// A gradient whose norm is a smaller part of its variable's is rounding, such as a bias before a batch norm has.
const ROUNDING: f64 = 1e-6;

/// What the variables of a loss were before the optimizer ran.
pub(crate) struct Moves {
    optimizer: usize,
    variables: Vec<(u64, Fingerprint)>,
}

/// Figures that change with the elements.
type Fingerprint = [u64; 3];

/// The figures, and the norm.
fn fingerprint(tensor: &Tensor) -> Option<(Fingerprint, f64)> {
    let found = stats::statistics(tensor).ok()?;
    let figures = [found.mean, found.l2, found.std].map(f64::to_bits);
    Some((figures, found.l2))
}

/// The variables of a loss, in the order of their use.
fn variables(loss: &Tensor) -> Vec<&Tensor> {
    let nodes = loss.sorted_nodes().into_iter().rev();
    nodes.filter(|node| node.is_variable()).collect()
}

impl Moves {
    /// Looks at the variables that have a gradient, before the optimizer at this address runs.
    pub(crate) fn before(optimizer: usize, loss: &Tensor, grads: &GradStore) -> Self {
        let look = |variable: &Tensor| {
            let Ok((GradientState::Present, Some(gradient))) = state_of(grads.get(variable)) else {
                return None;
            };
            let (figures, norm) = fingerprint(variable)?;
            (gradient > ROUNDING * norm).then(|| (serial(variable.id()), figures))
        };
        let variables = variables(loss).into_iter().filter_map(look).collect();
        Self {
            optimizer,
            variables,
        }
    }

    /// Looks at them again: tells of those that stood still although the same optimizer moved them in an earlier step.
    pub(crate) fn after(&self, loss: &Tensor, emit: &mut dyn FnMut(Evidence)) {
        let mut moved = MOVED.lock().unwrap_or_else(PoisonError::into_inner);
        let moved = moved.get_or_insert_default();
        let mut still = Vec::new();
        for (order, variable) in variables(loss).into_iter().enumerate() {
            let own = serial(variable.id());
            let Some((_, before)) = self.variables.iter().find(|(serial, _)| *serial == own) else {
                continue;
            };
            let pair = (self.optimizer, own);
            if fingerprint(variable).is_none_or(|(after, _)| after != *before) {
                moved.insert(pair);
            } else if moved.contains(&pair) {
                let unnamed = || format!("#{order} {:?}", variable.dims());
                still.push(name_of(own).unwrap_or_else(unnamed));
            }
        }
        if !still.is_empty() {
            let shown: Vec<&str> = still.iter().take(6).map(String::as_str).collect();
            let more = match still.len().saturating_sub(shown.len()) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            emit(Evidence::Note(format!(
                "the optimizer no longer moves {}{more}, although they have gradients",
                shown.join(", ")
            )));
        }
    }
}
