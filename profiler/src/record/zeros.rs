//! Gradients that are all zero in one step may be so by chance; in two they are not.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// So many are remembered, which names made up at each call would fill: then all is forgotten.
const MOST: usize = 1 << 18;

/// The captures, by their starts, in which a gradient was zero last.
static ZERO: Mutex<Option<HashMap<(String, String), u64>>> = Mutex::new(None);

/// A gradient is zero in the capture that began then; whether it was in an earlier one too, and not otherwise since.
pub(super) fn twice(root: &str, key: &str, capture: u64) -> bool {
    let mut zero = ZERO.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (root.to_owned(), key.to_owned());
    let zero = zero.get_or_insert_default();
    if zero.len() >= MOST && !zero.contains_key(&key) {
        zero.clear();
    }
    let first = *zero.entry(key).or_insert(capture);
    first != capture
}

/// A gradient is not zero.
pub(super) fn forget(root: &str, key: &str) {
    let mut zero = ZERO.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(zero) = zero.as_mut().filter(|zero| !zero.is_empty()) {
        zero.remove(&(root.to_owned(), key.to_owned()));
    }
}
