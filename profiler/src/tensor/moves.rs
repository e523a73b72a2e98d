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

/// The variables that an optimizer has been seen to move.
static MOVED: Mutex<Option<HashSet<u64>>> = Mutex::new(None);

/// What the variables of a loss were before the optimizer ran.
pub(crate) struct Moves {
    variables: Vec<(u64, Fingerprint)>,
}

/// Figures that change with the elements.
type Fingerprint = [u64; 3];

fn fingerprint(tensor: &Tensor) -> Option<Fingerprint> {
    let found = stats::statistics(tensor).ok()?;
    Some([found.mean, found.l2, found.std].map(f64::to_bits))
}

/// The variables of a loss, in the order of their use.
fn variables(loss: &Tensor) -> Vec<&Tensor> {
    let nodes = loss.sorted_nodes().into_iter().rev();
    nodes.filter(|node| node.is_variable()).collect()
}

impl Moves {
    /// Looks at the variables that have a gradient.
    pub(crate) fn before(loss: &Tensor, grads: &GradStore) -> Self {
        let look = |variable: &Tensor| {
            let present = matches!(
                state_of(grads.get(variable)),
                Ok((GradientState::Present, _))
            );
            let found = fingerprint(variable).filter(|_| present)?;
            Some((serial(variable.id()), found))
        };
        let variables = variables(loss).into_iter().filter_map(look).collect();
        Self { variables }
    }

    /// Looks at them again: tells of those that stood still although they were moved in an earlier step.
    pub(crate) fn after(&self, loss: &Tensor, emit: &mut dyn FnMut(Evidence)) {
        let mut moved = MOVED.lock().unwrap_or_else(PoisonError::into_inner);
        let moved = moved.get_or_insert_default();
        let mut still = Vec::new();
        for (order, variable) in variables(loss).into_iter().enumerate() {
            let own = serial(variable.id());
            let Some((_, before)) = self.variables.iter().find(|(serial, _)| *serial == own) else {
                continue;
            };
            if fingerprint(variable).is_none_or(|after| after != *before) {
                moved.insert(own);
            } else if moved.contains(&own) {
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
