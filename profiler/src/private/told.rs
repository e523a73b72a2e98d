//! What a function that returns a boxed future tells of its arguments when it is called: they may be gone when the future
//! begins.

use super::{named, own};
use crate::capture::{self, Details, Key};
use crate::record::{AsyncSpan, CallSite, SpanSource, recorder};

/// A text of the arguments, built only while profiling is on.
pub fn told(text: impl FnOnce() -> String) -> Option<String> {
    capture::current_or_off().is_ok().then(|| own(text))
}

/// Opens a span whose name was told at the call.
pub fn async_enter_told(site: &'static CallSite, told: Option<String>) -> AsyncSpan {
    match recorder() {
        None => AsyncSpan::none(),
        Some(recorder) => {
            let source = match told {
                Some(text) => named(site, text),
                None => SpanSource::Site(site),
            };
            AsyncSpan::begin(recorder, source)
        }
    }
}

/// What a measured call is asked, while profiling is on.
pub fn asked(
    key: impl FnOnce(&mut Key),
    details: impl FnOnce(&mut Details),
) -> Option<(Key, Details)> {
    capture::current_or_off()
        .is_ok()
        .then(|| own(|| (Key::asked(key), Details::asked(details))))
}

/// Enters a measured call that was asked when it was made.
pub fn async_measure_told(site: &'static CallSite, asked: Option<(Key, Details)>) -> AsyncSpan {
    let (asked_key, asked_details) = asked.unwrap_or_default();
    super::async_measure_as(
        site,
        |key| *key = asked_key,
        |details| *details = asked_details,
    )
}
