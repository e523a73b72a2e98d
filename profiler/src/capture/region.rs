//! A measured call: counted, captured where it is selected, and closed whatever way it ends.

use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::counter::{self, Active, Call, Counter};
use super::open;
use super::panics::{panic_reason, take_last};
use super::pick;
use super::state::{self, State};
use crate::record::{
    AsyncSpan, CallSite, Elsewhere, End, Ended, Evidence, MeasuredStart, Owner, Place, Recorder,
    Session, Span, SpanSource, recorder,
};

/// What decides whether a call is captured; asked at every call while profiling is on.
#[derive(Default)]
pub struct Key {
    name: Option<String>,
    step: Option<i128>,
}

impl Key {
    /// What the program's expressions come to.
    pub(crate) fn asked(key: impl FnOnce(&mut Self)) -> Self {
        let mut asked = Self::default();
        asking("name or step", || key(&mut asked));
        asked
    }

    /// `name = "…{arg}…"`; a blank text leaves the default name.
    pub fn name(&mut self, text: String) {
        if text.trim().is_empty() {
            crate::say::once("a measured name came out blank; the default name stands in");
        } else {
            self.name = Some(text);
        }
    }

    /// `step = EXPR`
    pub fn step(&mut self, step: impl TryInto<i128>) {
        self.step = step.try_into().ok();
    }
}

/// What a captured call tells of itself; asked only then.
#[derive(Default)]
pub struct Details {
    pub(super) device: Option<String>,
    pub(super) items: Option<i128>,
    pub(super) tags: Vec<(String, String)>,
    #[cfg(feature = "candle")]
    pub(super) sync: Option<candle_core::Device>,
    #[cfg(feature = "candle")]
    pub(super) plan: Option<crate::tensor::Plan>,
    /// The program named the device, so the arguments are not asked.
    told: bool,
}

impl Details {
    /// What the program's expressions come to.
    pub(crate) fn asked(details: impl FnOnce(&mut Self)) -> Self {
        let mut asked = Self::default();
        asking("details", || details(&mut asked));
        asked
    }

    /// `device = EXPR`
    pub fn device(&mut self, device: impl crate::DeviceName) {
        let (name, _handle) = device.describe();
        self.device = Some(name);
        #[cfg(feature = "candle")]
        {
            self.sync = _handle;
        }
        self.told = true;
    }

    /// `items = EXPR`
    pub fn items(&mut self, items: impl TryInto<i128>) {
        self.items = items.try_into().ok();
    }

    /// `gradients = EXPR`
    #[cfg(feature = "candle")]
    pub fn gradients(&mut self, plan: &crate::instrument::candle::GradientCapturePlan) {
        self.plan = Some(crate::tensor::Plan::of(plan));
    }

    /// `tags(key = EXPR)`
    pub fn tag(&mut self, key: &'static str, value: impl fmt::Display) {
        let text = crate::private::format(format_args!("{value}"));
        self.tags.push((key.to_owned(), text));
    }

    /// An argument of the call: the first tensor among them tells the device.
    pub fn argument<T: ?Sized>(&mut self, value: &T) {
        #[cfg(feature = "candle")]
        if !self.told
            && self.device.is_none()
            && let Some(tensor) = crate::tensor::as_tensor(value)
        {
            self.device = Some(crate::instrument::candle::device_label(tensor.device()));
            self.sync = Some(tensor.device().clone());
        }
        #[cfg(not(feature = "candle"))]
        let _ = value;
    }
}

/// Arguments of a measured call, of which the first tensor tells the device.
pub trait Arguments {
    /// Looks at each of them.
    fn tell(self, details: &mut Details);
}

impl Arguments for () {
    fn tell(self, _: &mut Details) {}
}

macro_rules! arguments {
    ($($type:ident)*) => {
        impl<$($type: ?Sized),*> Arguments for ($(&$type,)*) {
            fn tell(self, details: &mut Details) {
                #[allow(non_snake_case, reason = "an argument is named after its type")]
                let ($($type,)*) = self;
                $(details.argument($type);)*
            }
        }
    };
}

// More than these are looked at one by one.
arguments!(A);
arguments!(A B);
arguments!(A B C);
arguments!(A B C D);
arguments!(A B C D E);
arguments!(A B C D E F);

/// A measured call. When it is dropped the call is over: its span ends, and the capture it opened is complete, or
/// failed where its thread panics.
#[must_use = "the measured call ends when this is dropped"]
pub struct Measured(State_);

enum State_ {
    /// Profiling is off, or the call is counted elsewhere.
    Off,
    /// Inside another measured call: a plain span. As it does, the whole stays on its thread.
    Inside(Span),
    /// Counted, not captured.
    Counted(
        Arc<Call>,
        #[allow(dead_code, reason = "held for its drop")] Active,
    ),
    Captured(Box<Capture>, Active),
    /// Over.
    Done,
}

/// A capture that a measured call opened.
pub(crate) struct Capture {
    session: Arc<Session>,
    pub(super) call: Arc<Call>,
    /// The opening thread's recorder and the measured span's token; a future's polls have their own.
    own: Cell<Option<(&'static Recorder, u64)>>,
    /// The thread unwound already when the call began: that panic is not the call's.
    unwinding: bool,
    #[cfg(feature = "candle")]
    sync: Option<candle_core::Device>,
    /// The device, where it is known.
    #[cfg(feature = "candle")]
    device: Option<candle_core::Device>,
}

impl Measured {
    /// Profiling is off.
    #[inline(always)]
    pub(crate) fn off() -> Self {
        Self(State_::Off)
    }

    /// A call inside an open capture: the measured region of a session by hand that has none, else a plain span.
    #[cold]
    #[inline(never)]
    pub(crate) fn inside(recorder: &'static Recorder, site: &'static CallSite, key: Key) -> Self {
        Self(State_::Inside(inside(recorder, site, key.name)))
    }

    /// The same for the free functions.
    #[cold]
    pub(crate) fn inside_named(recorder: &'static Recorder, source: SpanSource) -> Self {
        Self(State_::Inside(inside_as(recorder, source)))
    }

    /// A call outside of any capture.
    #[cold]
    #[inline(never)]
    pub(crate) fn call(
        site: &'static CallSite,
        key: impl FnOnce(&mut Key),
        details: impl FnOnce(&mut Details),
    ) -> Self {
        let Some(state) = state::state() else {
            return Self::off();
        };
        if counter::in_call() {
            return Self::off();
        }
        let asked = Key::asked(key);
        let Some(counter) = counter::of(site, asked.name.as_deref()) else {
            return Self::off();
        };
        let source = source(site, asked.name);
        Self::begin(state, counter, source, asked.step, details)
    }

    /// A call of the free functions.
    #[cold]
    pub(crate) fn named(state: &'static State, counter: Arc<Counter>, source: SpanSource) -> Self {
        if counter::in_call() {
            return Self::off();
        }
        Self::begin(state, counter, source, None, |_| {})
    }

    fn begin(
        state: &'static State,
        counter: Arc<Counter>,
        source: SpanSource,
        step: Option<i128>,
        details: impl FnOnce(&mut Details),
    ) -> Self {
        let entry = Entry::new(counter, step);
        let active = Active::new(&entry.call);
        match select(state, &entry, details) {
            None => Self(State_::Counted(entry.call, active)),
            Some(mut capture) => {
                capture.begin(source, entry.start());
                Self(State_::Captured(capture, active))
            }
        }
    }

    /// Ends the measured span; a capture stays open until [`Ended::finish`] or the drop of the result.
    #[inline]
    pub fn end(mut self) -> Ended {
        match std::mem::replace(&mut self.0, State_::Done) {
            State_::Off | State_::Done => Ended::here(),
            State_::Inside(span) => span.end(),
            State_::Counted(call, _active) => {
                call.over();
                Ended::here()
            }
            State_::Captured(capture, _active) => {
                capture.end_span();
                Ended::at(Place::Elsewhere(Box::new(Elsewhere::Capture(capture))))
            }
        }
    }

    /// Ends the call where a jump leaves it; gives the capture, if there is one that is not known to have failed.
    #[inline(always)]
    pub(super) fn leave(mut self) -> Option<Box<Capture>> {
        if matches!(self.0, State_::Off) {
            return None;
        }
        self.left()
    }

    #[cold]
    fn left(&mut self) -> Option<Box<Capture>> {
        match std::mem::replace(&mut self.0, State_::Done) {
            State_::Captured(capture, _active) => {
                capture.end_span();
                // Asked once: what a panic said is told to the first who asks.
                let failure = capture.panic();
                if failure.is_some() {
                    capture.finish(failure);
                    return None;
                }
                if let Some((recorder, _)) = capture.own.take() {
                    recorder.leave();
                }
                Some(capture)
            }
            other => {
                drop(Self(other));
                None
            }
        }
    }

    /// Marks the call as failed, for the reason given: its trace ends as failed.
    pub fn fail(mut self, reason: impl Into<String>) {
        match std::mem::replace(&mut self.0, State_::Done) {
            State_::Captured(capture, _active) => {
                capture.end_span();
                capture.finish(Some(reason.into()));
            }
            State_::Counted(call, _active) => call.over(),
            State_::Inside(_) | State_::Off | State_::Done => {}
        }
    }
}

impl Drop for Measured {
    #[inline]
    fn drop(&mut self) {
        if !matches!(self.0, State_::Off | State_::Done) {
            self.over();
        }
    }
}

impl Measured {
    #[cold]
    fn over(&mut self) {
        match std::mem::replace(&mut self.0, State_::Done) {
            State_::Counted(call, _active) => call.over(),
            State_::Captured(capture, _active) => {
                capture.end_span();
                let failure = capture.panic();
                capture.finish(failure);
            }
            State_::Inside(_) | State_::Off | State_::Done => {}
        }
    }
}

/// Enters a measured call whose span is a future's.
pub(crate) fn async_call(
    site: &'static CallSite,
    key: impl FnOnce(&mut Key),
    details: impl FnOnce(&mut Details),
) -> AsyncSpan {
    let Some(state) = state::state() else {
        return AsyncSpan::none();
    };
    if counter::in_call() {
        return AsyncSpan::none();
    }
    let asked = Key::asked(key);
    let Some(counter) = counter::of(site, asked.name.as_deref()) else {
        return AsyncSpan::none();
    };
    let source = source(site, asked.name);
    let entry = Entry::new(counter, asked.step);
    let _active = Active::new(&entry.call);
    match select(state, &entry, details) {
        None => AsyncSpan::counted(entry.call),
        Some(capture) => {
            let start = entry.start();
            AsyncSpan::measured(capture, entry.call, source, start)
        }
    }
}

/// A measured future inside an open capture is a plain span, or the measured region of a session by hand that has none.
pub(crate) fn async_inside(
    recorder: &'static Recorder,
    site: &'static CallSite,
    key: impl FnOnce(&mut Key),
) -> AsyncSpan {
    let asked = Key::asked(key);
    AsyncSpan::begin_measured(recorder, source(site, asked.name))
}

/// Enters a measured region inside an open capture.
fn inside(recorder: &'static Recorder, site: &'static CallSite, name: Option<String>) -> Span {
    inside_as(recorder, source(site, name))
}

fn inside_as(recorder: &'static Recorder, source: SpanSource) -> Span {
    let is_first = recorder
        .by_hand()
        .is_some_and(|session| !session.has_measured());
    let measured = is_first.then(MeasuredStart::default);
    Span::on(recorder, recorder.open_cold(source, measured))
}

fn source(site: &'static CallSite, name: Option<String>) -> SpanSource {
    match name {
        None => SpanSource::Site(site),
        Some(name) => SpanSource::Named(site, name.into()),
    }
}

/// Evaluates the program's own expressions, which it would not without the profiler: a panic in them must not end it.
fn asking(what: &str, ask: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(ask)).is_err() {
        crate::say::once(&format!(
            "an expression of the {what} of a measured call panicked; what follows it is left out"
        ));
        drop(take_last());
    }
}

/// A call that has just been entered and counted.
struct Entry {
    call: Arc<Call>,
    /// Its number, from 1.
    number: u64,
    /// The program's own number.
    step: Option<i128>,
    /// Read before a capture opens, which takes a while.
    since_previous_ns: Option<u64>,
}

impl Entry {
    fn new(counter: Arc<Counter>, step: Option<i128>) -> Self {
        let since_previous_ns = counter.since_previous();
        let number = counter.count(step);
        Self {
            call: Call::new(counter, step.unwrap_or(i128::from(number))),
            number,
            step,
            since_previous_ns,
        }
    }

    fn start(&self) -> MeasuredStart {
        MeasuredStart {
            since_previous_ns: self.since_previous_ns,
        }
    }
}

/// A pick of the default selection whose capture is not open yet: given back where the program's own expressions panic.
struct Pending<'a>(Option<&'a Counter>);

impl Pending<'_> {
    fn settled(mut self) {
        self.0 = None;
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        if let Some(counter) = self.0 {
            counter.pick().end(pick::Ended::Withdrawn);
        }
    }
}

/// Opens a capture where the call is selected for one.
fn select(
    state: &'static State,
    entry: &Entry,
    details: impl FnOnce(&mut Details),
) -> Option<Box<Capture>> {
    let (call, number, step) = (&entry.call, entry.number, entry.step);
    if state.broken.load(Ordering::Relaxed) {
        return None;
    }
    #[cfg(feature = "candle")]
    crate::tensor::mark_first();
    let counter = &call.counter;
    let schedule = &state.settings.schedule;
    // A wish for the next calls is used up by each of them, whoever else wants it too.
    let wished = call.take_wish();
    let picked = schedule.is_default() && counter.pick().begin(number);
    let selected = wished
        || picked
        || (!schedule.is_default() && schedule.selects(&counter.name, counter.kind, number, step));
    if !selected {
        return None;
    }
    let pending = Pending(picked.then_some(counter));
    let told = Details::asked(details);
    pending.settled();
    let wanted = open::Wanted {
        call,
        number,
        step,
        since_previous_ns: entry.since_previous_ns,
        picked,
        details: &told,
    };
    // What an earlier panic said is not this call's reason.
    drop(take_last());
    let session = open::open(state, wanted)?;
    Some(Box::new(Capture {
        session,
        call: Arc::clone(call),
        own: Cell::new(None),
        unwinding: std::thread::panicking(),
        #[cfg(feature = "candle")]
        device: told.sync.clone(),
        #[cfg(feature = "candle")]
        sync: open::sync_device(state, told.sync),
    }))
}

impl Capture {
    pub(crate) fn session(&self) -> Arc<Session> {
        Arc::clone(&self.session)
    }

    /// Makes the capture current on this thread and opens its measured span.
    fn begin(&mut self, source: SpanSource, start: MeasuredStart) {
        let recorder = self.session.attach();
        self.synchronize();
        self.device_memory(recorder);
        let token = recorder.open_cold(source, Some(start));
        self.own.set(Some((recorder, token)));
    }

    /// Waits for the device, where that was asked for and the device is not the CPU.
    pub(crate) fn synchronize(&self) {
        #[cfg(feature = "candle")]
        if let Some(device) = &self.sync {
            crate::device::synchronize(device);
        }
    }

    /// What the device's memory holds, where it says so.
    fn device_memory(&self, recorder: &'static Recorder) {
        #[cfg(feature = "candle")]
        if let Some(device) = &self.device
            && state::records(super::Plane::Memory)
            && let Some((used, free, all)) = crate::device::memory(device)
        {
            let event = Box::new(crate::trace::DeviceMemoryEvent {
                timestamp_ns: 0,
                device: crate::instrument::candle::device_label(device),
                used_bytes: Some(used),
                free_bytes: Some(free),
                reserved_bytes: None,
                capacity_bytes: Some(all),
            });
            recorder.observe(Owner::Innermost, Evidence::DeviceMemory(event), 0);
        }
        #[cfg(not(feature = "candle"))]
        let _ = recorder;
    }

    /// Ends the measured span of a call that is not a future.
    fn end_span(&self) {
        if let Some((recorder, token)) = self.own.get() {
            self.synchronize();
            recorder.close_cold(token);
            self.device_memory(recorder);
        }
    }

    pub(crate) fn record(&self, make: impl FnOnce(&mut dyn FnMut(Evidence))) {
        if let Some((recorder, _)) = self.own.get() {
            crate::record::observe(recorder, || Owner::LastEnded, make);
        }
    }

    /// Why the call is left by a panic, if it is.
    fn panic(&self) -> Option<String> {
        if !std::thread::panicking() {
            None
        } else if self.unwinding {
            take_last()
        } else {
            Some(panic_reason())
        }
    }

    /// Ends the capture: failed, where there is a reason.
    pub(crate) fn finish(&self, failure: Option<String>) {
        let end = match failure {
            None => End::Complete,
            Some(reason) if reason.trim().is_empty() => {
                End::Failed("the call failed without a word".to_owned())
            }
            Some(reason) => End::Failed(without_backtrace(&reason)),
        };
        self.close(end);
    }

    fn close(&self, end: End) {
        self.call.read_resident();
        #[cfg(feature = "candle")]
        let stop = self.read_back();
        #[cfg(feature = "candle")]
        let end = match (&stop, end) {
            (Some(message), End::Complete) => End::Failed(message.clone()),
            (_, end) => end,
        };
        if self.session.end(end) && self.session.wait().is_none() {
            state::writer_hangs();
        }
        if let Some((recorder, _)) = self.own.take() {
            recorder.leave();
        }
        self.call.over();
        #[cfg(feature = "candle")]
        if let Some(message) = stop {
            crate::nonfinite::panic(&message);
        }
    }

    /// Reads back what devices still have to give. Gives why the program has to stop, if it has.
    #[cfg(feature = "candle")]
    fn read_back(&self) -> Option<String> {
        if self.session.has_ended() {
            return None;
        }
        let found = self.session.read_back()?;
        crate::nonfinite::at_the_end(&self.call, &found)
    }
}

impl Drop for Capture {
    /// The evidence of a call was recorded, or its recording was cut short: the capture ends either way.
    fn drop(&mut self) {
        if self.own.get().is_some() || !self.session.has_ended() {
            self.close(self.panic().map_or(End::Complete, End::Failed));
        }
    }
}

/// Whether a measured call has to be looked at: profiling may be on.
#[inline(always)]
pub(crate) fn current_or_off() -> Result<Option<&'static Recorder>, ()> {
    match recorder() {
        Some(recorder) => Ok(Some(recorder).filter(|recorder| recorder.is_open())),
        None if state::is_off() => Err(()),
        None => Ok(None),
    }
}

/// The most characters of a reason.
const REASON: usize = 4096;

/// A reason without the backtrace that candle appends to its errors' texts where `RUST_BACKTRACE` is set.
fn without_backtrace(reason: &str) -> String {
    let is_frame = |line: &&str| {
        let number = line.trim_start().split(':').next().unwrap_or_default();
        line.starts_with(' ') && !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
    };
    let lines: Vec<&str> = reason.lines().take_while(|line| !is_frame(line)).collect();
    let text = lines.join("\n");
    let text = if text.trim().is_empty() {
        reason
    } else {
        text.trim_end()
    };
    text.chars().take(REASON).collect()
}

#[cfg(test)]
mod tests {
    use super::without_backtrace;

    #[test]
    fn a_reason_ends_where_its_backtrace_begins() {
        let error = "shape mismatch\n  in matmul\n   0: candle_core::error::Error::bt\n   1: main";
        assert_eq!(without_backtrace(error), "shape mismatch\n  in matmul");
        assert_eq!(without_backtrace("404: not found"), "404: not found");
        assert_eq!(without_backtrace(&"x".repeat(10_000)).len(), 4096);
    }
}
