//! Whether a tensor's values are as they should be.

use candle_core::{DType, Tensor};

use super::stats::{self, AlarmOn, Statistics};
use crate::nonfinite::{Found, Recurring};
use crate::record::{Evidence, RecordSite};
use crate::view::summary;

/// What alarms, as the user has set it.
fn on() -> AlarmOn {
    match crate::capture::alarms_at_negative_infinity() {
        true => AlarmOn::AnyNonFinite,
        false => AlarmOn::NanOrPosInf,
    }
}

/// Which tensor it is in other steps, and whether it may hold anything.
#[derive(Clone, Copy)]
pub(super) struct Which {
    recurring: Option<Recurring>,
    allow_nonfinite: bool,
}

impl Which {
    pub(super) fn next(site: &RecordSite, label: &str) -> Self {
        let allow_nonfinite = site.allows_nonfinite();
        Self {
            recurring: match allow_nonfinite {
                true => None,
                false => Recurring::next(site, label),
            },
            allow_nonfinite,
        }
    }
}

/// The statistics as evidence, and what is wrong with the tensor, going by them; if nothing is, they are kept as its last
/// good ones. `tensor`: where it can be looked at again.
pub(super) fn evidence(
    label: &str,
    which: Which,
    (dims, dtype): (&[usize], DType),
    tensor: Option<&Tensor>,
    statistics: Statistics,
) -> (Evidence, Option<Found>) {
    let found = match which.allow_nonfinite {
        true => None,
        false => judged(label, which.recurring, (dims, dtype), tensor, &statistics),
    };
    let evidence = Evidence::Statistics {
        alarm: Some(found.is_some()),
        before: found.as_ref().and_then(|found| found.before),
        event: Box::new(super::statistics_event(label, dims, dtype, statistics)),
    };
    (evidence, found)
}

fn judged(
    label: &str,
    which: Option<Recurring>,
    what: (&[usize], DType),
    tensor: Option<&Tensor>,
    statistics: &Statistics,
) -> Option<Found> {
    let alarms = match on() {
        AlarmOn::NanOrPosInf => statistics.nan + statistics.pos_inf > 0,
        AlarmOn::AnyNonFinite => statistics.non_finite > 0,
    };
    if !alarms {
        if let Some(which) = which {
            which.note_good(statistics.rms, statistics.abs_max);
        }
        return None;
    }
    Some(Found {
        what: described(label, what, tensor, statistics),
        before: which.and_then(Recurring::last_good),
    })
}

/// `logits (f32 [2, 3]): 1 of 6 values (1 NaN), first at [0, 1]`
fn described(
    label: &str,
    (dims, dtype): (&[usize], DType),
    tensor: Option<&Tensor>,
    statistics: &Statistics,
) -> String {
    let mut statistics = statistics.clone();
    if statistics.neg_inf > 0 && on() == AlarmOn::NanOrPosInf {
        // The first of those that alarm, not of the mask's.
        let alarm = tensor.and_then(|tensor| stats::has_alarm(tensor, on()).ok().flatten());
        statistics.first_non_finite = alarm.map(|alarm| alarm.index);
    }
    let event = super::statistics_event(label, dims, dtype, statistics);
    let shown = summary::Statistics::of(&event, None);
    let what = summary::described(&shown);
    format!("{label} ({what}): {}", shown.non_finite_text())
}

fn looked_at(label: &str, which: Option<Recurring>, tensor: &Tensor) -> Option<Found> {
    let statistics = stats::statistics(tensor).ok()?;
    judged(
        label,
        which,
        (tensor.dims(), tensor.dtype()),
        Some(tensor),
        &statistics,
    )
}

/// What is wrong with the tensor, on a step that is not captured: mostly one quick test.
pub(crate) fn watched(site: &RecordSite, label: &str, tensor: &Tensor) -> Option<Found> {
    let which = Recurring::next(site, label);
    if crate::device::is_recording(tensor.device()) {
        return None;
    }
    let close = which.is_some_and(|which| which.looks_closely(tensor.elem_count()));
    if !close && stats::has_alarm(tensor, on()).ok()?.is_none() {
        return None;
    }
    looked_at(label, which, tensor)
}

/// What is wrong with the gradients of a backward pass: of the variable that was used first.
#[cfg(feature = "nn")]
pub(crate) fn watched_gradients(
    loss: &Tensor,
    grads: &candle_core::backprop::GradStore,
) -> Option<Found> {
    // The store holds gradients of constants too, which no optimizer uses.
    let nodes = loss.sorted_nodes();
    let mut variables = nodes.iter().rev().filter(|node| node.is_variable());
    let (variable, gradient) = variables.find_map(|variable| {
        let gradient = grads.get(variable)?;
        let alarm = stats::has_alarm(gradient, on()).ok()?;
        alarm.map(|_| (variable, gradient))
    })?;
    let label = match crate::record::name_of(super::serial(variable.id())) {
        Some(name) => format!("gradient of {name}"),
        None => "gradient of a variable without a name".to_owned(),
    };
    looked_at(&label, None, gradient)
}
