//! What carries no attribute: modules of other crates in a wrapper, and tensors in the middle of a chain.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use candle_core::{Module, ModuleT, Result, Tensor};

#[cfg(not(feature = "off"))]
pub(crate) use on::Label;

/// A wrapped [`Module`]; see [`Profiled`].
#[derive(Debug, Clone, Copy)]
pub enum Plain {}

/// A wrapped [`ModuleT`], whose `forward_t` is told whether this is training; see [`Profiled`].
#[derive(Debug, Clone, Copy)]
pub enum ByMode {}

/// A module that is recorded: made by [`profiled`].
///
/// It is a `Module` where `M` is one, and gives access to `M` itself. A module that is only a `ModuleT`, such as
/// `BatchNorm` or `Dropout`, is held as `Profiled<M, ByMode>`; for others the second parameter need not be written.
/// With the feature `off` it is nothing but `M`.
#[cfg_attr(feature = "off", repr(transparent))]
pub struct Profiled<M, K = Plain> {
    module: M,
    #[cfg(not(feature = "off"))]
    label: Label,
    kind: PhantomData<fn() -> K>,
}

/// Wraps a module so that each of its forward passes is a span, with statistics of its output under the name.
///
/// ```
/// use candle_core::{DType, Device, Module, Tensor};
/// use candle_nn::{Linear, seq};
/// use candle_profiler::profiled;
///
/// let weight = Tensor::ones((2, 3), DType::F32, &Device::Cpu)?;
/// let linear = profiled("fc1", Linear::new(weight, None));
/// assert_eq!(linear.weight().dims(), [2, 3]);
/// let model = seq().add(linear).add_fn(|x| x.relu());
/// let y = model.forward(&Tensor::ones((4, 3), DType::F32, &Device::Cpu)?)?;
/// assert_eq!(y.dims(), [4, 2]);
/// # Ok::<(), candle_core::Error>(())
/// ```
#[track_caller]
pub fn profiled<M, K>(name: impl Into<Box<str>>, module: M) -> Profiled<M, K>
where
    M: Wrapped<K>,
{
    #[cfg(feature = "off")]
    let _ = name;
    Profiled {
        module,
        #[cfg(not(feature = "off"))]
        label: Label::new(name.into()),
        kind: PhantomData,
    }
}

/// What [`profiled`] takes: any [`Module`] and any [`ModuleT`].
///
/// The parameter tells which of the two, and follows from how the wrapper is used: `forward` and `Sequential` ask for
/// the first, a field's type says it.
pub trait Wrapped<K> {}

impl<M: Module> Wrapped<Plain> for M {}
impl<M: ModuleT> Wrapped<ByMode> for M {}

impl<M, K> Profiled<M, K> {
    /// The module itself.
    pub fn into_inner(self) -> M {
        self.module
    }

    #[cfg(feature = "off")]
    #[inline(always)]
    fn pass(&self, _: &Tensor, forward: impl FnOnce(&M) -> Result<Tensor>) -> Result<Tensor> {
        forward(&self.module)
    }

    #[cfg(not(feature = "off"))]
    #[inline]
    fn pass(&self, input: &Tensor, forward: impl FnOnce(&M) -> Result<Tensor>) -> Result<Tensor> {
        on::pass(&self.label, &self.module, input, || forward(&self.module))
    }
}

impl<M: Module> Module for Profiled<M, Plain> {
    #[inline]
    fn forward(&self, xs: &Tensor) -> Result<Tensor> {
        self.pass(xs, |module| module.forward(xs))
    }
}

impl<M: ModuleT> ModuleT for Profiled<M, ByMode> {
    #[inline]
    fn forward_t(&self, xs: &Tensor, train: bool) -> Result<Tensor> {
        self.pass(xs, |module| module.forward_t(xs, train))
    }
}

impl<M, K> Deref for Profiled<M, K> {
    type Target = M;

    #[inline(always)]
    fn deref(&self) -> &M {
        &self.module
    }
}

impl<M, K> DerefMut for Profiled<M, K> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut M {
        &mut self.module
    }
}

impl<M: Clone, K> Clone for Profiled<M, K> {
    fn clone(&self) -> Self {
        Self {
            module: self.module.clone(),
            #[cfg(not(feature = "off"))]
            label: self.label.clone(),
            kind: PhantomData,
        }
    }
}

impl<M: std::fmt::Debug, K> std::fmt::Debug for Profiled<M, K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.module.fmt(f)
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for candle_core::Tensor {}
    impl Sealed for &candle_core::Tensor {}
    impl<E> Sealed for Result<candle_core::Tensor, E> {}
}

/// Looks at a tensor in the middle of a chain.
///
/// ```
/// use candle_core::{DType, Device, Tensor};
/// use candle_profiler::ObserveExt;
///
/// let x = Tensor::ones((2, 3), DType::F32, &Device::Cpu)?;
/// let y = x.exp().observe("exp")?.sum_all()?;
/// assert_eq!(y.dims().len(), 0);
/// # Ok::<(), candle_core::Error>(())
/// ```
pub trait ObserveExt: sealed::Sealed + Sized {
    /// Records the statistics of the tensor under the label where a capture is open, and gives the value back as it
    /// was. `Err` records nothing.
    fn observe(self, label: &str) -> Self;
}

macro_rules! observed {
    ($([$($generic:ident)?] $type:ty)*) => {$(
        impl$(<$generic>)? ObserveExt for $type {
            #[inline]
            #[track_caller]
            fn observe(self, label: &str) -> Self {
                #[cfg(feature = "off")]
                let _ = label;
                #[cfg(not(feature = "off"))]
                crate::record_stats(label, &self);
                self
            }
        }
    )*};
}

observed! { [] Tensor [] &Tensor [E] std::result::Result<Tensor, E> }

#[cfg(not(feature = "off"))]
mod on {
    use std::panic::Location;
    use std::sync::Arc;

    use candle_core::{Result, Tensor};

    use super::super::cut::{self, Given};

    use crate::observe::Observe;
    use crate::record::{Crossed, Ended, Name, RecordSite, Recorder, Span, SpanSource, recorder};

    /// A wrapper's name and where it was made; shared by its clones and its spans.
    #[derive(Debug, Clone)]
    pub(crate) struct Label {
        name: Arc<str>,
        location: &'static Location<'static>,
    }

    impl Label {
        #[track_caller]
        pub(super) fn new(name: Box<str>) -> Self {
            let location = Location::caller();
            Self {
                name: crate::api::named(name, location).into(),
                location,
            }
        }
    }

    /// A forward pass of a wrapped module.
    #[inline]
    pub(super) fn pass<M>(
        label: &Label,
        module: &M,
        input: &Tensor,
        forward: impl FnOnce() -> Result<Tensor>,
    ) -> Result<Tensor> {
        match recorder() {
            None => {
                let output = forward();
                if crate::nonfinite::watching() {
                    watch(label, &output);
                }
                output
            }
            Some(recorder) => {
                let span = enter(label, recorder);
                let output = forward();
                let ended = span.end();
                if let Ok(output) = &output {
                    look(label, module, &ended, input, output);
                }
                output
            }
        }
    }

    #[cold]
    fn enter(label: &Label, recorder: &'static Recorder) -> Span {
        let source = SpanSource::Module {
            name: Arc::clone(&label.name),
            location: label.location,
        };
        Span::enter_as(recorder, source)
    }

    fn site(label: &Label) -> RecordSite {
        let location = label.location;
        RecordSite(
            Name::Text("module"),
            location.file(),
            location.line(),
            false,
            Name::Text(""),
        )
    }

    /// The module's output: its statistics, and whether the graph ends here.
    #[cold]
    fn look<M>(label: &Label, module: &M, ended: &Ended, input: &Tensor, output: &Tensor) {
        let _own = crate::allocator::uncounted();
        cut::crossed(
            ended,
            Crossed::Module(std::any::type_name::<M>().into()),
            None,
            Given::default(),
            &|see| {
                see(input);
                let _ = crate::tensor::norm_weights(module, see);
            },
            &|see| see(output),
        );
        crate::observe::statistics(
            ended,
            &site(label),
            Some(label.name.to_string()),
            &|observer| {
                output.observe_into(observer);
            },
        );
    }

    /// On a step that is not captured.
    #[cold]
    fn watch(label: &Label, output: &Result<Tensor>) {
        crate::observe::watch(&site(label), Some(label.name.to_string()), &|observer| {
            output.observe_into(observer);
        });
    }
}
