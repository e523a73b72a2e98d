//! What the expansions of the attributes call. Not for use by hand: no promise of stability.
//!
//! Every path that an expansion names starts here, so that a renamed or re-exported crate needs one `crate = path`.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

pub use crate::phase::ExecutionStep;
pub use crate::trace::SpanKind;

/// A name known when the program is built.
#[derive(Clone, Copy, Debug)]
pub enum Name {
    /// The text itself.
    Text(&'static str),
    /// `Type::method`: the type's name from `type_name::<Self>`, cut to its last segment without generics.
    Method(fn() -> &'static str, &'static str),
}

/// One place in the program that opens spans. A constant: one for each instantiation of a generic function.
#[derive(Clone, Copy, Debug)]
pub struct CallSite {
    _name: Name,
    _file: &'static str,
    _line: u32,
    _kind: SpanKind,
    _step: Option<ExecutionStep>,
    _detached: bool,
}

impl CallSite {
    /// A function span.
    pub const fn new(name: Name, file: &'static str, line: u32) -> Self {
        Self { _name: name, _file: file, _line: line, _kind: SpanKind::Function, _step: None, _detached: false }
    }
    /// `kind = …`
    pub const fn kind(mut self, kind: SpanKind) -> Self {
        self._kind = kind;
        self
    }
    /// `profile_step(…)`
    pub const fn step(mut self, step: ExecutionStep) -> Self {
        self._step = Some(step);
        self
    }
    /// `detached`
    pub const fn detached(mut self) -> Self {
        self._detached = true;
        self
    }
}

/// One place that opens measured regions.
#[derive(Clone, Copy, Debug)]
pub struct MeasureSite {
    _span: CallSite,
    _infer: bool,
}

impl MeasureSite {
    /// A training region.
    pub const fn new(span: CallSite) -> Self {
        Self { _span: span, _infer: false }
    }
    /// `measured(infer)`
    pub const fn infer(mut self) -> Self {
        self._infer = true;
        self
    }
}

/// One place that records values; `label` is the label where it is static, else what stands in for a blank text.
#[derive(Clone, Copy, Debug)]
pub struct RecordSite {
    _label: Name,
    _file: &'static str,
    _line: u32,
    _allow_nonfinite: bool,
}

impl RecordSite {
    /// A record with this label.
    pub const fn new(label: Name, file: &'static str, line: u32) -> Self {
        Self { _label: label, _file: file, _line: line, _allow_nonfinite: false }
    }
    /// `allow_nonfinite`
    pub const fn allow_nonfinite(mut self) -> Self {
        self._allow_nonfinite = true;
        self
    }
}

/// An open span on this thread; ends when dropped.
pub struct Span(PhantomData<*const ()>);

impl Span {
    /// Ends the span now; what is recorded `at` the result belongs to it.
    #[inline]
    pub fn end(self) -> Ended {
        Ended::here()
    }
}

impl Drop for Span {
    #[inline]
    fn drop(&mut self) {}
}

/// Opens a span with the call site's own name.
#[inline(always)]
pub fn enter(_site: &'static CallSite) -> Span {
    Span(PhantomData)
}

/// Opens a span whose name is built only while a capture is open.
#[inline(always)]
pub fn enter_named(_site: &'static CallSite, _text: impl FnOnce() -> String) -> Span {
    Span(PhantomData)
}

/// The same with `{#}`, the ordinal of this call under its parent span.
#[inline(always)]
pub fn enter_numbered(_site: &'static CallSite, _text: impl FnOnce(u64) -> String) -> Span {
    Span(PhantomData)
}

/// Where the evidence about a returned value belongs: to the span that has just ended.
pub struct Ended(PhantomData<*const ()>);

impl Ended {
    /// No span of this call has ended: evidence belongs to the innermost open span.
    #[inline(always)]
    pub const fn here() -> Self {
        Self(PhantomData)
    }
    /// Closes the capture that this call opened, if it did; `failure` is asked only then.
    #[inline]
    pub fn finish(self, _failure: impl FnOnce() -> Option<String>) {}
}

/// A measured call; when dropped its span ends and the capture it opened is complete (failed where the thread panics).
pub struct Measured(PhantomData<*const ()>);

impl Measured {
    /// Ends the measured span; the capture stays open until [`Ended::finish`] or the drop of the result.
    #[inline]
    pub fn end(self) -> Ended {
        Ended::here()
    }
}

impl Drop for Measured {
    #[inline]
    fn drop(&mut self) {}
}

/// What decides whether a call is captured: evaluated at every call while profiling is on.
pub struct Key(());

impl Key {
    /// `name = "…{arg}…"`
    pub fn name(&mut self, _text: String) {}
    /// `step = EXPR`
    pub fn step(&mut self, _step: impl TryInto<i128>) {}
}

/// What a captured call tells of itself: evaluated only then.
pub struct Details(());

impl Details {
    /// `device = EXPR`
    pub fn device(&mut self, _device: impl fmt::Debug) {}
    /// `items = EXPR`
    pub fn items(&mut self, _items: impl TryInto<i128>) {}
    /// `tags(key = EXPR)`
    pub fn tag(&mut self, _key: &'static str, _value: impl fmt::Display) {}
    /// An argument of the call, looked at for a tensor that tells the device.
    pub fn argument<T: ?Sized>(&mut self, _value: &T) {}
}

/// Enters a measured call.
#[inline(always)]
pub fn measure(_site: &'static MeasureSite, _key: impl FnOnce(&mut Key), _details: impl FnOnce(&mut Details)) -> Measured {
    Measured(PhantomData)
}

/// Runs the user's body; a function so that the closure's bounds are exactly `FnOnce`.
#[inline(always)]
pub fn invoke<R>(body: impl FnOnce() -> R) -> R {
    body()
}

/// Lets `look` at a value on its way.
#[inline(always)]
pub fn tap<T>(value: T, look: impl FnOnce(&T)) -> T {
    look(&value);
    value
}

/// Stands in a return that is never taken, which tells the type of an `async` block.
pub fn hint<T>() -> T {
    loop {
        std::hint::spin_loop();
    }
}

/// A label's text, built only while a capture is open, from the arguments as they were passed.
#[inline(always)]
pub fn text(_site: &'static RecordSite, _text: impl FnOnce() -> String) -> Option<String> {
    None
}

/// The same with `{#}`.
#[inline(always)]
pub fn numbered_text(_site: &'static RecordSite, _text: impl FnOnce(u64) -> String) -> Option<String> {
    None
}

/// `format!`, reachable by one absolute path.
pub fn format(arguments: fmt::Arguments<'_>) -> String {
    fmt::format(arguments)
}

/// Stand-in of the public trait.
#[diagnostic::on_unimplemented(message = "`{Self}` holds no tensor that `record_stats` could read")]
pub trait Observe {}
/// Stand-in of the public trait.
#[diagnostic::on_unimplemented(message = "`{Self}` is no number that `record_scalar` could read")]
pub trait ObserveScalar {}
#[cfg(feature = "candle")]
impl Observe for candle_core::Tensor {}
#[cfg(feature = "candle")]
impl ObserveScalar for candle_core::Tensor {}
impl<T: Observe + ?Sized> Observe for &T {}
impl<T: Observe + ?Sized> Observe for &mut T {}
impl<T: Observe, E> Observe for Result<T, E> {}
impl<T: Observe> Observe for Option<T> {}
impl<T: Observe> Observe for Vec<T> {}
impl<T: Observe, U: Observe> Observe for (T, U) {}
impl<T: ObserveScalar + ?Sized> ObserveScalar for &T {}
impl<T: ObserveScalar, E> ObserveScalar for Result<T, E> {}
impl ObserveScalar for f32 {}
impl ObserveScalar for f64 {}
impl ObserveScalar for usize {}

/// Statistics of the tensors in `value`.
#[inline]
pub fn record_stats<T: Observe + ?Sized>(_at: &Ended, _site: &'static RecordSite, _text: Option<String>, _value: &T) {}

/// The number in `value`.
#[inline]
pub fn record_scalar<T: ObserveScalar + ?Sized>(_at: &Ended, _site: &'static RecordSite, _text: Option<String>, _value: &T) {}

/// The span of a future, current only during its polls.
pub struct AsyncSpan(());

/// The span of an `async fn`, called at its first poll.
#[inline]
pub fn async_enter(_site: &'static CallSite) -> AsyncSpan {
    AsyncSpan(())
}
/// See [`enter_named`].
#[inline]
pub fn async_enter_named(_site: &'static CallSite, _text: impl FnOnce() -> String) -> AsyncSpan {
    AsyncSpan(())
}
/// See [`enter_numbered`].
#[inline]
pub fn async_enter_numbered(_site: &'static CallSite, _text: impl FnOnce(u64) -> String) -> AsyncSpan {
    AsyncSpan(())
}
/// See [`measure`].
#[inline]
pub fn async_measure(_site: &'static MeasureSite, _key: impl FnOnce(&mut Key), _details: impl FnOnce(&mut Details)) -> AsyncSpan {
    AsyncSpan(())
}

/// Polls `future` inside `span`; gives its output and where the evidence about it belongs.
#[inline]
pub fn instrument<F: Future>(_span: AsyncSpan, future: F) -> Instrumented<F> {
    Instrumented(Box::pin(future))
}

/// See [`instrument`].
pub struct Instrumented<F>(Pin<Box<F>>);

impl<F: Future> Future for Instrumented<F> {
    type Output = (F::Output, Ended);
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(cx).map(|out| (out, Ended::here()))
    }
}

/// Whether a value says that the call failed, by the first of these traits that its type fits:
/// `(&&&&Outcome(&value)).__candle_profiler_failure()`.
pub struct Outcome<'a, T: ?Sized>(pub &'a T);

/// The traits of [`Outcome`], brought into scope by expansions with `as _`.
pub mod outcome {
    use super::Outcome;
    use std::fmt::{Debug, Display};

    /// `Err` that can be displayed.
    pub trait Displayed {
        /// The failure's text.
        fn __candle_profiler_failure(&self) -> Option<String>;
    }
    impl<T, E: Display> Displayed for &&&Outcome<'_, Result<T, E>> {
        fn __candle_profiler_failure(&self) -> Option<String> {
            self.0.as_ref().err().map(ToString::to_string)
        }
    }
    /// `Err` that can only be debugged.
    pub trait Debugged {
        /// The failure's text.
        fn __candle_profiler_failure(&self) -> Option<String>;
    }
    impl<T, E: Debug> Debugged for &&Outcome<'_, Result<T, E>> {
        fn __candle_profiler_failure(&self) -> Option<String> {
            self.0.as_ref().err().map(|error| format!("{error:?}"))
        }
    }
    /// `Err` of any type.
    pub trait Typed {
        /// The failure's type.
        fn __candle_profiler_failure(&self) -> Option<String>;
    }
    impl<T, E> Typed for &Outcome<'_, Result<T, E>> {
        fn __candle_profiler_failure(&self) -> Option<String> {
            self.0.as_ref().err().map(|_| std::any::type_name::<E>().to_owned())
        }
    }
    /// Anything else has not failed.
    pub trait Other {
        /// None.
        fn __candle_profiler_failure(&self) -> Option<String>;
    }
    impl<T: ?Sized> Other for Outcome<'_, T> {
        fn __candle_profiler_failure(&self) -> Option<String> {
            None
        }
    }
}
