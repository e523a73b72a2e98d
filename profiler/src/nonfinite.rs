//! Values that are not finite where they should be: on which step they came first, and what was there before.
//!
//! A captured step tells it in its summary. With `watch` the steps between are looked at too: at each point one quick
//! test, and full statistics only where they cost little, so that the last good values are near when one goes bad.

#[cfg(feature = "candle")]
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
#[cfg(feature = "candle")]
use std::sync::{Mutex, PoisonError};

use crate::capture::{Call, SummaryTo, current_call};
use crate::record::{Ended, RecordSite};
use crate::view::text::number;

/// Tensors whose last good values are kept.
#[cfg(feature = "candle")]
const MOST_TENSORS: usize = 16_384;
/// Lines said in the life of a process.
const MOST_LINES: usize = 10;
/// A tensor of up to so many elements has its statistics taken at each look.
#[cfg(feature = "candle")]
const SMALL: usize = 64 * 1024;
/// A larger one at one look in so many.
#[cfg(feature = "candle")]
const SPARSE: u32 = 8;

/// What a tensor held when it was all right.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Good {
    pub(crate) rms: f64,
    pub(crate) abs_max: f64,
    /// The measured call; `None`: outside of any.
    pub(crate) step: Option<i128>,
}

impl Good {
    /// `rms 0.5, abs max 2 (step 14)`
    pub(crate) fn text(&self) -> String {
        let (rms, abs_max) = (number(self.rms, 4), number(self.abs_max, 4));
        match self.step {
            Some(step) => format!("rms {rms}, abs max {abs_max} (step {step})"),
            None => format!("rms {rms}, abs max {abs_max}"),
        }
    }
}

/// Where tensors are recorded under a label, in the calls of one measured name.
#[cfg(feature = "candle")]
#[derive(PartialEq, Eq, Hash)]
struct Place {
    /// The address of the file's name, and the line.
    site: (usize, u32),
    /// The address of the measured name's counter, which lives as long as the process.
    measured: usize,
}

/// What is kept of a tensor.
#[cfg(feature = "candle")]
#[derive(Default)]
struct Seen {
    good: Option<Good>,
    /// Looks on steps that were not captured.
    looks: u32,
}

/// The tensors that are known. One place records many under one label where it is in a loop, or is called for each
/// layer: the first of a step is the first of the next one.
#[cfg(feature = "candle")]
#[derive(Default)]
struct Known {
    labels: HashMap<Place, HashMap<Box<str>, usize>>,
    /// Of each label its tensors, in the order in which a step comes to them.
    tensors: Vec<Vec<Seen>>,
    count: usize,
}

#[cfg(feature = "candle")]
static KNOWN: Mutex<Option<Known>> = Mutex::new(None);

#[cfg(feature = "candle")]
impl Known {
    /// The number of a label; `None`: it is a new one, and there are too many.
    fn label(&mut self, place: Place, label: &str) -> Option<usize> {
        let known = self.labels.get(&place).and_then(|labels| labels.get(label));
        if known.is_some() || self.is_full() {
            return known.copied();
        }
        let new = self.tensors.len();
        self.tensors.push(Vec::new());
        let labels = self.labels.entry(place).or_default();
        labels.insert(label.into(), new);
        Some(new)
    }

    fn is_full(&self) -> bool {
        self.count >= MOST_TENSORS
    }

    /// Whether the tensor of this ordinal under the label is known from here on: there is room for it.
    fn has(&mut self, label: usize, ordinal: usize) -> bool {
        let full = self.is_full();
        let Some(seen) = self.tensors.get_mut(label) else {
            return false;
        };
        if ordinal >= seen.len() && !full {
            self.count += ordinal + 1 - seen.len();
            seen.resize_with(ordinal + 1, Seen::default);
        }
        ordinal < seen.len()
    }
}

/// One tensor of a step: it is the same in each step.
#[cfg(feature = "candle")]
#[derive(Clone, Copy)]
pub(crate) struct Recurring {
    label: usize,
    ordinal: usize,
    step: i128,
}

#[cfg(feature = "candle")]
impl Recurring {
    /// The next tensor that this place records under the label in the measured call that this thread is in. `None`:
    /// which tensor it is in other steps cannot be told, since it is in no such call, or there are too many.
    pub(crate) fn next(site: &RecordSite, label: &str) -> Option<Self> {
        let call = current_call()?;
        let place = Place {
            site: (site.file().as_ptr().addr(), site.line()),
            measured: Arc::as_ptr(&call.counter).addr(),
        };
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get_or_insert_default();
        let label = known.label(place, label)?;
        let ordinal = call.next_of(label);
        known.has(label, ordinal).then_some(Self {
            label,
            ordinal,
            step: call.step,
        })
    }

    fn with<R>(self, look: impl FnOnce(&mut Seen) -> R) -> Option<R> {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = known.as_mut()?.tensors.get_mut(self.label)?;
        seen.get_mut(self.ordinal).map(look)
    }

    /// Its last values that were all right.
    pub(crate) fn last_good(self) -> Option<Good> {
        self.with(|seen| seen.good).flatten()
    }

    /// It is all right now.
    pub(crate) fn note_good(self, rms: f64, abs_max: f64) {
        let step = Some(self.step);
        self.with(|seen| seen.good = Some(Good { rms, abs_max, step }));
    }

    /// Whether this look, on a step that is not captured, takes full statistics.
    pub(crate) fn looks_closely(self, elements: usize) -> bool {
        let turn = self.with(|seen| {
            let turn = seen.looks % SPARSE == 0;
            seen.looks = seen.looks.wrapping_add(1);
            turn
        });
        elements <= SMALL || turn.unwrap_or(false)
    }
}

/// A value that is not finite and no mask's.
pub(crate) struct Found {
    /// What it is in, and how much: `logits (f32 [2, 3]): 1 of 6 values (1 NaN), first at [0, 1]`.
    pub(crate) what: String,
    pub(crate) before: Option<Good>,
}

/// The steps that are not captured are looked at, too.
static WATCHING: AtomicBool = AtomicBool::new(false);

/// Whether steps that are not captured are looked at, too.
#[inline(always)]
pub(crate) fn watching() -> bool {
    WATCHING.load(Ordering::Relaxed)
}

/// The settings are read.
pub(crate) fn set_watching(on: bool) {
    WATCHING.store(on, Ordering::Relaxed);
}

/// Something was found on a step that is captured, whose summary tells it.
pub(crate) fn captured(at: &Ended, site: &RecordSite, found: &Found) {
    let Some(state) = crate::capture::state() else {
        return;
    };
    let call = current_call();
    let message = message(Some(site), call.as_deref(), found);
    if state.settings.nonfinite.stop {
        if let Some(call) = &call {
            call.alarm();
        }
        return stop(at, &message);
    }
    let told = matches!(state.settings.summary, SummaryTo::Stderr);
    tell(call.as_ref(), told, &message);
}

/// Something was found on a step that is not captured.
pub(crate) fn watched(call: &Arc<Call>, site: &RecordSite, found: &Found) {
    let message = message(Some(site), Some(call), found);
    if crate::capture::state().is_some_and(|state| state.settings.nonfinite.stop) {
        call.alarm();
        return stop(&Ended::here(), &message);
    }
    tell(Some(call), false, &message);
}

/// Says it, where neither this step nor the one before has been told of.
fn tell(call: Option<&Arc<Call>>, told: bool, message: &str) {
    static LINES: AtomicUsize = AtomicUsize::new(0);
    let first = call.is_none_or(|call| call.alarm());
    if !first || told {
        return;
    }
    match LINES.fetch_add(1, Ordering::Relaxed) + 1 {
        ..MOST_LINES => crate::say::say!("{message}"),
        MOST_LINES => crate::say::say!("{message}; later ones are not said"),
        _ => {}
    }
}

/// Something was found at the end of a captured step, when a device gave its statistics. Gives why the program has to
/// stop, if it has.
#[cfg(feature = "candle")]
pub(crate) fn at_the_end(call: &Arc<Call>, found: &Found) -> Option<String> {
    let state = crate::capture::state()?;
    let message = message(None, Some(call), found);
    if state.settings.nonfinite.stop {
        call.alarm();
        return Some(message);
    }
    let told = matches!(state.settings.summary, SummaryTo::Stderr);
    tell(Some(call), told, &message);
    None
}

fn message(site: Option<&RecordSite>, call: Option<&Call>, found: &Found) -> String {
    let mut text = format!("a value that is not finite: {}", found.what);
    if let Some(site) = site {
        let function = site.function().resolve();
        if !function.is_empty() {
            text += &format!(", in {function}");
        }
        text += &format!(" ({}:{})", crate::source::short(site.file()), site.line());
    }
    if let Some(call) = call {
        text += &format!(", step {} of {}", call.step, call.counter.name);
    }
    if let Some(good) = &found.before {
        text += &format!("; before that {}", good.text());
    }
    text
}

/// Closes the open trace as failed, then panics, which the user asked for.
fn stop(at: &Ended, message: &str) {
    if let Some(session) = at.session()
        && session.stop(message)
    {
        let _ = session.wait();
    }
    panic(message);
}

/// The panic that the user asked for.
pub(crate) fn panic(message: &str) {
    if std::thread::panicking() {
        // A second panic would take the whole process down without a word.
        return crate::say::say!("{message}");
    }
    panic!("candle-profiler: {message}; CANDLE_PROFILE_NONFINITE says stop");
}
