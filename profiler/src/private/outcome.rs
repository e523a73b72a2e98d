//! Whether a value says that the call failed, told by its type and never by how the type is written.
//!
//! `outcome(&value).__candle_profiler_finish(ended)` takes the first of the methods below that the type fits: method lookup goes from each
//! wrapper to the one inside. They are all methods of the types' own, so that an expansion has nothing
//! to import, and of a name that no trait of the program has.

use std::fmt::{Debug, Display};
use std::ops::Deref;

use crate::capture::Turns;
use crate::record::Ended;

/// The value that a call returned: first looked at as a `Result` whose error can be displayed.
pub struct Outcome<'a, T>(Debugged<'a, T>);

/// Then as one whose error can be debugged.
pub struct Debugged<'a, T>(Typed<'a, T>);

/// Then as one of any error.
pub struct Typed<'a, T>(Other<'a, T>);

/// Anything else has not failed.
pub struct Other<'a, T>(&'a T);

macro_rules! copies {
    ($($name:ident)*) => {$(
        impl<T> Clone for $name<'_, T> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<T> Copy for $name<'_, T> {}
    )*};
}

copies!(Outcome Debugged Typed Other);

/// Asks a value.
#[inline(always)]
pub fn outcome<T>(value: &T) -> Outcome<'_, T> {
    Outcome(Debugged(Typed(Other(value))))
}

impl<T, E: Display> Outcome<'_, Result<T, E>> {
    /// Closes the capture that the call opened, if it did; only then the error is asked for its text.
    #[inline(always)]
    pub fn __candle_profiler_finish(self, ended: Ended) {
        ended.finish(|| text(self.0.0.0.0, |error| error.to_string()));
    }

    /// Decides a turn that the function was left from.
    #[inline(always)]
    pub fn __candle_profiler_decide(self, turns: &Turns) {
        turns.decide(|| text(self.0.0.0.0, |error| error.to_string()));
    }
}

impl<T, E: Debug> Debugged<'_, Result<T, E>> {
    /// The same.
    #[inline(always)]
    pub fn __candle_profiler_finish(self, ended: Ended) {
        ended.finish(|| text(self.0.0.0, |error| format!("{error:?}")));
    }

    /// Decides a turn that the function was left from.
    #[inline(always)]
    pub fn __candle_profiler_decide(self, turns: &Turns) {
        turns.decide(|| text(self.0.0.0, |error| format!("{error:?}")));
    }
}

impl<T, E> Typed<'_, Result<T, E>> {
    /// The same.
    #[inline(always)]
    pub fn __candle_profiler_finish(self, ended: Ended) {
        ended.finish(|| text(self.0.0, |_| std::any::type_name::<E>().to_owned()));
    }

    /// Decides a turn that the function was left from.
    #[inline(always)]
    pub fn __candle_profiler_decide(self, turns: &Turns) {
        turns.decide(|| text(self.0.0, |_| std::any::type_name::<E>().to_owned()));
    }
}

impl<T> Other<'_, T> {
    /// The same.
    #[inline(always)]
    pub fn __candle_profiler_finish(self, ended: Ended) {
        ended.finish(|| None);
    }

    /// Decides a turn that the function was left from.
    #[inline(always)]
    pub fn __candle_profiler_decide(self, turns: &Turns) {
        turns.decide(|| None);
    }
}

impl<'a, T> Deref for Outcome<'a, T> {
    type Target = Debugged<'a, T>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<'a, T> Deref for Debugged<'a, T> {
    type Target = Typed<'a, T>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<'a, T> Deref for Typed<'a, T> {
    type Target = Other<'a, T>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

/// The error's own text is the program's code: what it does wrong must not end the program here.
fn text<T, E>(value: &Result<T, E>, text: impl FnOnce(&E) -> String) -> Option<String> {
    let error = value.as_ref().err()?;
    let text = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| text(error)));
    Some(text.unwrap_or_else(|_| "an error whose text could not be made".to_owned()))
}
