//! What the user asked for, read once: from the environment or from a [`Config`].

mod budget;
mod complaint;
mod config;
mod misspelt;
mod nonfinite;
mod planes;
mod tags;
mod target;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::SystemTime;

pub use complaint::Complaint;
pub use config::Config;
pub use misspelt::VARIABLES;
pub(crate) use misspelt::misspelt;
pub(crate) use nonfinite::NonFinite;
pub(crate) use planes::{Plane, Planes};
pub(crate) use target::Target;
pub use target::{SummaryTo, SyncMode};

use super::process;
use super::rank::{Rank, Told};
use super::schedule::Schedule;

/// Looks a variable up.
pub(crate) type Get<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// All that steers the recording, in the shape the rest of the crate uses.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// Where traces go.
    pub(crate) target: Target,
    /// Which calls are captured.
    pub(crate) schedule: Schedule,
    /// What is recorded.
    pub(crate) planes: Planes,
    /// When the device is waited for; unset: at the measured region's ends, where the device is
    /// known and not the CPU.
    pub(crate) sync: Option<SyncMode>,
    /// Where the summary goes.
    pub(crate) summary: SummaryTo,
    /// Tags of every trace.
    pub(crate) tags: BTreeMap<String, String>,
    /// What a value that is not finite sets off.
    pub(crate) nonfinite: NonFinite,
    /// Most bytes of one trace.
    pub(crate) budget: u64,
    /// This process's rank as its launcher tells it; `set_rank` wins over it.
    pub(crate) rank: Option<Rank>,
    /// What a launcher's variable says that makes no sense.
    pub(crate) refused_rank: Option<Complaint>,
    /// When this process started, to tell an earlier run's files from a neighbour's.
    pub(crate) started: SystemTime,
}

impl Settings {
    /// Profiling off, everything else as if nothing was set.
    pub(crate) fn off() -> Settings {
        Settings {
            target: Target::Off,
            schedule: Schedule::default(),
            planes: Planes::ALL,
            sync: None,
            summary: SummaryTo::Stderr,
            tags: BTreeMap::new(),
            nonfinite: NonFinite::default(),
            budget: budget::DEFAULT,
            rank: None,
            refused_rank: None,
            started: SystemTime::UNIX_EPOCH,
        }
    }

    /// Reads the environment. While `CANDLE_PROFILE` says off, no other variable is looked at.
    ///
    /// # Errors
    /// The first variable whose value cannot be understood.
    pub(crate) fn read(get: Get<'_>) -> Result<Settings, Complaint> {
        let target = Target::read(get("CANDLE_PROFILE"));
        if target == Target::Off {
            return Ok(Settings::off());
        }
        let off = Settings::off();
        let Told { rank, refused } = Rank::read(get);
        Ok(Settings {
            target,
            schedule: text(
                get,
                "CANDLE_PROFILE_STEPS",
                Schedule::ALLOWED,
                Schedule::parse,
            )?
            .unwrap_or(off.schedule),
            planes: text(get, "CANDLE_PROFILE_RECORD", Planes::ALLOWED, Planes::parse)?
                .unwrap_or(off.planes),
            sync: text(
                get,
                "CANDLE_PROFILE_SYNC",
                SyncMode::ALLOWED,
                SyncMode::parse,
            )?,
            summary: SummaryTo::read("CANDLE_PROFILE_SUMMARY", get("CANDLE_PROFILE_SUMMARY"))?,
            tags: text(get, "CANDLE_PROFILE_TAGS", tags::ALLOWED, tags::parse)?.unwrap_or(off.tags),
            nonfinite: text(
                get,
                "CANDLE_PROFILE_NONFINITE",
                NonFinite::ALLOWED,
                NonFinite::parse,
            )?
            .unwrap_or(off.nonfinite),
            budget: text(get, "CANDLE_PROFILE_BUDGET", budget::ALLOWED, budget::parse)?
                .unwrap_or(off.budget),
            rank,
            refused_rank: refused,
            started: process::started(),
        })
    }
}

/// One variable of plain text; unset and blank are the same.
fn text<T>(
    get: Get<'_>,
    variable: &'static str,
    allowed: &'static str,
    parse: fn(&'static str, &str) -> Result<T, Complaint>,
) -> Result<Option<T>, Complaint> {
    let Some(value) = get(variable) else {
        return Ok(None);
    };
    match value.to_str() {
        Some(text) if text.trim().is_empty() => Ok(None),
        Some(text) => parse(variable, text).map(Some),
        None => Err(Complaint::new(
            variable,
            &value.to_string_lossy(),
            "it is not UTF-8".to_owned(),
            allowed,
        )),
    }
}

#[cfg(test)]
mod tests;
