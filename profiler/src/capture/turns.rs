//! Measured statements and loop turns that a jump leaves: whether that was an `Err`, the function around them knows.
//!
//! A `?` in a turn drops the turn's guard and then returns, as `continue`, `break` and `return Ok(…)` do. So the capture
//! is ended but undecided until the program gets to a place that tells: the next turn, what follows the loop, or the end
//! of the function, whose value is an `Err` or not.

use std::cell::RefCell;

use super::region::{Capture, Measured};
use crate::record::Ended;

/// The capture that a turn of this call of a function has left undecided.
#[derive(Default)]
pub struct Turns(RefCell<Option<Box<Capture>>>);

impl Turns {
    /// None yet.
    #[inline(always)]
    pub const fn new() -> Self {
        Self(RefCell::new(None))
    }

    /// The program went on: the last turn did not fail.
    #[inline(always)]
    pub fn settle(&self) -> &Self {
        self.decide(|| None);
        self
    }

    /// The last turn was left for the end of the function, which says whether it failed.
    #[inline(always)]
    pub(crate) fn decide(&self, failure: impl FnOnce() -> Option<String>) {
        if let Some(capture) = self.0.take() {
            capture.finish(failure());
        }
    }

    /// A turn that begins.
    #[inline(always)]
    pub fn turn(&self, measured: Measured) -> Turn<'_> {
        Turn {
            measured: Some(measured),
            turns: self,
        }
    }
}

impl Drop for Turns {
    /// Nobody said that it failed: a panic here came after it.
    #[inline(always)]
    fn drop(&mut self) {
        self.decide(|| None);
    }
}

/// A measured statement, or a turn of a measured loop.
#[must_use = "the turn ends when this is dropped"]
pub struct Turn<'a> {
    measured: Option<Measured>,
    turns: &'a Turns,
}

impl Turn<'_> {
    /// The statement got to its end.
    #[inline(always)]
    pub fn end(mut self) -> Ended {
        self.measured.take().map_or(Ended::here(), Measured::end)
    }
}

impl Drop for Turn<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(capture) = self.measured.take().and_then(Measured::leave) {
            *self.turns.0.borrow_mut() = Some(capture);
        }
    }
}
