//! Stores of gradients that an annotated function is given or returns.

use super::Shown;
use crate::observe::Observe;
#[cfg(feature = "candle")]
use crate::record::{Ended, GradientSite};

/// A value that holds a store of gradients.
///
/// Implemented for candle's `GradStore` and for references, `Option`, `Result`, `Box` and pairs that hold one.
#[diagnostic::on_unimplemented(
    message = "`record_gradients` finds no `GradStore` in `{Self}`",
    label = "holds no gradients",
    note = "allowed are candle's `GradStore` and references, `Option`, `Result`, `Box` and pairs that hold one"
)]
pub trait HoldsGradients {
    /// The store.
    #[cfg(feature = "candle")]
    fn store(&self) -> Option<&candle_core::backprop::GradStore>;
}

impl<'a, T: HoldsGradients> Shown<'a, T> {
    /// The value, if it holds a store of gradients.
    #[inline(always)]
    pub fn stored(&self) -> Option<&'a dyn HoldsGradients> {
        Some(self.0)
    }
}

impl super::Hidden {
    /// Nothing.
    #[inline(always)]
    pub fn stored(&self) -> Option<&'static dyn HoldsGradients> {
        None
    }
}

/// Looks at the arguments of a function that differentiates or optimizes: a loss, or what came of one.
#[inline]
pub fn backward_evidence(losses: &[Option<&dyn Observe>], stores: &[Option<&dyn HoldsGradients>]) {
    #[cfg(feature = "candle")]
    if crate::record::recorder().is_some() {
        watched::backward_evidence(losses, stores);
    }
    let _ = (losses, stores);
}

#[cfg(feature = "candle")]
pub use watched::{
    Noted, gradients_after, gradients_given, noted, noted_of_loss, record_gradients,
};

#[cfg(feature = "candle")]
mod watched {
    use std::sync::Arc;

    use candle_core::Tensor;
    use candle_core::backprop::GradStore;

    use super::*;
    use crate::capture::Plane;
    use crate::record::{Evidence, Session, recorder};
    use crate::tensor::{self, Entry, Request};

    impl HoldsGradients for GradStore {
        fn store(&self) -> Option<&GradStore> {
            Some(self)
        }
    }

    macro_rules! through {
        ($($type:ty)*) => {$(
            impl<T: HoldsGradients + ?Sized> HoldsGradients for $type {
                fn store(&self) -> Option<&GradStore> {
                    (**self).store()
                }
            }
        )*};
    }

    through! { &T &mut T Box<T> }

    impl<T: HoldsGradients> HoldsGradients for Option<T> {
        fn store(&self) -> Option<&GradStore> {
            self.as_ref()?.store()
        }
    }

    impl<T: HoldsGradients, E> HoldsGradients for Result<T, E> {
        fn store(&self) -> Option<&GradStore> {
            self.as_ref().ok()?.store()
        }
    }

    impl<T: HoldsGradients, U> HoldsGradients for (T, U) {
        fn store(&self) -> Option<&GradStore> {
            self.0.store()
        }
    }

    pub(super) fn backward_evidence(
        losses: &[Option<&dyn Observe>],
        stores: &[Option<&dyn HoldsGradients>],
    ) {
        let at = Ended::here();
        if !at.wants(Plane::Gradients) {
            return;
        }
        at.record(|emit| {
            for loss in losses.iter().flatten() {
                crate::observe::tensors(*loss, &mut |tensor| {
                    tensor::differentiated(tensor, None, emit);
                });
            }
            for store in stores.iter().flatten() {
                if let Some(grads) = store.store() {
                    emit(Evidence::Backward(Box::new(tensor::stored(grads))));
                }
            }
        });
    }

    /// What a record of gradients knows before the call: the label, the variables, the loss.
    #[derive(Default)]
    pub struct Noted(Option<Box<Known>>);

    #[derive(Default)]
    struct Known {
        root: Option<String>,
        listed: Option<Vec<Entry>>,
        loss: Option<Loss>,
    }

    /// A loss among the arguments.
    struct Loss {
        serial: u64,
        reached: Vec<Entry>,
    }

    /// Notes the label and the loss among `arguments`.
    #[inline]
    pub fn noted_of_loss(root: Option<String>, arguments: &[Option<&dyn Observe>]) -> Noted {
        let mut noted = Noted(None);
        Ended::here().record(|_| {
            noted.0 = Some(Box::new(Known {
                root,
                listed: None,
                loss: loss_among(arguments),
            }));
        });
        noted
    }

    /// The same with the variables that the program lists.
    #[inline]
    pub fn noted(
        site: &'static GradientSite,
        root: Option<String>,
        arguments: &[Option<&dyn Observe>],
        vars: impl FnOnce(&mut dyn FnMut(Option<&str>, &Tensor)) -> bool,
    ) -> Noted {
        let mut noted = Noted(None);
        Ended::here().record(|_| {
            let mut entries = Vec::new();
            let shown = vars(&mut |name, tensor| entries.push(Entry::of(name, tensor)));
            let listed = shown.then_some(entries);
            if listed.is_none() {
                crate::say::once(&format!(
                    "{}:{}: the program holds the lock of these variables, so those of the loss are recorded",
                    site.0.file(),
                    site.0.line()
                ));
            }
            noted.0 = Some(Box::new(Known {
                root,
                listed,
                loss: loss_among(arguments),
            }));
        });
        noted
    }

    /// The first tensor that is a single number and depends on a variable.
    fn loss_among(arguments: &[Option<&dyn Observe>]) -> Option<Loss> {
        let mut found = None;
        for argument in arguments.iter().flatten() {
            crate::observe::tensors(*argument, &mut |tensor| {
                if found.is_none() && tensor.elem_count() == 1 && tensor.dtype().is_float() {
                    found = Some(Loss {
                        serial: tensor::serial(tensor.id()),
                        reached: tensor::reached(tensor),
                    });
                }
            });
        }
        found
    }

    /// The gradients in `value`.
    #[inline]
    pub fn record_gradients<T: HoldsGradients + ?Sized>(
        at: &Ended,
        site: &'static GradientSite,
        noted: Noted,
        value: &T,
    ) {
        if at.is_recording()
            && let Some(grads) = value.store()
        {
            record(at, site, &noted, grads);
        }
    }

    /// The gradients in an argument, before the body runs.
    #[inline]
    pub fn gradients_given<T: HoldsGradients + ?Sized>(
        site: &'static GradientSite,
        noted: Noted,
        argument: &T,
    ) -> Noted {
        if recorder().is_some()
            && let Some(grads) = argument.store()
        {
            record(&Ended::here(), site, &noted, grads);
        }
        noted
    }

    /// The norm of the gradients in an argument that the body may have changed.
    #[inline]
    pub fn gradients_after<T: HoldsGradients + ?Sized>(
        site: &'static GradientSite,
        noted: Noted,
        argument: &T,
    ) {
        let at = Ended::here();
        if recorder().is_some()
            && at.wants(Plane::Gradients)
            && let Some(grads) = argument.store()
        {
            at.record(|emit| {
                with_request(site, &noted, |request, session| {
                    tensor::norm_after(request, grads, session, emit);
                });
            });
        }
    }

    #[cold]
    fn record(at: &Ended, site: &'static GradientSite, noted: &Noted, grads: &GradStore) {
        if !at.wants(Plane::Gradients) {
            return;
        }
        at.record(|emit| {
            with_request(site, noted, |request, session| {
                let mut pass = tensor::stored(grads);
                if let Some(loss) = noted.0.as_ref().and_then(|known| known.loss.as_ref()) {
                    pass.root = Some(loss.serial);
                    let serials = loss.reached.iter().map(|entry| entry.serial);
                    pass.reached = Some(serials.collect());
                }
                emit(Evidence::Backward(Box::new(pass)));
                tensor::gradient_evidence(request, grads, session, emit);
            });
        });
    }

    fn with_request(
        site: &'static GradientSite,
        noted: &Noted,
        make: impl FnOnce(&Request<'_>, Option<&Session>),
    ) {
        let session: Option<Arc<Session>> = recorder().and_then(|recorder| recorder.session());
        let session = session.as_deref();
        let last = session
            .and_then(|session| session.watch.as_ref())
            .and_then(|watch| watch.last_reached());
        let known = noted.0.as_deref();
        let built = known.and_then(|known| known.root.clone());
        let root = match built.filter(|root| !root.trim().is_empty()) {
            Some(root) => root,
            None => site.0.label().resolve().into_owned(),
        };
        let of_loss = known.and_then(|known| known.loss.as_ref());
        let request = Request {
            root: &root,
            listed: known.and_then(|known| known.listed.as_deref()),
            reached: match of_loss {
                Some(loss) => Some(loss.reached.as_slice()),
                None => last.as_deref(),
            },
            only: site.1,
            frozen: site.2,
        };
        make(&request, session);
    }
}
