//! The free functions: for code that an attribute cannot stand on.

use std::panic::Location;

use crate::capture::{self, Kind, Measured};
use crate::observe::{Observe, ObserveScalar};
use crate::phase::ExecutionStep;
use crate::private::outcome;
use crate::record::{Ended, Name, RecordSite, Span, SpanSource, recorder};

/// A span on this thread until the guard is dropped.
///
/// ```
/// let _span = candle_profiler::span("tokenize");
/// ```
#[inline]
#[track_caller]
pub fn span(name: impl Into<Box<str>>) -> Span {
    open(name, None)
}

/// A span tagged as forward, backward or optimizer step.
#[inline]
#[track_caller]
pub fn step_span(name: impl Into<Box<str>>, step: ExecutionStep) -> Span {
    open(name, Some(step))
}

#[inline]
#[track_caller]
fn open(name: impl Into<Box<str>>, step: Option<ExecutionStep>) -> Span {
    if cfg!(feature = "off") {
        return Span::none();
    }
    let location = Location::caller();
    match recorder() {
        None => Span::none(),
        Some(recorder) => {
            let _own = crate::allocator::uncounted();
            let name = named(name.into(), location);
            Span::enter_as(
                recorder,
                SpanSource::Free {
                    name,
                    location,
                    step,
                },
            )
        }
    }
}

/// A blank name says nothing: the place stands in.
pub(crate) fn named(name: Box<str>, location: &Location<'_>) -> Box<str> {
    if !name.trim().is_empty() {
        return name;
    }
    let file = crate::source::short(location.file());
    let place = format!("{file}:{}:{}", location.line(), location.column());
    crate::say::once(&format!(
        "{place}: a name is blank; the place stands in for it"
    ));
    place.into()
}

/// Measures what happens until the guard is dropped, as a call of the name: see [`macro@crate::measured`].
///
/// The guard does not see an `Err`: call [`Measured::fail`], or use [`measure_with`].
#[track_caller]
pub fn measure(name: impl Into<Box<str>>) -> Measured {
    if cfg!(feature = "off") {
        return Measured::off();
    }
    let location = Location::caller();
    let source = |name| SpanSource::Free {
        name,
        location,
        step: None,
    };
    match capture::current_or_off() {
        Err(()) => Measured::off(),
        Ok(Some(recorder)) => {
            let _own = crate::allocator::uncounted();
            Measured::inside_named(recorder, source(named(name.into(), location)))
        }
        Ok(None) => match capture::state() {
            None => Measured::off(),
            Some(state) => {
                let name = named(name.into(), location);
                match capture::counter_of(&name, Kind::Train) {
                    Some(counter) => Measured::named(state, counter, source(name)),
                    None => Measured::off(),
                }
            }
        },
    }
}

/// Measures `work` as a call of the name; where it gives `Err`, the trace ends as failed with its text.
///
/// # Errors
/// What `work` gives.
#[track_caller]
pub fn measure_with<T, E: std::fmt::Display>(
    name: impl Into<Box<str>>,
    work: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    if cfg!(feature = "off") {
        return work();
    }
    let measured = measure(name);
    let value = work();
    outcome(&value).__candle_profiler_finish(measured.end());
    value
}

/// Records the statistics of the tensors in `value` under the label, where a capture is open.
#[inline]
#[track_caller]
pub fn record_stats<T: Observe + ?Sized>(label: &str, value: &T) {
    if cfg!(feature = "off") {
        return;
    }
    if recorder().is_none() {
        if crate::nonfinite::watching() {
            let site = site(Location::caller());
            crate::observe::watch(&site, Some(label.to_owned()), &|observer| {
                value.observe_into(observer)
            });
        }
        return;
    }
    let _own = crate::allocator::uncounted();
    let site = site(Location::caller());
    crate::observe::statistics(&Ended::here(), &site, Some(label.to_owned()), &|observer| {
        value.observe_into(observer)
    });
}

/// Records a number under the label, where a capture is open.
#[inline]
#[track_caller]
pub fn record_scalar<T: ObserveScalar + ?Sized>(label: &str, value: &T) {
    if cfg!(feature = "off") {
        return;
    }
    if recorder().is_none() {
        if crate::nonfinite::watching() {
            let site = site(Location::caller());
            crate::observe::watch_scalar(&site, Some(label.to_owned()), &|observer| {
                value.observe_scalar(observer)
            });
        }
        return;
    }
    let _own = crate::allocator::uncounted();
    let site = site(Location::caller());
    crate::observe::scalars(&Ended::here(), &site, Some(label.to_owned()), &|observer| {
        value.observe_scalar(observer)
    });
}

fn site(location: &'static Location<'static>) -> RecordSite {
    RecordSite(
        Name::Text("unnamed"),
        location.file(),
        location.line(),
        false,
        Name::Text(""),
    )
}

/// Records gradients that the program has by name, where a capture is open: `items` are pairs of a name and a gradient,
/// or `None` where there is none. `root` is what was differentiated.
///
/// For a `GradStore` that a function returns or takes, `#[record_gradients]` does it, and [`backward`] by itself.
///
/// ```
/// # fn main() -> candle_core::Result<()> {
/// use candle_core::{Device, Var};
///
/// let weight = Var::new(&[1f32, 2.0], &Device::Cpu)?;
/// let grads = weight.sqr()?.sum_all()?.backward()?;
/// candle_profiler::record_gradients("loss", [("weight", grads.get(&weight))]);
/// # Ok(())
/// # }
/// ```
#[cfg(feature = "candle")]
pub fn record_gradients<N: AsRef<str>, G: crate::tensor::Gradient>(
    root: &str,
    items: impl IntoIterator<Item = (N, G)>,
) {
    if cfg!(feature = "off") || recorder().is_none() {
        return;
    }
    let at = Ended::here();
    if at.wants(crate::capture::Plane::Gradients) {
        // The program's iterator runs here, before anything of ours is locked.
        let items: Vec<(N, G)> = items.into_iter().collect();
        at.record(|emit| crate::tensor::named_gradients(root, &items, emit));
    }
}

/// Where the evidence of a span that has just ended belongs.
#[cfg(feature = "candle")]
const AFTER: Ended = Ended::last();

/// Whether the gradients of the backward pass that is just over are wanted.
#[cfg(feature = "candle")]
fn watches() -> bool {
    !cfg!(feature = "off") && recorder().is_some() && AFTER.wants(crate::capture::Plane::Gradients)
}

/// `loss.backward()` in a backward span, with the size of the graph, and the state and norm of each variable's
/// gradient: see [`crate::name_vars`].
///
/// # Errors
/// What candle gives.
#[cfg(feature = "candle")]
#[track_caller]
pub fn backward(
    loss: &candle_core::Tensor,
) -> candle_core::Result<candle_core::backprop::GradStore> {
    let grads = {
        let _span = step_span("backward", ExecutionStep::Backward);
        loss.backward()?
    };
    if watches() {
        AFTER.record(|emit| crate::tensor::backward_evidence(loss, &grads, emit));
    }
    Ok(grads)
}

/// `loss.backward()` in a backward span, then `optimizer.step(&grads)` in an optimizer span.
///
/// An optimizer's own `backward_step` is not called.
///
/// # Errors
/// What candle gives.
#[cfg(feature = "nn")]
#[track_caller]
pub fn backward_step<O: candle_nn::Optimizer>(
    optimizer: &mut O,
    loss: &candle_core::Tensor,
) -> candle_core::Result<()> {
    let grads = backward(loss)?;
    if !cfg!(feature = "off") && crate::nonfinite::watching() {
        let at = site(Location::caller());
        crate::observe::watch_gradients(&AFTER, &at, loss, &grads);
    }
    let address = std::ptr::from_ref(optimizer).addr();
    let mut before = None;
    if watches() {
        let optimizer = (address, optimizer.learning_rate());
        AFTER.record(|_| before = Some(crate::tensor::Moves::before(optimizer, loss, &grads)));
    }
    {
        let _span = step_span("optimizer", ExecutionStep::Optimizer);
        optimizer.step(&grads)?;
    }
    if let Some(before) = before {
        AFTER.record(|emit| before.after(loss, emit));
    }
    Ok(())
}
