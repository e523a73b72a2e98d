//! What a person sees of a trace.

mod repair;
// Crate-internal so far: the summary is fed by the writer.
pub(crate) mod summary;
pub(crate) mod text;

pub use repair::{LeftOut, RepairOptions, Repaired, repair};
