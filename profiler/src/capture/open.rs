//! Opening a capture: its file, its first lines, and what is done at its end.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::counter::{Call, Counter};
use super::exit;
use super::files::{self, Reservation};
use super::panics;
use super::pick::{Ended, Fate};
use super::region::Details;
use super::report;
use super::resident;
use super::schedule::Kind;
use super::settings::{Plane, Planes};
use super::state::{self, State};
use crate::allocator::Counting;
use crate::capability::{CaptureContract, CoverageLevel, MeasurementScope};
use crate::phase::ExecutionPhase;
use crate::record::{self, Closing, Output, Session};
use crate::say::say;
use crate::trace::{TimingMode, TraceRunMeta, stamp};
use crate::view::summary::{Digest, Meta};
use crate::view::text::shell_word;

/// A call that is to be captured.
pub(super) struct Wanted<'a> {
    pub(super) call: &'a Arc<Call>,
    /// Its number, from 1.
    pub(super) number: u64,
    /// The program's own number.
    pub(super) step: Option<i128>,
    pub(super) since_previous_ns: Option<u64>,
    /// Selected by the default, which passes over calls that hold nothing.
    pub(super) picked: bool,
    pub(super) details: &'a Details,
}

/// Opens a capture; `None` where that cannot be, which has been said.
pub(super) fn open(state: &'static State, wanted: Wanted<'_>) -> Option<Arc<Session>> {
    panics::watch();
    let counter = &wanted.call.counter;
    let withdraw = || {
        end_pick(counter, wanted.picked, Ended::Withdrawn);
        None
    };
    if exit::has_begun() {
        return withdraw();
    }
    let step = wanted.step.unwrap_or(i128::from(wanted.number));
    let (writer, Reserved { file, reservation }) = match reserve(state, wanted.call, step) {
        Ok(Some(ready)) => ready,
        Ok(None) => {
            state::writer_hangs();
            return withdraw();
        }
        Err(error) => {
            if !state.broken.swap(true, Ordering::Relaxed) {
                say!(
                    "no trace can be written: {error}; the program goes on without (CANDLE_PROFILE chooses the folder)"
                );
            }
            state.reached(&counter.name, step);
            return withdraw();
        }
    };
    if exit::has_begun() {
        // It came while the file was made.
        let discard = move || {
            reservation.discard();
            Ok(())
        };
        let _ = writer.ask(discard, drop);
        return withdraw();
    }
    let meta = meta(state, &wanted);
    resident::own(record::prepare);
    let mut digest = Digest::new();
    digest.meta(Meta {
        entrypoint: meta.entrypoint.clone(),
        phase: meta.phase.as_str().to_owned(),
        capture_step: meta.capture_step,
        device: meta.device.clone(),
        rank: state.rank().map(|rank| rank.rank),
        since_previous_ns: wanted.since_previous_ns,
        items: wanted
            .details
            .items
            .and_then(|items| u64::try_from(items).ok()),
    });
    let manner = record::Manner {
        synchronize: span_sync(state, wanted.details),
        memory: state
            .settings
            .planes
            .contains(Plane::Memory)
            .then(Counting::start)
            .flatten(),
    };
    let session = Session::new(
        #[cfg(feature = "candle")]
        (counter.kind == Kind::Train).then(crate::tensor::Watch::begin),
        #[cfg(feature = "candle")]
        plan(state, &wanted),
        manner,
    );
    let place = record::OutputPlace {
        file,
        open_list: reservation.open_list(),
    };
    let ending = ending(state, &wanted, step, reservation);
    let output = Output::new(
        Arc::clone(&session),
        place,
        &meta,
        record::Limits {
            records_spans: state.settings.planes.contains(Plane::Spans),
            budget: state.settings.budget,
        },
        digest,
        ending,
    );
    writer.open(output);
    exit::remember(&session);
    Some(session)
}

const NO_MORE: &str = "nothing more is captured";

/// The file of a new trace.
struct Reserved {
    file: File,
    reservation: Reservation,
}

/// Creates the trace's file, on the writer's thread: a disk that does not answer holds nobody for ever. `None`: it did not
/// within 5 s.
fn reserve(
    state: &'static State,
    call: &Arc<Call>,
    step: i128,
) -> io::Result<Option<(record::Running, Reserved)>> {
    let writer = record::start_writer()
        .map_err(|error| io::Error::new(error.kind(), format!("the writer's thread: {error}")))?;
    let call = Arc::clone(call);
    let rank = state.rank().map(|rank| rank.rank);
    let make = move || {
        for leftover in state.files.leftovers() {
            say!("{}", leftover.line);
        }
        let wanted = files::Wanted {
            name: &call.counter.name,
            step,
            rank,
        };
        let (file, reservation) = state.files.reserve(wanted)?;
        Ok(Reserved { file, reservation })
    };
    let unwanted = |reserved: Reserved| reserved.reservation.discard();
    let reserved = writer.ask(make, unwanted)?;
    Ok(reserved.map(|reserved| (writer, reserved)))
}

/// The device that the measured region's ends wait for.
#[cfg(feature = "candle")]
pub(super) fn sync_device(
    state: &State,
    device: Option<candle_core::Device>,
) -> Option<candle_core::Device> {
    use super::settings::SyncMode;
    let wanted = state.settings.sync.unwrap_or(SyncMode::Measured);
    device.filter(|device| wanted != SyncMode::None && !device.is_cpu())
}

/// What each begin and end of a span waits with, where that was asked for.
#[cfg(feature = "candle")]
fn span_sync(state: &State, details: &Details) -> Option<record::Wait> {
    use super::settings::SyncMode;
    let device = sync_device(state, details.sync.clone())?;
    (state.settings.sync == Some(SyncMode::Spans))
        .then(|| -> record::Wait { Box::new(move || crate::device::synchronize(&device)) })
}

#[cfg(not(feature = "candle"))]
fn span_sync(_: &State, _: &Details) -> Option<record::Wait> {
    None
}

#[cfg(feature = "candle")]
fn is_synchronized(state: &State, details: &Details) -> bool {
    sync_device(state, details.sync.clone()).is_some()
}

#[cfg(not(feature = "candle"))]
fn is_synchronized(_: &State, _: &Details) -> bool {
    false
}

fn meta(state: &State, wanted: &Wanted<'_>) -> TraceRunMeta {
    let counter = &wanted.call.counter;
    let own = wanted
        .step
        .and_then(|step| u64::try_from(step).ok())
        .filter(|step| *step > 0);
    let capture_step = own.unwrap_or(wanted.number);
    let mut tags: BTreeMap<String, String> = state.settings.tags.clone();
    tags.extend(wanted.details.tags.iter().cloned());
    if let (Some(step), None) = (wanted.step, own) {
        tags.insert("step".to_owned(), step.to_string());
    }
    if let Some(items) = wanted.details.items {
        tags.insert("items".to_owned(), items.to_string());
    }
    if let Some(rank) = state.rank() {
        tags.insert("rank".to_owned(), rank.rank.to_string());
        if let Some(world) = rank.world {
            tags.insert("world_size".to_owned(), world.to_string());
        }
    }
    let (phase, call) = match counter.kind {
        Kind::Train => (ExecutionPhase::Train, "update"),
        Kind::Infer => (ExecutionPhase::Infer, "inference"),
    };
    TraceRunMeta {
        run_id: stamp::run_id(),
        correlation_id: format!("{}/{call}-{capture_step}", counter.name),
        entrypoint: counter.name.to_string(),
        phase,
        timestamp: stamp::utc_now(),
        capture_step,
        warmup_steps: capture_step - 1,
        device: wanted
            .details
            .device
            .clone()
            .unwrap_or_else(|| "unknown".to_owned()),
        measured_region_device_synchronized: is_synchronized(state, wanted.details),
        timing_mode: match span_sync(state, wanted.details) {
            Some(_) => TimingMode::DeviceSynchronized,
            None => TimingMode::Host,
        },
        capture_contract: promised(state, wanted, phase),
        comparison_identity: None,
        tags,
        candle_version: None,
    }
}

/// The exact list of gradients that was asked for, where gradients are recorded.
#[cfg(feature = "candle")]
fn plan(state: &State, wanted: &Wanted<'_>) -> Option<crate::tensor::Plan> {
    let recorded = state.settings.planes.contains(Plane::Gradients);
    wanted.details.plan.clone().filter(|_| recorded)
}

/// What the trace claims to hold: all gradients where the program lists them, else never all of anything.
fn promised(state: &State, wanted: &Wanted<'_>, phase: ExecutionPhase) -> CaptureContract {
    let promised = contract(state.settings.planes, phase);
    #[cfg(feature = "candle")]
    if let Some(plan) = plan(state, wanted) {
        return CaptureContract {
            gradients: CoverageLevel::Complete,
            gradient_contract: Some(plan.contract),
            ..promised
        };
    }
    let _ = wanted;
    promised
}

/// What the trace claims to hold without such a list.
fn contract(planes: Planes, phase: ExecutionPhase) -> CaptureContract {
    let partial = |on: bool| {
        if on {
            CoverageLevel::Partial
        } else {
            CoverageLevel::None
        }
    };
    let tensors = cfg!(feature = "candle") && planes.contains(Plane::Stats);
    let gradients = cfg!(feature = "candle")
        && phase == ExecutionPhase::Train
        && planes.contains(Plane::Gradients);
    CaptureContract {
        measurement_scope: MeasurementScope::ProfiledWork,
        operations: partial(cfg!(feature = "candle") && planes.contains(Plane::Ops)),
        activations: partial(tensors),
        tensors: partial(tensors),
        gradients: partial(gradients),
        ..CaptureContract::default()
    }
}

fn end_pick(counter: &Counter, picked: bool, ended: Ended) -> Fate {
    if picked {
        counter.pick().end(ended)
    } else if ended == Ended::Withdrawn {
        Fate::Discard
    } else {
        Fate::Publish { drop_kept: false }
    }
}

/// What the writer does at the trace's end.
fn ending(
    state: &'static State,
    wanted: &Wanted<'_>,
    step: i128,
    reservation: Reservation,
) -> record::Ending {
    let call = Arc::clone(wanted.call);
    let picked = wanted.picked;
    let counted = Arc::clone(&call);
    let last_word = Box::new(move |digest: &mut Digest| {
        if let Some(growth) = counted.counter.resident().growth() {
            digest.growth(growth);
        }
    });
    let done = Box::new(move |closing: Closing| {
        let ended = if call.is_withdrawn() {
            Ended::Withdrawn
        } else if closing.failed {
            Ended::Failed
        } else if closing.inner > 0 {
            Ended::Evidence
        } else {
            Ended::Empty
        };
        if ended != Ended::Withdrawn {
            state.reached(&call.counter.name, step);
        }
        let fate = end_pick(&call.counter, picked, ended);
        if let Some(error) = closing.broken {
            if fate == (Fate::Publish { drop_kept: true })
                && let Some(kept) = call.counter.kept().take()
            {
                kept.discard();
            }
            // One line for a disk that is full, not one for each step.
            let is_first = !state.broken.swap(true, Ordering::Relaxed);
            if closing.empty {
                reservation.discard();
                if is_first {
                    say!("{}: {error}; {NO_MORE}", call.counter.name);
                }
                return;
            }
            let partial = reservation.keep_partial();
            return say!(
                "{}: {error}; the trace ends where that happened, and {NO_MORE}; to read it: candle-profile repair {} \
                 -o OTHER/PLACE.jsonl",
                partial.display(),
                shell_word(&partial)
            );
        }
        match fate {
            Fate::Discard => reservation.discard(),
            Fate::KeepAside => *call.counter.kept() = Some(reservation),
            Fate::Publish { drop_kept } => {
                if drop_kept && let Some(kept) = call.counter.kept().take() {
                    kept.discard();
                }
                match reservation.commit() {
                    Ok(path) => report::show(&state.settings.summary, &closing.digest, &path),
                    Err(error) => say!("{error}"),
                }
            }
        }
    });
    record::Ending { last_word, done }
}
