//! What the program calls its variables, by their serial numbers.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Serial numbers are never used again, so a name outlives its variable without harm.
static NAMES: Mutex<Option<HashMap<u64, String>>> = Mutex::new(None);

/// Gives variables names.
#[cfg_attr(
    not(feature = "candle"),
    allow(dead_code, reason = "without candle there are no variables")
)]
pub(crate) fn give(named: impl IntoIterator<Item = (u64, String)>) {
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    names.get_or_insert_default().extend(named);
}

/// The name of a variable.
pub(crate) fn of(serial: u64) -> Option<String> {
    let names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    names.as_ref()?.get(&serial).cloned()
}

/// Tells whether a variable has a name; `None` where none has.
pub(super) fn known() -> Option<&'static dyn Fn(u64) -> bool> {
    let names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    let some = names.as_ref().is_some_and(|names| !names.is_empty());
    some.then_some(&|serial| of(serial).is_some())
}
