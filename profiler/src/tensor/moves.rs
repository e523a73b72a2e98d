//! Whether an optimizer moved the variables that a loss depends on.
//!
//! That one of them stands still is seldom a fault by itself: it may be frozen by leaving it out of the optimizer, belong
//! to another one, or wait while gradients accumulate. So only two things are told: that an optimizer leaves out what it
//! moved before, while it moves others; and that it moves nothing any more since the variables were made anew.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use candle_core::backprop::GradStore;
use candle_core::{DType, Tensor};

use super::gradients::state_of;
use super::graph::serial;
use super::stats;
use crate::record::{Evidence, name_of};
use crate::trace::GradientState;

/// What is known of each optimizer, by its address.
static SEEN: Mutex<Option<HashMap<usize, Seen>>> = Mutex::new(None);

/// What an optimizer did in the steps before.
#[derive(Default)]
struct Seen {
    /// The variables that it moved.
    moved: HashSet<u64>,
    /// The names of those that have one.
    names: HashSet<String>,
    /// Steps in a row in which it moved none, though it had moved others of the same names.
    strangers: u32,
}

/// A gradient whose norm is a smaller part of its variable's is rounding, such as a bias before a batch norm has.
const ROUNDING: f64 = 1e-6;

/// A step is certain to change elements if it is so many times what the variable's type can tell apart.
const CERTAIN: f64 = 256.0;

/// The variables of a loss as they were before the optimizer ran.
pub(crate) struct Moves {
    optimizer: usize,
    variables: Vec<Before>,
}

struct Before {
    serial: u64,
    figures: Fingerprint,
    /// Whether any optimizer with this gradient and learning rate changes it.
    is_due: bool,
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

/// The smallest change of 1 that a type can tell; of those that are not trained in, none.
fn epsilon(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => f64::EPSILON,
        DType::F32 => f64::from(f32::EPSILON),
        DType::F16 => 9.765_625e-4,
        DType::BF16 => 7.812_5e-3,
        _ => f64::INFINITY,
    }
}

/// Whether a step is too large to be lost in rounding: one along the gradient, as plain descent takes it, and one of the
/// learning rate in each element, as Adam does.
fn is_due(variable: &Tensor, norm: f64, gradient: f64, rate: f64) -> bool {
    let told_apart = CERTAIN * epsilon(variable.dtype()) * norm;
    let elements = variable.elem_count() as f64;
    let step = rate.abs() * gradient.min(elements.sqrt());
    step > told_apart && gradient > ROUNDING * norm
}

impl Moves {
    /// Looks at the variables that have a gradient, before the optimizer at this address runs with this learning rate.
    pub(crate) fn before(
        (optimizer, rate): (usize, f64),
        loss: &Tensor,
        grads: &GradStore,
    ) -> Self {
        let look = |variable: &Tensor| {
            let Ok((GradientState::Present, Some(gradient))) = state_of(grads.get(variable)) else {
                return None;
            };
            let (figures, norm) = fingerprint(variable)?;
            Some(Before {
                serial: serial(variable.id()),
                figures,
                is_due: is_due(variable, norm, gradient, rate),
            })
        };
        Self {
            optimizer,
            variables: variables(loss).into_iter().filter_map(look).collect(),
        }
    }

    /// Looks at them again, and tells what is wrong.
    pub(crate) fn after(&self, loss: &Tensor, emit: &mut dyn FnMut(Evidence)) {
        let mut all = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = all
            .get_or_insert_default()
            .entry(self.optimizer)
            .or_default();
        let mut moves = false;
        let mut still = Vec::new();
        for (order, variable) in variables(loss).into_iter().enumerate() {
            let own = serial(variable.id());
            let Some(before) = self.variables.iter().find(|before| before.serial == own) else {
                continue;
            };
            if fingerprint(variable).is_none_or(|(after, _)| after != before.figures) {
                moves = true;
                seen.moved.insert(own);
                seen.names.extend(name_of(own));
            } else if before.is_due {
                let unnamed = || format!("#{order} {:?}", variable.dims());
                still.push((own, name_of(own).unwrap_or_else(unnamed)));
            }
        }
        if moves {
            seen.strangers = 0;
            still.retain(|(own, _)| seen.moved.contains(own));
            if !still.is_empty() {
                emit(Evidence::Note(format!(
                    "the optimizer no longer moves {}, although they have gradients",
                    listed(&still)
                )));
            }
            return;
        }
        // It may only wait, as one does that accumulates gradients: then what it moved before are these same variables.
        still.retain(|(own, name)| !seen.moved.contains(own) && seen.names.contains(name));
        if still.is_empty() {
            return;
        }
        seen.strangers += 1;
        if seen.strangers > 1 {
            emit(Evidence::Note(format!(
                "the optimizer moves none of {}, although they have gradients: it moved other variables of these names \
                 before, so it may hold those of an earlier model",
                listed(&still)
            )));
        }
    }
}

/// `a, b and 3 more`
fn listed(variables: &[(u64, String)]) -> String {
    let names = variables.iter().map(|(_, name)| name.as_str());
    let shown: Vec<&str> = names.take(6).collect();
    match variables.len().saturating_sub(shown.len()) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
