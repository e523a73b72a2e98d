//! How often each measured name has been called, and what that has led to.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use super::files::Reservation;
use super::pick::DefaultPick;
use super::resident::Resident;
use super::schedule::Kind;
use crate::record::{CallSite, RecordSite};
use crate::say::say;

/// The calls of one measured name, counted from 1 whatever the type arguments.
pub(crate) struct Counter {
    pub(crate) name: Arc<str>,
    pub(crate) kind: Kind,
    calls: AtomicU64,
    last_step: Mutex<Option<i128>>,
    pick: Mutex<DefaultPick>,
    /// Captures asked for by `capture_next`.
    forced: AtomicU64,
    /// When the last call ended, in nanoseconds since [`base`]; 0: none has.
    last_end: AtomicU64,
    /// A capture that held nothing, until the name yields a better one.
    kept: Mutex<Option<Reservation>>,
    resident: Mutex<Resident>,
    /// The last call held a value that is not finite.
    alarming: AtomicBool,
}

/// One call of a measured name.
pub(crate) struct Call {
    pub(crate) counter: Arc<Counter>,
    /// The program's own number, else the count.
    pub(crate) step: i128,
    /// The process's memory has been read.
    read: AtomicBool,
    /// A value in it is not finite.
    alarmed: AtomicBool,
    /// How often sites with `{#}` were reached in it, where it is watched and not captured.
    reached: Mutex<HashMap<usize, u64>>,
    /// How many tensors have been recorded in it under each label that is known.
    #[cfg(feature = "candle")]
    recorded: Mutex<HashMap<usize, usize>>,
    /// The program said that this call is no step.
    withdrawn: AtomicBool,
    /// A wish of `capture_next` was used up by it.
    wished: AtomicBool,
}

#[derive(Default)]
struct Counters {
    /// Call sites whose name is the same at each call.
    by_site: HashMap<usize, Arc<Counter>>,
    by_name: HashMap<Arc<str>, Arc<Counter>>,
    /// Bytes of the names.
    bytes: usize,
    /// `capture_next` of names not seen yet.
    wished: Vec<(String, u64)>,
}

/// So many names are counted: a program that puts the number of each call into its name would take more and more memory.
const MOST_NAMES: usize = 1 << 16;
/// Bytes of these names.
const MOST_BYTES: usize = 32 << 20;
/// Names that `capture_next` is asked for before they are seen.
const MOST_WISHED: usize = 1024;

static COUNTERS: Mutex<Option<Counters>> = Mutex::new(None);

fn counters() -> MutexGuard<'static, Option<Counters>> {
    COUNTERS.lock().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    /// The measured calls that this thread is in, captured or not.
    static ACTIVE: RefCell<Vec<Arc<Call>>> = const { RefCell::new(Vec::new()) };
}

/// The moment that times between calls are counted from.
fn base() -> Instant {
    static BASE: OnceLock<Instant> = OnceLock::new();
    *BASE.get_or_init(Instant::now)
}

fn now_ns() -> u64 {
    u64::try_from(base().elapsed().as_nanos())
        .unwrap_or(u64::MAX)
        .max(1)
}

/// The counter of a call: by its built name, or by the site's own. `None`: there are too many names.
pub(crate) fn of(site: &'static CallSite, built: Option<&str>) -> Option<Arc<Counter>> {
    let kind = if site.opens().infer {
        Kind::Infer
    } else {
        Kind::Train
    };
    if let Some(built) = built {
        return of_name(built, kind);
    }
    let key = std::ptr::from_ref(site).addr();
    let known = counters()
        .get_or_insert_default()
        .by_site
        .get(&key)
        .cloned();
    if known.is_some() {
        return known;
    }
    let counter = of_name(&site.name().resolve(), kind)?;
    let mut counters = counters();
    let by_site = &mut counters.get_or_insert_default().by_site;
    by_site.insert(key, Arc::clone(&counter));
    Some(counter)
}

/// The counter of a name. `None`: there are too many names.
pub(crate) fn of_name(name: &str, kind: Kind) -> Option<Arc<Counter>> {
    let counter = counters().get_or_insert_default().named(name, kind);
    if counter.is_none() {
        say_that_names_are_too_many(name);
    }
    counter
}

fn say_that_names_are_too_many(name: &str) {
    static SAID: AtomicBool = AtomicBool::new(false);
    if !SAID.swap(true, Ordering::Relaxed) {
        let name: String = name.chars().take(80).collect();
        say!(
            "there are {MOST_NAMES} measured names, or {} MiB of them: calls under further ones, of which {name:?} is the \
             first, are neither counted nor captured",
            MOST_BYTES >> 20
        );
    }
}

/// All counters, by name.
pub(crate) fn all() -> Vec<Arc<Counter>> {
    let mut all: Vec<Arc<Counter>> = counters()
        .get_or_insert_default()
        .by_name
        .values()
        .cloned()
        .collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

/// Captures the next `calls` calls of a measured name; the last part of the name is enough.
///
/// Does nothing while profiling is off.
pub fn capture_next(name: &str, calls: u64) {
    if cfg!(feature = "off") || super::state().is_none() {
        return;
    }
    let mut counters = counters();
    let counters = counters.get_or_insert_default();
    let mut known = false;
    for counter in counters.by_name.values().filter(|counter| counter.is(name)) {
        let more = |forced: u64| Some(forced.saturating_add(calls));
        let _ = counter
            .forced
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        known = true;
    }
    if !known {
        let full = counters.wished.len() >= MOST_WISHED;
        match counters
            .wished
            .iter_mut()
            .find(|(wished, _)| wished == name)
        {
            Some((_, wished)) => *wished = wished.saturating_add(calls),
            None if !full => {
                counters.wished.push((name.to_owned(), calls));
            }
            None => {}
        }
    }
}

impl Counters {
    fn named(&mut self, name: &str, kind: Kind) -> Option<Arc<Counter>> {
        if let Some(counter) = self.by_name.get(name) {
            return Some(Arc::clone(counter));
        }
        if self.by_name.len() >= MOST_NAMES || self.bytes + name.len() > MOST_BYTES {
            return None;
        }
        self.bytes += name.len();
        let name: Arc<str> = name.into();
        let mut counter = Counter {
            name: Arc::clone(&name),
            kind,
            calls: AtomicU64::new(0),
            last_step: Mutex::new(None),
            pick: Mutex::new(DefaultPick::new(kind)),
            forced: AtomicU64::new(0),
            last_end: AtomicU64::new(0),
            kept: Mutex::new(None),
            resident: Mutex::default(),
            alarming: AtomicBool::new(false),
        };
        self.wished.retain(|(wished, calls)| {
            let is = counter.is(wished);
            if is {
                let forced = counter.forced.get_mut();
                *forced = forced.saturating_add(*calls);
            }
            !is
        });
        let counter = Arc::new(counter);
        self.by_name.insert(name, Arc::clone(&counter));
        Some(counter)
    }
}

impl Counter {
    /// Whether a name as a person writes it means this one.
    fn is(&self, written: &str) -> bool {
        let rest = self.name.strip_suffix(written);
        rest.is_some_and(|path| path.is_empty() || path.ends_with("::"))
    }

    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    pub(crate) fn last_step(&self) -> Option<i128> {
        *self
            .last_step
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn pick(&self) -> MutexGuard<'_, DefaultPick> {
        self.pick.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn kept(&self) -> MutexGuard<'_, Option<Reservation>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the process has held at the calls' ends.
    pub(crate) fn resident(&self) -> MutexGuard<'_, Resident> {
        self.resident.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call; gives its number.
    pub(crate) fn count(&self, step: Option<i128>) -> u64 {
        if step.is_some() {
            *self
                .last_step
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = step;
        }
        self.calls.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Nanoseconds since the last call of this name ended.
    pub(crate) fn since_previous(&self) -> Option<u64> {
        match self.last_end.load(Ordering::Relaxed) {
            0 => None,
            end => Some(now_ns().saturating_sub(end)),
        }
    }
}

impl Call {
    pub(crate) fn new(counter: Arc<Counter>, step: i128) -> Arc<Self> {
        Arc::new(Self {
            counter,
            step,
            read: AtomicBool::new(false),
            alarmed: AtomicBool::new(false),
            reached: Mutex::default(),
            #[cfg(feature = "candle")]
            recorded: Mutex::default(),
            withdrawn: AtomicBool::new(false),
            wished: AtomicBool::new(false),
        })
    }

    /// Whether `capture_next` asked for this call.
    pub(crate) fn take_wish(&self) -> bool {
        let left = &self.counter.forced;
        let taken = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            left.checked_sub(1)
        });
        self.wished.store(taken.is_ok(), Ordering::Relaxed);
        taken.is_ok()
    }

    pub(crate) fn is_withdrawn(&self) -> bool {
        self.withdrawn.load(Ordering::Relaxed)
    }

    /// A value in the call is not finite; whether that is news: neither known of this call nor of the one before.
    pub(crate) fn alarm(&self) -> bool {
        let known = self.alarmed.swap(true, Ordering::Relaxed);
        !known && !self.counter.alarming.load(Ordering::Relaxed)
    }

    /// Reads what the process holds, once for each call.
    pub(crate) fn read_resident(&self) {
        if super::records(super::Plane::Memory) && !self.read.swap(true, Ordering::Relaxed) {
            self.counter.resident().read(self.step);
        }
    }

    /// The call is over.
    pub(crate) fn over(&self) {
        self.read_resident();
        let alarmed = self.alarmed.load(Ordering::Relaxed);
        self.counter.alarming.store(alarmed, Ordering::Relaxed);
        self.counter.last_end.store(now_ns(), Ordering::Relaxed);
    }

    /// How many tensors of this label it has recorded, this one not counted.
    #[cfg(feature = "candle")]
    pub(crate) fn next_of(&self, label: usize) -> usize {
        let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        let next = recorded.entry(label).or_default();
        *next += 1;
        *next - 1
    }
}

/// This thread is in the call while this lives.
pub(crate) struct Active(Arc<Call>);

impl Active {
    pub(crate) fn new(call: &Arc<Call>) -> Self {
        // A thread that is being taken down has no list any more: then nothing can be inside the call either.
        let _ = ACTIVE.try_with(|active| active.borrow_mut().push(Arc::clone(call)));
        Self(Arc::clone(call))
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        let _ = ACTIVE.try_with(|active| {
            let mut active = active.borrow_mut();
            if let Some(index) = active.iter().rposition(|call| Arc::ptr_eq(call, &self.0)) {
                active.remove(index);
            }
        });
    }
}

/// The measured call that this thread is in.
pub(crate) fn current_call() -> Option<Arc<Call>> {
    let first = ACTIVE.try_with(|active| active.borrow().first().cloned());
    first.ok().flatten()
}

/// How often a site has been reached in the measured call that this thread is in, which is not captured: no span is
/// there to count under.
pub(crate) fn watched_ordinal(site: &RecordSite) -> Option<u64> {
    let call = current_call()?;
    let mut reached = call.reached.lock().unwrap_or_else(PoisonError::into_inner);
    let next = reached.entry(std::ptr::from_ref(site).addr()).or_default();
    let ordinal = *next;
    *next += 1;
    Some(ordinal)
}

/// Whether this thread is in a measured call.
pub(crate) fn in_call() -> bool {
    ACTIVE
        .try_with(|active| !active.borrow().is_empty())
        .unwrap_or(false)
}

/// Says that the measured call this thread is in is no step: it leaves the count, and its capture is dropped.
///
/// For calls that turn out to do nothing, such as a step of gradient accumulation that only gathers.
pub fn not_a_step() {
    let _ = ACTIVE.try_with(|active| {
        if let Some(call) = active.borrow().first()
            && !call.withdrawn.swap(true, Ordering::Relaxed)
        {
            call.counter.calls.fetch_sub(1, Ordering::Relaxed);
            // The next call takes its place, in the count and in what `capture_next` asked for.
            let wished = u64::from(call.wished.load(Ordering::Relaxed));
            call.counter.forced.fetch_add(wished, Ordering::Relaxed);
        }
    });
}
