//! Profiling of candle programs by attributes.

mod capture;
pub mod view;

pub use capture::{Complaint, Config, SummaryTo, SyncMode};
