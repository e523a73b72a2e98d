//! Settings made in code.

use std::path::PathBuf;

use super::{Complaint, Get, NonFinite, Planes, Settings, SummaryTo, SyncMode, Target, budget};
use crate::capture::process;
use crate::capture::rank::{Rank, Told};
use crate::capture::schedule::Schedule;

/// Settings made in code instead of by environment variables, for `configure`.
///
/// A new one is off; [`folder`](Config::folder) or [`file`](Config::file) switches it on. Every
/// other option has the default and the meaning of its environment variable.
///
/// ```
/// use candle_profiler::{Config, SyncMode};
///
/// let config = Config::new()
///     .folder("traces")
///     .steps("100,train_step:every:500")?
///     .record("-ops")?
///     .sync(SyncMode::Spans)
///     .tag("dataset", "digits");
/// # let _ = config;
/// # Ok::<(), candle_profiler::Complaint>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "it does nothing until it is passed to `configure`"]
pub struct Config {
    settings: Settings,
}

impl Default for Config {
    fn default() -> Config {
        Config::new()
    }
}

impl Config {
    /// Profiling off, every option at its default.
    pub fn new() -> Config {
        Config {
            settings: Settings::off(),
        }
    }

    /// Traces go into this folder, made if it is missing, each named after its region and step.
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Config {
        self.settings.target = Target::Folder(folder.into());
        self
    }

    /// The first trace goes into this file, later ones beside it with a longer name.
    ///
    /// A file of that name from an earlier run is replaced when the trace is complete.
    pub fn file(mut self, file: impl Into<PathBuf>) -> Config {
        self.settings.target = Target::File(file.into());
        self
    }

    /// Nothing is recorded, whatever the environment says.
    pub fn off(mut self) -> Config {
        self.settings.target = Target::Off;
        self
    }

    /// The calls to capture, written as in `CANDLE_PROFILE_STEPS`: `"7"`, `"10,20"`, `"3..6"`
    /// (end excluded), `"3..=6"`, `"every:100"`, `"train_step:100"`.
    ///
    /// # Errors
    /// What is no step, an empty range, and 0 without a name.
    pub fn steps(mut self, steps: &str) -> Result<Config, Complaint> {
        self.settings.schedule = Schedule::parse("steps", steps)?;
        Ok(self)
    }

    /// What to record, written as in `CANDLE_PROFILE_RECORD`: a list of `spans`, `stats`,
    /// `scalars`, `ops`, `gradients`, `memory`, or `all`; `-ops` takes one away.
    ///
    /// # Errors
    /// A word that is none of these.
    pub fn record(mut self, planes: &str) -> Result<Config, Complaint> {
        self.settings.planes = Planes::parse("record", planes)?;
        Ok(self)
    }

    /// When the device is waited for.
    pub fn sync(mut self, mode: SyncMode) -> Config {
        self.settings.sync = Some(mode);
        self
    }

    /// Where the summaries go.
    pub fn summary(mut self, to: SummaryTo) -> Config {
        self.settings.summary = to;
        self
    }

    /// Adds a tag to every trace, in place of an earlier one of the same key. A blank key is
    /// ignored.
    pub fn tag(mut self, key: impl Into<String>, value: impl Into<String>) -> Config {
        let key = key.into();
        if !key.trim().is_empty() {
            self.settings.tags.insert(key, value.into());
        }
        self
    }

    /// What a value that is not finite sets off, written as in `CANDLE_PROFILE_NONFINITE`: a list
    /// of `report`, `watch`, `stop`, `inf`.
    ///
    /// # Errors
    /// A word that is none of these.
    pub fn nonfinite(mut self, list: &str) -> Result<Config, Complaint> {
        self.settings.nonfinite = NonFinite::parse("nonfinite", list)?;
        Ok(self)
    }

    /// The most bytes of one trace; less than 64 KiB counts as 64 KiB.
    pub fn budget(mut self, bytes: u64) -> Config {
        self.settings.budget = bytes.max(budget::LEAST);
        self
    }

    /// The settings to run with. Of the environment only the rank is looked at.
    pub(crate) fn into_settings(self, get: Get<'_>) -> Settings {
        if self.settings.target == Target::Off {
            return self.settings;
        }
        let Told { rank, refused } = Rank::read(get);
        Settings {
            rank,
            refused_rank: refused,
            started: process::started(),
            ..self.settings
        }
    }
}
