//! The state of a session, shared by all that record into it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use super::checks::Checks;
use super::output::Output;
use super::records::{SpanId, span_name};
use super::run::ProfileRun;
use crate::phase::ExecutionStep;
use crate::say::say;
use crate::thread::thread_key;
use crate::trace::{RunOutcome, SpanEndEvent, SpanKind, SpanStartEvent, TerminalEvent, TraceEvent};

/// The root's number; it is open from the opening of the session to its end.
pub(super) const ROOT: u64 = 1;

/// What stands for the end of a span that has none yet.
const OPEN: u64 = u64::MAX;

/// A session that is open, or was.
pub(crate) struct Shared {
    path: PathBuf,
    started: Instant,
    /// A child of a fork has a copy of everything here, but the file is not its own.
    process: u32,
    state: Mutex<State>,
}

/// What is known of a span, whether open or closed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts {
    pub(super) start_ns: u64,
    end_ns: u64,
    pub(super) parent: u64,
}

impl Facts {
    pub(super) fn end(&self) -> Option<u64> {
        (self.end_ns != OPEN).then_some(self.end_ns)
    }
}

/// A span on a thread's stack.
struct OpenSpan {
    id: u64,
    /// Its `span_start`, where it is not written yet: see [`State::begin`].
    unwritten: Option<SpanStartEvent>,
}

pub(super) struct State {
    pub(super) output: Output,
    pub(super) checks: Checks,
    /// The facts of span `n` at `n - 1`.
    facts: Vec<Facts>,
    /// The open spans of each thread that has some, outermost first; the root is on none.
    stacks: HashMap<u64, Vec<OpenSpan>>,
    /// The open spans of futures, which are on no thread's stack.
    detached: HashMap<u64, OpenSpan>,
    pub(super) gradients: u64,
    /// The latest time that an event claimed.
    pub(super) latest_ns: u64,
    ended: bool,
}

impl Shared {
    pub(super) fn open(path: &Path, run: ProfileRun) -> Result<Self> {
        let (strict, legacy) = (run.strict, run.legacy_schema);
        let meta = run.into_meta();
        let opening = || format!("open trace session {}", path.display());
        meta.validate().with_context(opening)?;
        meta.capture_contract.validate().with_context(opening)?;
        let mut output = Output::create(path, legacy)?;
        let checks = Checks::new(&meta.capture_contract, strict, &meta.entrypoint);
        let root = SpanStartEvent {
            id: span_name(ROOT),
            parent_id: None,
            name: meta.entrypoint.clone(),
            start_ns: 0,
            kind: SpanKind::Function,
            measured: false,
            step: None,
            extra: None,
        };
        output.write(&TraceEvent::meta(meta))?;
        output.write(&TraceEvent::SpanStart(root))?;
        // What follows can be repaired, whatever becomes of the process.
        output.flush()?;
        Ok(Self {
            path: path.to_owned(),
            process: std::process::id(),
            state: Mutex::new(State {
                output,
                checks,
                facts: vec![Facts {
                    start_ns: 0,
                    end_ns: OPEN,
                    parent: 0,
                }],
                stacks: HashMap::new(),
                detached: HashMap::new(),
                gradients: 0,
                latest_ns: 0,
                ended: false,
            }),
            started: Instant::now(),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Nanoseconds since the session was opened.
    pub(crate) fn elapsed_ns(&self) -> u64 {
        nanos(self.started.elapsed())
    }

    pub(super) fn timestamp_ns(&self, instant: Instant) -> Result<u64> {
        let elapsed = instant
            .checked_duration_since(self.started)
            .context("the instant is before the trace session was opened")?;
        Ok(nanos(elapsed))
    }

    /// The state, unless the session has ended or belongs to another process. Asked first, because
    /// in a fork's child the lock may be held by a thread that is not there.
    pub(super) fn state(&self) -> Result<MutexGuard<'_, State>> {
        ensure!(
            std::process::id() == self.process,
            "trace session {} belongs to process {}; a fork of it cannot record into it",
            self.path.display(),
            self.process
        );
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        ensure!(
            !state.ended,
            "trace session {} has ended",
            self.path.display()
        );
        Ok(state)
    }

    /// Ends the session at the end of the program, if it has not ended. Other threads go on then, and one of them may
    /// hold the lock for ever: it is waited for until the moment given.
    pub(crate) fn exited(&self, until: Instant) {
        if std::process::id() != self.process {
            return;
        }
        let Some(mut state) = crate::thread::lock_until(&self.state, until) else {
            return;
        };
        if !state.ended {
            let now = self.elapsed_ns();
            // Nobody is left to be told that the file cannot be written.
            let _ = state.end_failed(now, "the process exited inside the session".to_owned());
        }
    }

    /// Whether it still takes records.
    pub(crate) fn is_open(&self) -> bool {
        self.state().is_ok()
    }

    /// Begins a span on this thread's stack, below `parent`, or below the top of the stack. Gives
    /// an id that names no span where the session has ended.
    pub(crate) fn begin(
        &self,
        name: String,
        kind: SpanKind,
        step: Option<ExecutionStep>,
        measured: bool,
        parent: Option<SpanId>,
    ) -> SpanId {
        let Ok(mut state) = self.state() else {
            return SpanId(0);
        };
        // The clock is read under the lock, here and at the end: then readings are in the order of
        // what they mean, on all threads, and a child cannot reach beyond its parent.
        let start = self.start_now(name, kind, step, measured);
        SpanId(state.begin(start, parent.map(|parent| parent.0)))
    }

    /// A span that begins now, without its number and its parent.
    fn start_now(
        &self,
        name: String,
        kind: SpanKind,
        step: Option<ExecutionStep>,
        measured: bool,
    ) -> SpanStartEvent {
        SpanStartEvent {
            id: String::new(),
            parent_id: None,
            name,
            start_ns: self.elapsed_ns(),
            kind,
            measured,
            step,
            extra: None,
        }
    }

    /// Begins the span of a future, on no thread's stack, below the innermost open span of this thread or `parent`. Its
    /// parent may end first, so it is decided at its end.
    pub(crate) fn begin_detached(
        &self,
        name: String,
        kind: SpanKind,
        step: Option<ExecutionStep>,
        measured: bool,
        parent: Option<SpanId>,
    ) -> SpanId {
        let Ok(mut state) = self.state() else {
            return SpanId(0);
        };
        let mut start = self.start_now(name, kind, step, measured);
        let parent = parent.map_or_else(|| state.top(), |parent| parent.0);
        let id = state.new_span(&start, parent, OPEN);
        start.id = span_name(id);
        let unwritten = Some(start);
        state.detached.insert(id, OpenSpan { id, unwritten });
        SpanId(id)
    }

    /// Ends a span, and what is open above it on its thread, at one reading of the clock. Does
    /// nothing where it has ended.
    pub(crate) fn end(&self, id: SpanId) {
        if let Ok(mut state) = self.state() {
            let now = self.elapsed_ns();
            state.end(id.0, now);
        }
    }

    /// When a span began; now, where it is none.
    pub(super) fn start_of(&self, id: SpanId) -> u64 {
        let facts = self.state().ok().and_then(|state| state.facts(id).copied());
        facts.map_or_else(|| self.elapsed_ns(), |facts| facts.start_ns)
    }

    /// Ends the session as complete. See [`super::TraceSession::finish`].
    pub(super) fn finish(&self) -> Result<()> {
        let mut state = self.state()?;
        state.output.check()?;
        let own = state.stacks.get(&thread_key()).map_or(0, Vec::len);
        if own > 0 {
            let reason = format!(
                "finish was called while {own} spans of the calling thread were open; drop their guards first"
            );
            let now = self.elapsed_ns();
            state.end_failed(now, reason.clone())?;
            bail!("trace {}: {reason}", self.path.display());
        }
        let now = self.elapsed_ns();
        state.end_all(now);
        let State { checks, output, .. } = &mut *state;
        for edge in checks.finish() {
            output.write(&TraceEvent::Edge(edge))?;
        }
        state.end_root(now)?;
        if state.checks.findings.is_empty() {
            return state.terminate(now, RunOutcome::Complete, None);
        }
        if state.checks.strict {
            let found: Vec<String> = state.checks.findings.lines().collect();
            let reason = found.join("; ");
            state.terminate(now, RunOutcome::Failed, Some(reason.clone()))?;
            bail!("trace {} is not valid: {reason}", self.path.display());
        }
        for line in state.checks.findings.lines() {
            say!("trace {}: {line}", self.path.display());
        }
        state.terminate(now, RunOutcome::Complete, None)
    }

    /// Ends the session as failed; what is open stays open.
    pub(crate) fn finish_failed(&self, reason: String) -> Result<()> {
        let mut state = self.state()?;
        let now = self.elapsed_ns();
        state.end_failed(now, reason)
    }
}

impl State {
    /// The facts of a span of this session.
    pub(super) fn facts(&self, id: SpanId) -> Option<&Facts> {
        let place = usize::try_from(id.0.checked_sub(1)?).ok()?;
        self.facts.get(place)
    }

    fn facts_mut(&mut self, id: u64) -> Option<&mut Facts> {
        let place = usize::try_from(id.checked_sub(1)?).ok()?;
        self.facts.get_mut(place)
    }

    /// The innermost open span of this thread, or the root.
    pub(super) fn top(&self) -> u64 {
        let stack = self.stacks.get(&thread_key());
        stack
            .and_then(|stack| stack.last())
            .map_or(ROOT, |span| span.id)
    }

    /// Pushes a span on this thread's stack.
    ///
    /// A parent on another thread's stack may end first, and then it is not the parent: the nearest
    /// span above it that is still open when the child ends is. So the `span_start` of such a child
    /// is written at its end.
    fn begin(&mut self, mut start: SpanStartEvent, parent: Option<u64>) -> u64 {
        let parent = parent.unwrap_or_else(|| self.top());
        let id = self.new_span(&start, parent, OPEN);
        start.id = span_name(id);
        let stack = self.stacks.entry(thread_key()).or_default();
        let certain = parent == ROOT || stack.iter().rev().any(|span| span.id == parent);
        if certain {
            start.parent_id = Some(span_name(parent));
            stack.push(OpenSpan {
                id,
                unwritten: None,
            });
            // A fault is kept by the output, and `finish` gives it back.
            let _ = self.output.write(&TraceEvent::SpanStart(start));
        } else {
            stack.push(OpenSpan {
                id,
                unwritten: Some(start),
            });
        }
        id
    }

    /// Numbers a span and takes note of it.
    fn new_span(&mut self, start: &SpanStartEvent, parent: u64, end_ns: u64) -> u64 {
        self.checks.span(&start.name, start.measured);
        self.facts.push(Facts {
            start_ns: start.start_ns,
            end_ns,
            parent,
        });
        self.facts.len() as u64
    }

    fn end(&mut self, id: u64, now: u64) {
        // The root ends with the session, and what has ended is on no stack.
        if id == ROOT
            || self
                .facts(SpanId(id))
                .is_none_or(|facts| facts.end_ns != OPEN)
        {
            return;
        }
        if let Some(span) = self.detached.remove(&id) {
            return self.end_one(span, now);
        }
        let here = thread_key();
        let on = |stack: &Vec<OpenSpan>| stack.iter().rposition(|span| span.id == id);
        let found = match self.stacks.get(&here).and_then(on) {
            Some(place) => Some((here, place)),
            None => self
                .stacks
                .iter()
                .find_map(|(thread, stack)| on(stack).map(|place| (*thread, place))),
        };
        let Some((thread, place)) = found else {
            return;
        };
        let Some(stack) = self.stacks.get_mut(&thread) else {
            return;
        };
        let ending = stack.split_off(place);
        if stack.is_empty() {
            self.stacks.remove(&thread);
        }
        for span in ending.into_iter().rev() {
            self.end_one(span, now);
        }
    }

    fn end_one(&mut self, span: OpenSpan, now: u64) {
        if let Some(start) = span.unwritten {
            self.write_late_start(span.id, start);
        }
        let Some(facts) = self.facts_mut(span.id) else {
            return;
        };
        facts.end_ns = now;
        let facts = *facts;
        self.latest_ns = self.latest_ns.max(now);
        self.checks.span_ended(span.id, &facts, now);
        let _ = self.output.write(&TraceEvent::SpanEnd(SpanEndEvent {
            id: span_name(span.id),
            duration_ns: now - facts.start_ns,
            extra: None,
        }));
    }

    fn write_late_start(&mut self, id: u64, mut start: SpanStartEvent) {
        let wanted = self.facts(SpanId(id)).map_or(ROOT, |facts| facts.parent);
        let parent = self.nearest(wanted, |facts| facts.end_ns == OPEN);
        if let Some(facts) = self.facts_mut(id) {
            facts.parent = parent;
        }
        start.parent_id = Some(span_name(parent));
        let _ = self.output.write(&TraceEvent::SpanStart(start));
    }

    /// The first of `from`, its parent, its parent's parent, … that fits; else the root.
    fn nearest(&self, from: u64, fits: impl Fn(&Facts) -> bool) -> u64 {
        let mut id = from;
        while id != ROOT {
            match self.facts(SpanId(id)) {
                Some(facts) if fits(facts) => return id,
                Some(facts) => id = facts.parent,
                None => return ROOT,
            }
        }
        ROOT
    }

    /// Writes a span that is over already, below the nearest of `parent` and the spans above it
    /// that holds it.
    pub(super) fn record_closed(
        &mut self,
        start: SpanStartEvent,
        end_ns: u64,
        parent: u64,
    ) -> Result<u64> {
        self.output.check()?;
        let start_ns = start.start_ns;
        let parent = self.nearest(parent, |facts| {
            facts.start_ns <= start_ns && end_ns <= facts.end_ns
        });
        let id = self.new_span(&start, parent, end_ns);
        self.latest_ns = self.latest_ns.max(end_ns);
        self.output.write(&TraceEvent::SpanStart(SpanStartEvent {
            id: span_name(id),
            parent_id: Some(span_name(parent)),
            ..start
        }))?;
        self.output.write(&TraceEvent::SpanEnd(SpanEndEvent {
            id: span_name(id),
            duration_ns: end_ns - start_ns,
            extra: None,
        }))?;
        Ok(id)
    }

    /// Writes the `span_start`s that are waiting, while everything is still open, and gives the open
    /// spans, innermost first.
    fn take_open(&mut self) -> Vec<OpenSpan> {
        let mut open: Vec<OpenSpan> = self.stacks.drain().flat_map(|(_, stack)| stack).collect();
        open.extend(self.detached.drain().map(|(_, span)| span));
        open.sort_unstable_by_key(|span| std::cmp::Reverse(span.id));
        for span in &mut open {
            if let Some(start) = span.unwritten.take() {
                self.write_late_start(span.id, start);
            }
        }
        open
    }

    fn end_all(&mut self, now: u64) {
        for span in self.take_open() {
            self.end_one(span, now);
        }
    }

    fn end_root(&mut self, now: u64) -> Result<()> {
        let root = Facts {
            start_ns: 0,
            end_ns: now,
            parent: 0,
        };
        self.checks.span_ended(ROOT, &root, now);
        self.output.write(&TraceEvent::SpanEnd(SpanEndEvent {
            id: span_name(ROOT),
            duration_ns: now,
            extra: None,
        }))
    }

    fn end_failed(&mut self, now: u64, reason: String) -> Result<()> {
        self.take_open();
        self.terminate(now, RunOutcome::Failed, Some(reason))
    }

    /// Writes the last line. It is never before anything that was recorded, even if that claims to
    /// be of the future.
    fn terminate(&mut self, now: u64, outcome: RunOutcome, reason: Option<String>) -> Result<()> {
        self.ended = true;
        self.output.write(&TraceEvent::Terminal(TerminalEvent {
            outcome,
            timestamp_ns: now.max(self.latest_ns),
            reason,
            extra: None,
        }))?;
        self.output.flush()
    }
}

fn nanos(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "shared_tests.rs"]
mod tests;
