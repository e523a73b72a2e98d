//! What candle's tensors tell about themselves.

mod alarms;
pub(crate) mod cut;
mod gradients;
pub(crate) mod graph;
mod later;
mod mask;
#[cfg(feature = "nn")]
mod moves;
mod norms;
mod plan;
pub mod stats;
mod variables;
mod wrap;

use candle_core::{DType, Tensor, Var};

pub(crate) use alarms::watched;
#[cfg(feature = "nn")]
pub(crate) use alarms::watched_gradients;
pub use cut::{Detached, detached};
pub use gradients::Gradient;
pub(crate) use gradients::{
    Request, evidence as gradient_evidence, named as named_gradients, norm_after,
    of_loss as backward_evidence, state_of as gradient_state,
};
pub(crate) use graph::{Watch, differentiated, mark_first, reached, serial, stored};
pub(crate) use later::{Later, read_back};
#[cfg(feature = "nn")]
pub(crate) use moves::Moves;
pub(crate) use norms::weights as norm_weights;
pub(crate) use plan::Plan;
pub(crate) use variables::Entry;
pub use variables::{Variable, Variables, name_vars};
pub use wrap::{ByMode, ObserveExt, Plain, Profiled, Wrapped, profiled};

use crate::instrument::candle::{device_label, dtype_label, tensor_id};
use crate::nonfinite::Found;
use crate::observe::{Observe, ObserveScalar, Observer, ScalarObserver};
use crate::record::{Evidence, RecordSite};
use crate::trace::{
    MemoryCategory, TensorEvent, TensorExtra, TensorStatsEvent, TensorStatsExtra,
    dense_tensor_bytes,
};
use stats::Statistics;

impl Observe for Tensor {
    fn observe_into(&self, observer: &mut Observer<'_>) {
        observer.tensor(self);
    }
}

impl Observe for Var {
    fn observe_into(&self, observer: &mut Observer<'_>) {
        observer.tensor(self.as_tensor());
    }
}

impl ObserveScalar for Tensor {
    fn observe_scalar(&self, observer: &mut ScalarObserver<'_>) {
        match scalar(self) {
            Ok(number) => observer.number(number),
            Err(error) => crate::say::once(&format!("record_scalar: {error}")),
        }
    }
}

impl ObserveScalar for Var {
    fn observe_scalar(&self, observer: &mut ScalarObserver<'_>) {
        self.as_tensor().observe_scalar(observer);
    }
}

/// The one number of a tensor.
fn scalar(tensor: &Tensor) -> candle_core::Result<f64> {
    if tensor.elem_count() != 1 {
        candle_core::bail!(
            "a tensor of shape {:?} is no number; allowed is one with a single element",
            tensor.dims()
        );
    }
    if crate::device::is_recording(tensor.device()) {
        candle_core::bail!("the device was recording a graph, and the number could not be read");
    }
    let statistics = stats::statistics(tensor)?;
    Ok(if statistics.nan > 0 {
        f64::NAN
    } else if statistics.pos_inf > 0 {
        f64::INFINITY
    } else if statistics.neg_inf > 0 {
        f64::NEG_INFINITY
    } else {
        statistics.mean
    })
}

/// What is recorded of a labelled tensor: what it is, and the statistics of its elements. Gives what is not finite
/// and should be.
pub(crate) fn evidence(
    site: &RecordSite,
    label: &str,
    tensor: &Tensor,
    emit: &mut dyn FnMut(Evidence),
) -> Option<Found> {
    let mut found = None;
    let which = alarms::Which::next(site, label);
    if crate::device::is_recording(tensor.device()) {
        emit(Evidence::Note(format!(
            "no statistics of {label}: the device was recording a graph"
        )));
    } else if later::waits(tensor) {
        emit(match Later::begin(label, which, tensor) {
            Ok(later) => Evidence::Later(later),
            Err(error) => Evidence::Note(format!("no statistics of {label}: {error}")),
        });
    } else {
        emit(match stats::statistics(tensor) {
            Ok(statistics) => {
                let what = (tensor.dims(), tensor.dtype());
                let (evidence, bad) =
                    alarms::evidence(label, which, what, Some(tensor), statistics);
                found = bad;
                evidence
            }
            Err(error) => Evidence::Note(format!("no statistics of {label}: {error}")),
        });
    }
    emit(Evidence::Tensor(Box::new(tensor_event(
        Some(label),
        tensor,
    ))));
    found
}

/// That a tensor was there, without a look at its elements.
pub(crate) fn seen(label: &str, tensor: &Tensor) -> Evidence {
    Evidence::Tensor(Box::new(tensor_event(Some(label), tensor)))
}

fn tensor_event(label: Option<&str>, tensor: &Tensor) -> TensorEvent {
    let is_variable = tensor.is_variable();
    let dtype = dtype_label(tensor.dtype());
    let extra = TensorExtra {
        tracked: Some(tensor.track_op()),
        ..TensorExtra::default()
    };
    TensorEvent {
        span_id: String::new(),
        tensor_id: tensor_id(tensor),
        label: label.map(str::to_owned),
        shape: tensor.dims().to_vec(),
        dense_bytes: dense_tensor_bytes(tensor.dims(), &dtype),
        dtype,
        device: device_label(tensor.device()),
        requires_grad: is_variable,
        category: if is_variable {
            MemoryCategory::Parameter
        } else {
            MemoryCategory::Activation
        },
        extra: Some(Box::new(extra)),
    }
}

/// The statistics of a tensor as an event; the span's id is left to whoever writes it.
pub(crate) fn statistics_event(
    label: &str,
    dims: &[usize],
    dtype: DType,
    statistics: Statistics,
) -> TensorStatsEvent {
    let extra = TensorStatsExtra {
        min: statistics.min,
        max: statistics.max,
        std: Some(statistics.std),
        l2: Some(statistics.l2),
        zeros: Some(statistics.zeros),
        nan: Some(statistics.nan),
        pos_inf: Some(statistics.pos_inf),
        neg_inf: Some(statistics.neg_inf),
        overflow_share: statistics.overflow_share,
        underflow_share: statistics.underflow_share,
        first_non_finite: statistics.first_non_finite,
        ..TensorStatsExtra::default()
    };
    TensorStatsEvent {
        span_id: String::new(),
        label: label.to_owned(),
        shape: dims.to_vec(),
        dtype: dtype_label(dtype),
        elements: statistics.elements,
        non_finite: statistics.non_finite,
        rms: statistics.rms,
        abs_max: statistics.abs_max,
        mean: statistics.mean,
        extra: Some(Box::new(extra)),
    }
}

/// The tensor that a value is, told by its type: a `Tensor`, or a reference or `Option` of one.
pub(crate) fn as_tensor<T: ?Sized>(value: &T) -> Option<&Tensor> {
    let is = typeid::of::<T>();
    let at = std::ptr::from_ref(value).cast::<()>();
    if is == typeid::of::<Tensor>() {
        // SAFETY: `T` is `Tensor`, which has no lifetime that `typeid` could be blind to.
        return Some(unsafe { &*at.cast::<Tensor>() });
    }
    if is == typeid::of::<Var>() {
        // SAFETY: `T` is `Var`, which has no lifetime either.
        return Some(unsafe { &*at.cast::<Var>() }.as_tensor());
    }
    if is == typeid::of::<&Tensor>() || is == typeid::of::<&mut Tensor>() {
        // SAFETY: `T` is a reference to a `Tensor`, both kinds of which have the layout of a pointer; it lives at
        // least as long as the borrow of `value`.
        return Some(unsafe { *at.cast::<&Tensor>() });
    }
    if is == typeid::of::<&&Tensor>() {
        // SAFETY: `T` is `&&Tensor`, which lives at least as long as the borrow of `value`.
        return Some(unsafe { **at.cast::<&&Tensor>() });
    }
    if is == typeid::of::<&Var>() {
        // SAFETY: `T` is `&Var`, which lives at least as long as the borrow of `value`.
        return Some(unsafe { *at.cast::<&Var>() }.as_tensor());
    }
    if is == typeid::of::<Option<Tensor>>() {
        // SAFETY: `T` is `Option<Tensor>`.
        return unsafe { &*at.cast::<Option<Tensor>>() }.as_ref();
    }
    if is == typeid::of::<Option<&Tensor>>() {
        // SAFETY: `T` is `Option<&Tensor>`, which may be copied.
        return unsafe { *at.cast::<Option<&Tensor>>() };
    }
    tell_foreign(std::any::type_name::<T>());
    None
}

/// Whether a value that was not recognised as one of ours is a tensor all the same.
fn is_foreign(type_name: &str) -> bool {
    // Ours has been recognised by now in these forms, but not behind any number of references.
    let bare = type_name
        .strip_prefix("&mut ")
        .or_else(|| type_name.strip_prefix('&'))
        .unwrap_or(type_name);
    bare == std::any::type_name::<Tensor>()
}

/// A tensor of another candle than ours cannot be read: says so, once, and how to find out where it comes from.
fn tell_foreign(type_name: &str) {
    if is_foreign(type_name) {
        crate::say::once(
            "an argument is a `Tensor` of another candle-core than the one candle-profiler was built with, and cannot \
             be read; `cargo tree -d -i candle-core` shows which crates bring which",
        );
    }
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::*;

    #[test]
    fn tensors_are_known_by_their_type() {
        let mut tensor = Tensor::zeros((2, 3), DType::F32, &Device::Cpu).unwrap();
        let id = tensor.id();
        assert_eq!(as_tensor(&tensor).map(Tensor::id), Some(id));
        assert_eq!(as_tensor(&&tensor).map(Tensor::id), Some(id));
        assert_eq!(as_tensor(&&&tensor).map(Tensor::id), Some(id));
        assert_eq!(as_tensor(&&mut tensor).map(Tensor::id), Some(id));
        assert_eq!(as_tensor(&Some(tensor.clone())).map(Tensor::id), Some(id));
        assert_eq!(as_tensor(&Some(&tensor)).map(Tensor::id), Some(id));
        assert!(as_tensor(&None::<Tensor>).is_none());
        assert!(as_tensor(&7_u32).is_none());
        assert!(as_tensor("text").is_none());
    }

    #[test]
    fn only_a_tensor_that_is_not_ours_is_foreign() {
        for (name, foreign) in [
            ("candle_core::tensor::Tensor", true),
            ("&candle_core::tensor::Tensor", true),
            ("&mut candle_core::tensor::Tensor", true),
            // Behind more than that, ours may be meant.
            ("&&&candle_core::tensor::Tensor", false),
            ("alloc::vec::Vec<candle_core::tensor::Tensor>", false),
            ("my_candle_core::tensor::Tensor", false),
            ("u32", false),
        ] {
            assert_eq!(is_foreign(name), foreign, "{name}");
        }
    }

    #[test]
    fn a_scalar_is_a_single_element() {
        let one = Tensor::new(2.5_f32, &Device::Cpu).unwrap();
        assert!((scalar(&one).unwrap() - 2.5).abs() < f64::EPSILON);
        let many = Tensor::zeros(3, DType::F32, &Device::Cpu).unwrap();
        assert!(scalar(&many).unwrap_err().to_string().contains("[3]"));
        let nan = Tensor::new(f32::NAN, &Device::Cpu).unwrap();
        assert!(scalar(&nan).unwrap().is_nan());
    }
}
