//! The gradients of a backward pass, variable by variable.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use candle_core::backprop::GradStore;
use candle_core::{Tensor, TensorId, Var};

use super::stats;
use crate::record::Evidence;
use crate::trace::{GradientEvent, GradientState};

/// What the program calls its variables. Ids are never used again, so a name outlives its variable without harm.
static NAMES: Mutex<Option<HashMap<TensorId, String>>> = Mutex::new(None);

/// Gives variables the names under which their gradients are recorded: `prefix.name`, or `name` without a prefix.
///
/// ```
/// # fn main() -> candle_core::Result<()> {
/// use candle_core::{DType, Device, Var};
///
/// let weight = Var::zeros((2, 3), DType::F32, &Device::Cpu)?;
/// candle_profiler::name_vars("model", [("weight", &weight)]);
/// # Ok(())
/// # }
/// ```
pub fn name_vars<N: AsRef<str>, V: std::borrow::Borrow<Var>>(
    prefix: &str,
    vars: impl IntoIterator<Item = (N, V)>,
) {
    if cfg!(feature = "off") {
        return;
    }
    // The program's iterator runs before the lock is taken: it may come here again.
    let named: Vec<(TensorId, String)> = vars
        .into_iter()
        .map(|(name, var)| {
            let name = match prefix {
                "" => name.as_ref().to_owned(),
                prefix => format!("{prefix}.{}", name.as_ref()),
            };
            (var.borrow().as_tensor().id(), name)
        })
        .collect();
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    names.get_or_insert_default().extend(named);
}

/// One event for each variable that `loss` was computed from, in the order in which they were used.
pub(crate) fn evidence(loss: &Tensor, grads: &GradStore, emit: &mut dyn FnMut(Evidence)) {
    let nodes = loss.sorted_nodes();
    let vars = nodes.iter().rev().filter(|node| node.is_variable());
    for (order, var) in vars.enumerate() {
        let key = name_of(var).unwrap_or_else(|| format!("#{order} {:?}", var.dims()));
        match state_of(grads.get(var)) {
            Ok((state, norm)) => emit(Evidence::Gradient {
                event: Box::new(GradientEvent {
                    event_id: String::new(),
                    root: "loss".to_owned(),
                    key,
                    state,
                    norm,
                    extra: None,
                }),
                var: None,
            }),
            Err(error) => emit(Evidence::Note(format!(
                "no gradient norm of {key}: {error}"
            ))),
        }
    }
}

pub(super) fn name_of(var: &Tensor) -> Option<String> {
    let names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    names.as_ref()?.get(&var.id()).cloned()
}

/// What a gradient is, with its norm. The norm is never a false zero: it is at least the largest element's magnitude.
///
/// # Errors
/// A gradient whose elements cannot be read.
pub(crate) fn state_of(
    gradient: Option<&Tensor>,
) -> candle_core::Result<(GradientState, Option<f64>)> {
    let Some(gradient) = gradient else {
        return Ok((GradientState::Missing, None));
    };
    let found = stats::statistics(gradient)?;
    Ok(if found.non_finite > 0 {
        (GradientState::NonFinite, None)
    } else if found.abs_max > 0.0 {
        (GradientState::Present, Some(found.l2.max(found.abs_max)))
    } else {
        (GradientState::Zero, Some(0.0))
    })
}

#[cfg(test)]
mod tests {
    use candle_core::{DType, Device};

    use super::*;

    #[test]
    fn each_variable_of_the_graph_has_its_state_and_norm() {
        let device = Device::Cpu;
        let a = Var::new(&[3f32, 4.0], &device).unwrap();
        let b = Var::zeros(2, DType::F32, &device).unwrap();
        let unused = Var::zeros(5, DType::F32, &device).unwrap();
        name_vars("net", [("a", &a), ("b", &b), ("unused", &unused)]);
        // d/da of a² / 2 is a, d/db of b² is 2b = 0.
        let loss = ((a.sqr().unwrap() / 2.0).unwrap() + b.sqr().unwrap()).unwrap();
        let loss = loss.sum_all().unwrap();
        let grads = loss.backward().unwrap();
        let mut found = Vec::new();
        evidence(&loss, &grads, &mut |evidence| {
            if let Evidence::Gradient { event, .. } = evidence {
                found.push((event.key, event.state, event.norm));
            }
        });
        found.sort_by(|a, b| a.0.cmp(&b.0));
        let expected = [
            ("net.a".to_owned(), GradientState::Present, Some(5.0)),
            ("net.b".to_owned(), GradientState::Zero, Some(0.0)),
        ];
        assert_eq!(found, expected);
    }
}
