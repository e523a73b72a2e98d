//! The summary of one trace: problems first, then scalars, then where the time went, the tensors
//! and gradients, and last the file and the command that shows it.
//!
//! A writer feeds a [`Digest`] while the trace grows; its memory does not grow with the trace.
//! [`Feed`] makes the same of a trace that is read. [`render`] makes the text of it.

mod bounded;
mod cover;
mod digest;
mod durations;
mod feed;
mod gradients;
mod graph;
#[cfg(feature = "cli")]
pub(crate) mod json;
mod left_out;
mod memory;
mod page;
mod problems;
mod render;
mod scalars;
mod sites;
mod steps;
mod tensors;
mod times;
mod told;
#[cfg(feature = "cli")]
pub(crate) mod tree;
#[cfg(feature = "cli")]
pub(crate) mod trends;

pub(crate) use digest::{Digest, Meta};
#[cfg(feature = "cli")]
pub(crate) use feed::{Fed, of_document, read_with};
pub(crate) use feed::{read, scalar_alarms, scalar_of};
pub(crate) use gradients::{Gradients, gradient_of};
pub(crate) use graph::GraphSize;
#[cfg(feature = "cli")]
pub(crate) use left_out::LeftOut;
#[cfg(feature = "cli")]
pub(crate) use page::{Page, Tone};
pub(crate) use render::{Look, render, wants_colour};
pub(crate) use sites::{ClosedSpan, HowClosed, SiteId, SpanSite, StepTag};
pub(crate) use tensors::Statistics;
#[cfg(feature = "candle")]
pub(crate) use tensors::described;

#[cfg(test)]
mod tests;
