//! When to record, and into which file.

pub(crate) mod files;
pub(crate) mod pick;
pub(crate) mod process;
pub(crate) mod rank;
pub(crate) mod schedule;
pub(crate) mod settings;

pub use settings::{Complaint, Config, SummaryTo, SyncMode};

mod counter;
mod exit;
mod fork;
mod open;
mod panics;
mod region;
mod report;
mod resident;
mod state;
mod turns;

pub(crate) use counter::{Active, Call, current_call, of_name as counter_of, watched_ordinal};
pub use counter::{capture_next, not_a_step};
pub(crate) use fork::is_owner;
pub(crate) use panics::panic_reason;
pub use region::{Arguments, Details, Key, Measured};
pub(crate) use region::{Capture, async_call, async_inside, current_or_off};
pub(crate) use schedule::Kind;
pub(crate) use settings::Plane;
pub(crate) use state::alarms_at_negative_infinity;
pub use state::{configure, set_rank};
pub(crate) use state::{first_call, records, state, writer_hangs};
pub use turns::{Turn, Turns};
