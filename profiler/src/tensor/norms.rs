//! candle's norms, whose weights are the only variables that go into one whose input is data.

#[cfg(feature = "nn")]
use candle_nn::{LayerNorm, RmsNorm};

use candle_core::Tensor;

/// Shows the weights of a norm, or of one that a reference refers to, and gives the type's name. It is told by the type.
pub(crate) fn weights<T: ?Sized>(value: &T, see: &mut dyn FnMut(&Tensor)) -> Option<&'static str> {
    #[cfg(feature = "nn")]
    {
        let is = typeid::of::<T>();
        let at = std::ptr::from_ref(value).cast::<()>();
        if is == typeid::of::<LayerNorm>() {
            // SAFETY: `T` is `LayerNorm`, which has no lifetime that `typeid` could be blind to.
            return Some(of_layer_norm(unsafe { &*at.cast::<LayerNorm>() }, see));
        }
        if is == typeid::of::<&LayerNorm>() {
            // SAFETY: `T` is `&LayerNorm`, which lives at least as long as the borrow of `value`.
            return Some(of_layer_norm(unsafe { *at.cast::<&LayerNorm>() }, see));
        }
        if is == typeid::of::<RmsNorm>() {
            // SAFETY: `T` is `RmsNorm`, which has no lifetime either.
            return Some(of_rms_norm(unsafe { &*at.cast::<RmsNorm>() }, see));
        }
        if is == typeid::of::<&RmsNorm>() {
            // SAFETY: `T` is `&RmsNorm`, which lives as long as the reference above.
            return Some(of_rms_norm(unsafe { *at.cast::<&RmsNorm>() }, see));
        }
    }
    let _ = (value, see);
    None
}

#[cfg(feature = "nn")]
fn of_layer_norm(norm: &LayerNorm, see: &mut dyn FnMut(&Tensor)) -> &'static str {
    see(norm.weight());
    norm.bias().into_iter().for_each(see);
    "LayerNorm"
}

#[cfg(feature = "nn")]
fn of_rms_norm(norm: &RmsNorm, see: &mut dyn FnMut(&Tensor)) -> &'static str {
    see(norm.weight());
    "RmsNorm"
}

/// The parts are called as candle calls them in a `VarBuilder`.
#[cfg(feature = "nn")]
mod observed {
    use super::*;
    use crate::observe::{Observe, Observer};

    impl Observe for LayerNorm {
        fn observe_into(&self, observer: &mut Observer<'_>) {
            observer.part("weight", self.weight());
            observer.part("bias", &self.bias());
        }
    }

    impl Observe for RmsNorm {
        fn observe_into(&self, observer: &mut Observer<'_>) {
            observer.part("weight", self.weight());
        }
    }
}
