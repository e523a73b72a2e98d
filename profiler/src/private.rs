//! What the expansions of the attributes call. Not for use by hand: no promise of stability.
//!
//! Every path that an expansion names starts here, so that a renamed or re-exported crate needs one `crate = path`.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

pub use crate::capture::{Arguments, Details, Key, Measured, Turn, Turns};
pub use crate::observe::{Observe, ObserveScalar};
pub use crate::phase::ExecutionStep;
pub use crate::record::{
    AsyncSpan, CallSite, Ended, GradientSite, Instrumented, Name, RecordSite, Span, instrument,
};
pub use crate::trace::SpanKind;

mod crossing;
mod gradients;
mod operands;
mod operation;
pub mod outcome;
mod told;
#[cfg(feature = "candle")]
pub use crate::tensor::Variables;
pub use crossing::{
    Blank, Called, Given, Hidden, NotOkay, Okay, Returned, Shown, Unseen, crossed, crossed_bare,
    crossing, detaches, given, returned,
};
pub use gradients::{HoldsGradients, backward_evidence};
#[cfg(feature = "candle")]
pub use gradients::{
    Noted, gradients_after, gradients_given, noted, noted_of_loss, record_gradients,
};
pub use operands::Operands;
pub use operation::{OpBegin, OpSite, op, op_begin};
pub use outcome::outcome;
pub use told::{asked, async_enter_told, async_measure_told, told};

use crate::capture;
use crate::nonfinite::watching;
use crate::record::{SpanSource, recorder};

/// Opens a span with the call site's own name.
#[inline(always)]
pub fn enter(site: &'static CallSite) -> Span {
    Span::enter(site)
}

/// Opens a span whose name is built only while a capture is open.
#[inline(always)]
pub fn enter_named(site: &'static CallSite, text: impl FnOnce() -> String) -> Span {
    match recorder() {
        None => Span::none(),
        Some(recorder) => Span::enter_as(recorder, named(site, own(text))),
    }
}

/// Runs work whose memory is the profiler's own.
fn own<R>(work: impl FnOnce() -> R) -> R {
    let _own = crate::allocator::uncounted();
    work()
}

/// The same with `{#}`, the ordinal of this call under its parent span.
#[inline(always)]
pub fn enter_numbered(site: &'static CallSite, text: impl FnOnce(u64) -> String) -> Span {
    match recorder() {
        None => Span::none(),
        Some(recorder) => {
            let ordinal = recorder.ordinal(std::ptr::from_ref(site).addr());
            let span = Span::enter_as(recorder, named(site, own(|| text(ordinal))));
            recorder.set_own_ordinal(ordinal);
            span
        }
    }
}

/// A span's source with a built name; a blank one leaves the default.
fn named(site: &'static CallSite, text: String) -> SpanSource {
    let _own = crate::allocator::uncounted();
    if text.trim().is_empty() {
        crate::say::once(&format!(
            "{}:{}: a span's name came out blank; the default name stands in",
            site.file(),
            site.line()
        ));
        return SpanSource::Site(site);
    }
    SpanSource::Named(site, text.into())
}

/// Enters a measured call whose attribute says nothing but where it stands; `arguments` may tell the device.
#[inline(always)]
pub fn measure(site: &'static CallSite, arguments: impl Arguments) -> Measured {
    measure_as(site, |_| {}, |details| arguments.tell(details))
}

/// Enters a measured call.
#[inline(always)]
pub fn measure_as(
    site: &'static CallSite,
    key: impl FnOnce(&mut Key),
    details: impl FnOnce(&mut Details),
) -> Measured {
    match capture::current_or_off() {
        Err(()) => Measured::off(),
        Ok(None) => Measured::call(site, key, details),
        Ok(Some(recorder)) => {
            let _own = crate::allocator::uncounted();
            Measured::inside(recorder, site, Key::asked(key))
        }
    }
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
pub fn text(_site: &'static RecordSite, text: impl FnOnce() -> String) -> Option<String> {
    (recorder().is_some() || watching()).then(|| own(text))
}

/// The same with `{#}`, the ordinal of this call under the innermost span.
#[inline(always)]
pub fn numbered_text(
    site: &'static RecordSite,
    text: impl FnOnce(u64) -> String,
) -> Option<String> {
    match recorder() {
        Some(recorder) => Some(own(|| {
            text(recorder.ordinal(std::ptr::from_ref(site).addr()))
        })),
        None if watching() => capture::watched_ordinal(site).map(text),
        None => None,
    }
}

/// The same for a record inside a call: `{#}` is the number in that call's own name, if it has one there.
#[inline(always)]
pub fn inner_numbered_text(
    site: &'static RecordSite,
    text: impl FnOnce(u64) -> String,
) -> Option<String> {
    match recorder() {
        Some(recorder) => {
            let number = recorder.own_ordinal();
            let site = std::ptr::from_ref(site).addr();
            Some(own(|| {
                text(number.unwrap_or_else(|| recorder.ordinal(site)))
            }))
        }
        None if watching() => capture::watched_ordinal(site).map(text),
        None => None,
    }
}

/// `format!`, reachable by one absolute path.
///
/// A value that cannot be shown, or that panics, leaves the text unfinished; it must not end the program.
pub fn format(arguments: fmt::Arguments<'_>) -> String {
    let mut text = String::new();
    let _ = catch_unwind(AssertUnwindSafe(|| fmt::write(&mut text, arguments)));
    text
}

/// Statistics of the tensors in `value`.
#[inline]
pub fn record_stats<T: Observe + ?Sized>(
    at: &Ended,
    site: &'static RecordSite,
    text: Option<String>,
    value: &T,
) {
    if at.is_recording() {
        crate::observe::statistics(at, site, text, &|observer| value.observe_into(observer));
    } else if watching() {
        crate::observe::watch(site, text, &|observer| value.observe_into(observer));
    }
}

/// The number in `value`.
#[inline]
pub fn record_scalar<T: ObserveScalar + ?Sized>(
    at: &Ended,
    site: &'static RecordSite,
    text: Option<String>,
    value: &T,
) {
    if at.is_recording() {
        crate::observe::scalars(at, site, text, &|observer| value.observe_scalar(observer));
    } else if watching() {
        crate::observe::watch_scalar(site, text, &|observer| value.observe_scalar(observer));
    }
}

/// The span of an `async fn`, called at its first poll.
#[inline(always)]
pub fn async_enter(site: &'static CallSite) -> AsyncSpan {
    match recorder() {
        None => AsyncSpan::none(),
        Some(recorder) => AsyncSpan::begin(recorder, SpanSource::Site(site)),
    }
}

/// See [`enter_named`].
#[inline(always)]
pub fn async_enter_named(site: &'static CallSite, text: impl FnOnce() -> String) -> AsyncSpan {
    match recorder() {
        None => AsyncSpan::none(),
        Some(recorder) => AsyncSpan::begin(recorder, named(site, own(text))),
    }
}

/// See [`enter_numbered`].
#[inline(always)]
pub fn async_enter_numbered(
    site: &'static CallSite,
    text: impl FnOnce(u64) -> String,
) -> AsyncSpan {
    match recorder() {
        None => AsyncSpan::none(),
        Some(recorder) => {
            let ordinal = recorder.ordinal(std::ptr::from_ref(site).addr());
            AsyncSpan::begin(recorder, named(site, own(|| text(ordinal)))).numbered(ordinal)
        }
    }
}

/// See [`measure`].
#[inline(always)]
pub fn async_measure(site: &'static CallSite, arguments: impl Arguments) -> AsyncSpan {
    async_measure_as(site, |_| {}, |details| arguments.tell(details))
}

/// See [`measure_as`].
#[inline(always)]
pub fn async_measure_as(
    site: &'static CallSite,
    key: impl FnOnce(&mut Key),
    details: impl FnOnce(&mut Details),
) -> AsyncSpan {
    match capture::current_or_off() {
        Err(()) => AsyncSpan::none(),
        Ok(None) => capture::async_call(site, key, details),
        Ok(Some(recorder)) => capture::async_inside(recorder, site, key),
    }
}

pub use capture::settings::VARIABLES;

/// Whether the settings in these variables are understood, or what is said of the first that is not; for the fuzz
/// target of the settings.
pub fn read_settings(get: &dyn Fn(&str) -> Option<std::ffi::OsString>) -> Result<(), String> {
    capture::settings::Settings::read(get)
        .map(drop)
        .map_err(|complaint| complaint.to_string())
}
