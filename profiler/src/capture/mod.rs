//! When to record, and into which file.

pub(crate) mod files;
pub(crate) mod pick;
pub(crate) mod process;
pub(crate) mod rank;
pub(crate) mod schedule;
pub(crate) mod settings;

pub use settings::{Complaint, Config, SummaryTo, SyncMode};
