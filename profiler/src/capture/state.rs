//! The settings of this process: read once, when annotated code first runs.

use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use super::exit;
use super::files::Files;
use super::fork::{self, is_owner};
use super::rank::Rank;
use super::settings::{Config, Plane, Settings, SummaryTo, Target, misspelt};
use crate::say::say;

/// What every measured call needs to know.
pub(crate) struct State {
    pub(crate) settings: Settings,
    pub(crate) files: Files,
    /// Something was captured, or it was said why it could not be.
    pub(crate) captured: AtomicBool,
    /// A trace could not be created, or not written; that has been said, and no other is tried.
    pub(crate) broken: AtomicBool,
}

static STATE: OnceLock<Option<State>> = OnceLock::new();
static CONFIGURED: Mutex<Option<Config>> = Mutex::new(None);

const UNREAD: u8 = 0;
const OFF: u8 = 1;
const ON: u8 = 2;
/// The same as [`STATE`] in one byte, for the calls that only want to know that profiling is off.
static SWITCH: AtomicU8 = AtomicU8::new(UNREAD);

/// Whether the settings have been read and say that nothing is captured.
#[inline(always)]
pub(crate) fn is_off() -> bool {
    SWITCH.load(Ordering::Relaxed) == OFF
}

/// In a forked child: profiling is off, as far as everything that may be asked without a lock tells.
#[cfg(unix)]
pub(super) fn switch_off() {
    SWITCH.store(OFF, Ordering::Relaxed);
    crate::nonfinite::set_watching(false);
}

/// The settings; `None`: profiling is off.
pub(crate) fn state() -> Option<&'static State> {
    if !is_owner() {
        return None;
    }
    let state = STATE.get_or_init(|| {
        let configured = CONFIGURED
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let get = |name: &str| std::env::var_os(name);
        let mut settings = match configured {
            Some(config) => config.into_settings(&get),
            None => from_environment(&get),
        };
        if settings.target == Target::Off {
            return None;
        }
        fork::register();
        exit::register();
        say_of_rank(&settings);
        if let Target::File(path) = &mut settings.target
            && let Ok(absolute) = std::path::absolute(&*path)
        {
            *path = absolute;
        }
        if let SummaryTo::File(path) = &mut settings.summary
            && let Ok(absolute) = std::path::absolute(&*path)
        {
            // The program may change its folder while it runs.
            *path = absolute;
        }
        let files = Files::new(&settings);
        Some(State {
            files,
            settings,
            captured: AtomicBool::new(false),
            broken: AtomicBool::new(false),
        })
    });
    if let Some(state) = state {
        crate::nonfinite::set_watching(state.settings.nonfinite.watch);
    }
    let switch = if state.is_some() { ON } else { OFF };
    SWITCH.store(switch, Ordering::Relaxed);
    state.as_ref()
}

/// What the environment asks for. Names that look like settings and are none are told, where it asks for anything.
fn from_environment(get: &dyn Fn(&str) -> Option<OsString>) -> Settings {
    let read = Settings::read(get);
    // A value is only refused where the environment asks for something.
    let is_off = matches!(&read, Ok(settings) if settings.target == Target::Off);
    let settings = read.unwrap_or_else(|complaint| {
        say!("{complaint}; profiling stays off");
        Settings::off()
    });
    if !is_off {
        let names = std::env::vars_os().map(|(name, _)| name);
        for line in misspelt(names) {
            say!("{line}");
        }
    }
    settings
}

/// Ranks that are not told apart take each other's names, so a rank that makes no sense is worth a line, where the
/// program has not told it itself.
fn say_of_rank(settings: &Settings) {
    let set = *RANK.lock().unwrap_or_else(PoisonError::into_inner);
    if let (Some(complaint), None) = (&settings.refused_rank, set) {
        match settings.rank {
            None => say!("{complaint}; traces have no rank"),
            Some(rank) => say!(
                "{complaint}; another variable's rank is taken: {}",
                rank.rank
            ),
        }
    }
}

/// The settings, if annotated code has run and profiling is on.
pub(super) fn known() -> Option<&'static State> {
    STATE.get()?.as_ref().filter(|_| is_owner())
}

/// Whether captures hold this kind of evidence.
pub(crate) fn records(plane: Plane) -> bool {
    known().is_some_and(|state| state.settings.planes.contains(plane))
}

/// Whether -inf is a problem too.
pub(crate) fn alarms_at_negative_infinity() -> bool {
    known().is_some_and(|state| state.settings.nonfinite.inf)
}

/// The writer has made no progress for so long that nobody waits for it any more: no other capture is opened.
pub(crate) fn writer_hangs() {
    let said = known().is_some_and(|state| state.broken.swap(true, Ordering::Relaxed));
    if !said {
        say!(
            "the writer of a trace made no progress for 5 s; the program goes on without it, and nothing more is captured"
        );
    }
}

/// A thread runs annotated code for the first time.
pub(crate) fn first_call() {
    state();
}

/// Switches profiling on or off from the program itself, instead of by the environment.
///
/// Counts only before annotated code has run for the first time.
///
/// # Errors
/// When annotated code has already run: then nothing is changed.
pub fn configure(config: Config) -> anyhow::Result<()> {
    if cfg!(feature = "off") {
        return Ok(());
    }
    let mut configured = CONFIGURED.lock().unwrap_or_else(PoisonError::into_inner);
    anyhow::ensure!(
        STATE.get().is_none(),
        "configure was called after annotated code had run: call it first, for example at the start of `main`"
    );
    *configured = Some(config);
    Ok(())
}

static RANK: Mutex<Option<Rank>> = Mutex::new(None);

/// Tells which process of a distributed run this is, of how many; wins over the launcher's variables.
///
/// The rank goes into the names and tags of the traces that open after this call.
pub fn set_rank(rank: u64, world: u64) {
    let told = Rank {
        rank,
        world: Some(world),
    };
    if is_owner() {
        *RANK.lock().unwrap_or_else(PoisonError::into_inner) = Some(told);
    }
}

impl State {
    /// Takes note of a call that was selected and was a step.
    pub(crate) fn reached(&self, name: &str, step: i128) {
        self.captured.store(true, Ordering::Relaxed);
        self.settings.schedule.reached(name, step);
    }

    /// The rank, where it is known.
    pub(crate) fn rank(&self) -> Option<Rank> {
        let set = *RANK.lock().unwrap_or_else(PoisonError::into_inner);
        set.or(self.settings.rank)
    }
}
