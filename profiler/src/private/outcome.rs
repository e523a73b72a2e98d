//! Whether a value says that the call failed, told by its type and never by how the type is written.
//!
//! `(&&&&Outcome(&value)).__candle_profiler_failure()` takes the first of the traits below that the type fits: method
//! lookup tries the receiver with the most references first.

use std::fmt::{Debug, Display};

/// The value that a call returned.
pub struct Outcome<'a, T: ?Sized>(pub &'a T);

macro_rules! levels {
    ($($(#[$doc:meta])* $level:ident;)*) => {$(
        $(#[$doc])*
        pub trait $level {
            /// Why the call failed, if it did.
            fn __candle_profiler_failure(&self) -> Option<String>;
        }
    )*};
}

levels! {
    /// `Err` that can be displayed.
    Displayed;
    /// `Err` that can only be debugged.
    Debugged;
    /// `Err` of any other type.
    Typed;
    /// Anything else has not failed.
    Other;
}

impl<T, E: Display> Displayed for &&&Outcome<'_, Result<T, E>> {
    fn __candle_profiler_failure(&self) -> Option<String> {
        self.0
            .as_ref()
            .err()
            .map(|error| guarded(|| error.to_string()))
    }
}

impl<T, E: Debug> Debugged for &&Outcome<'_, Result<T, E>> {
    fn __candle_profiler_failure(&self) -> Option<String> {
        self.0
            .as_ref()
            .err()
            .map(|error| guarded(|| format!("{error:?}")))
    }
}

impl<T, E> Typed for &Outcome<'_, Result<T, E>> {
    fn __candle_profiler_failure(&self) -> Option<String> {
        let error = self.0.as_ref().err();
        error.map(|_| std::any::type_name::<E>().to_owned())
    }
}

impl<T: ?Sized> Other for Outcome<'_, T> {
    fn __candle_profiler_failure(&self) -> Option<String> {
        None
    }
}

/// The error's own text is the program's code: what it does wrong must not end the program here.
fn guarded(text: impl FnOnce() -> String) -> String {
    let text = std::panic::catch_unwind(std::panic::AssertUnwindSafe(text));
    text.unwrap_or_else(|_| "an error whose text could not be made".to_owned())
}
