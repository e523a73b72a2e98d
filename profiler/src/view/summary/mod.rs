//! The summary of one trace: problems first, then scalars, then where the time went, the tensors
//! and gradients, and last the file and the command that shows it.
//!
//! A writer feeds a [`Digest`] while the trace grows; its memory does not grow with the trace.
//! [`render`] makes the text of it.

mod bounded;
mod digest;
mod evidence;
mod page;
mod problems;
mod render;
mod sites;
mod times;

pub(crate) use digest::{Digest, Meta};
pub(crate) use evidence::{Gradient, GradientState, GraphSize, Statistics, described};
pub(crate) use render::{Look, render, wants_colour};
pub(crate) use sites::{ClosedSpan, HowClosed, SiteId, SpanSite, StepTag};

#[cfg(test)]
mod tests;
