//! The summary of one trace: problems first, then scalars, then where the time went, the tensors
//! and gradients, and last the file and the command that shows it.
//!
//! A writer feeds a [`Digest`] while the trace grows; its memory does not grow with the trace.
//! [`Feed`] makes the same of a trace that is read. [`render`] makes the text of it.

mod bounded;
mod cover;
mod digest;
mod durations;
mod evidence;
mod feed;
mod gradients;
#[cfg(feature = "cli")]
pub(crate) mod json;
mod memory;
mod page;
mod problems;
mod render;
mod sites;
mod steps;
mod times;
mod told;
#[cfg(feature = "cli")]
pub(crate) mod tree;
#[cfg(feature = "cli")]
pub(crate) mod trends;

pub(crate) use digest::{Digest, Meta};
#[cfg(feature = "candle")]
pub(crate) use evidence::described;
pub(crate) use evidence::{GraphSize, Statistics};
#[cfg(feature = "cli")]
pub(crate) use feed::{Fed, of_document, read_with};
pub(crate) use feed::{read, scalar_alarms, scalar_of};
pub(crate) use gradients::{Gradients, gradient_of};
#[cfg(feature = "cli")]
pub(crate) use page::{Page, Tone};
pub(crate) use render::{Look, render, wants_colour};
pub(crate) use sites::{ClosedSpan, HowClosed, SiteId, SpanSite, StepTag};

#[cfg(test)]
mod tests;
