//! What the health check will say, told while the session runs.
//!
//! Rules are named by the codes of [`crate::trace::health`]. In a strict session a call that breaks
//! one is refused, so that nothing wrong is written; else it is taken note of. Only what a rule
//! needs is kept: numbers and hashes, not events.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};

use anyhow::{Result, bail};

use super::findings::Findings;
use super::records::{SpanId, span_name};
use super::shared::Facts;
use crate::capability::{CaptureContract, GradientContract, GradientFamilyContract};
use crate::trace::health::gradients::FamilyTally;
use crate::trace::health::memory::StorageLives;
use crate::trace::{EdgeEvent, GradientState, MemoryAction};

pub(super) struct Checks {
    pub(super) strict: bool,
    pub(super) findings: Findings,
    measured: u64,
    /// How often each required label was a span's name.
    labels: HashMap<String, u64>,
    /// The latest evidence of spans that are open.
    reach: HashMap<u64, Reach>,
    /// Calls of spans that are open.
    calls: HashMap<u64, Vec<(u64, u64)>>,
    tensors: HashSet<u64>,
    /// Data edges whose tensors are not all known yet.
    data_edges: Vec<(String, String)>,
    memory: MemoryChecks,
    gradients: Option<GradientChecks>,
}

#[derive(Default)]
struct Reach {
    ops_ns: u64,
    memory_ns: u64,
}

/// What a piece of evidence is, and when.
pub(super) struct Evidence<'a> {
    pub(super) code: &'static str,
    pub(super) what: &'a str,
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
}

pub(super) const OP_OUTSIDE: &str = "operation_outside_span";
pub(super) const MEMORY_OUTSIDE: &str = "memory_outside_span";

impl Checks {
    pub(super) fn new(contract: &CaptureContract, strict: bool, root: &str) -> Self {
        let labels = contract.required_semantic_labels.iter().cloned();
        let mut checks = Self {
            strict,
            findings: Findings::default(),
            measured: 0,
            labels: labels.map(|label| (label, 0)).collect(),
            reach: HashMap::new(),
            calls: HashMap::new(),
            tensors: HashSet::new(),
            data_edges: Vec::new(),
            memory: MemoryChecks::default(),
            gradients: contract.gradient_contract.as_ref().map(GradientChecks::new),
        };
        checks.span(root, false);
        checks
    }

    pub(super) fn has_measured(&self) -> bool {
        self.measured > 0
    }

    fn broken(&mut self, code: &'static str, text: String) -> Result<()> {
        if self.strict {
            bail!("{code}: {text}");
        }
        self.findings.add(code, text);
        Ok(())
    }

    /// A span begins.
    pub(super) fn span(&mut self, name: &str, measured: bool) {
        self.measured += u64::from(measured);
        if let Some(count) = self.labels.get_mut(name) {
            *count += 1;
        }
    }

    /// A span ends: evidence that was recorded before is judged by its time.
    pub(super) fn span_ended(&mut self, id: u64, facts: &Facts, end_ns: u64) {
        if let Some(reach) = self.reach.remove(&id) {
            for (code, what, at_ns) in [
                (OP_OUTSIDE, "an operation", reach.ops_ns),
                (MEMORY_OUTSIDE, "a memory event", reach.memory_ns),
            ] {
                if at_ns > end_ns {
                    self.findings.add(
                        code,
                        format!("{what} of span s{id} reaches to {at_ns} ns, the span ended at {end_ns} ns"),
                    );
                }
            }
        }
        for (from, duration_ns) in self.calls.remove(&id).unwrap_or_default() {
            if let Some((code, text)) = call_fault(from, id, duration_ns, facts, end_ns) {
                self.findings.add(code, text);
            }
        }
    }

    /// Evidence without a time of its own names a span.
    pub(super) fn known_span(&mut self, id: SpanId, facts: Option<&Facts>) -> Result<()> {
        if facts.is_some() {
            return Ok(());
        }
        self.broken(
            "unknown_span",
            format!("there is no span {} in this session", span_name(id.0)),
        )
    }

    /// Evidence with a time lies within its span.
    pub(super) fn within_span(
        &mut self,
        id: SpanId,
        facts: Option<&Facts>,
        evidence: &Evidence<'_>,
        now: u64,
    ) -> Result<()> {
        let Some(facts) = facts else {
            return self.known_span(id, facts);
        };
        let Evidence {
            code,
            what,
            start_ns,
            end_ns,
        } = *evidence;
        // An open span will end after now, so what is over by now is inside. What is not may turn
        // out to be, but a strict session refuses it while it can.
        let limit = match facts.end() {
            Some(end) => end,
            None if self.strict => now,
            None => u64::MAX,
        };
        if start_ns < facts.start_ns || end_ns > limit {
            let until = match facts.end() {
                Some(end) => format!("ended at {end} ns"),
                None => format!("is open at {now} ns"),
            };
            return self.broken(
                code,
                format!(
                    "{what} lies from {start_ns} to {end_ns} ns, but its span s{} started at {} ns and {until}",
                    id.0, facts.start_ns
                ),
            );
        }
        if facts.end().is_none() && end_ns > now {
            let reach = self.reach.entry(id.0).or_default();
            let latest = if code == OP_OUTSIDE {
                &mut reach.ops_ns
            } else {
                &mut reach.memory_ns
            };
            *latest = end_ns.max(*latest);
        }
        Ok(())
    }

    pub(super) fn call(
        &mut self,
        from: SpanId,
        to: SpanId,
        from_facts: Option<&Facts>,
        to_facts: Option<&Facts>,
        duration_ns: u64,
    ) -> Result<()> {
        let (Some(_), Some(child)) = (from_facts, to_facts) else {
            return self.broken(
                "unknown_call_edge_span",
                format!(
                    "the call from s{} to s{} names a span that is not of this session",
                    from.0, to.0
                ),
            );
        };
        match child.end() {
            Some(end_ns) => match call_fault(from.0, to.0, duration_ns, child, end_ns) {
                Some((code, text)) => self.broken(code, text),
                None => Ok(()),
            },
            None if self.strict => bail!(
                "call_edge_duration_mismatch: span s{} is still open and has no duration yet; record the call after its end",
                to.0
            ),
            None => {
                let calls = self.calls.entry(to.0).or_default();
                calls.push((from.0, duration_ns));
                Ok(())
            }
        }
    }

    /// A tensor or op event names a tensor.
    pub(super) fn tensor(&mut self, id: &str) {
        self.tensors.insert(hash(id));
    }

    /// Takes note of a data edge. Says whether it may be written now: a strict session holds it
    /// back until it is known to be right.
    pub(super) fn data_edge(&mut self, from: &str, to: &str) -> bool {
        if self.knows_both(from, to) {
            return true;
        }
        self.data_edges.push((from.to_owned(), to.to_owned()));
        !self.strict
    }

    fn knows_both(&self, from: &str, to: &str) -> bool {
        self.tensors.contains(&hash(from)) && self.tensors.contains(&hash(to))
    }

    pub(super) fn memory(&mut self, moment: MemoryMoment, what: &str) -> Result<()> {
        match self.memory.add(moment, self.strict) {
            Some((code, words)) => bail!("{code}: {what} {words}"),
            None => Ok(()),
        }
    }

    pub(super) fn gradient(&mut self, root: &str, key: &str, state: GradientState) -> Result<()> {
        let fault = match &mut self.gradients {
            Some(gradients) => gradients.add(root, key, state, self.strict),
            None => None,
        };
        match fault {
            Some((code, text)) => self.broken(code, text),
            None => Ok(()),
        }
    }

    /// Judges what can be told only at the end. Gives the data edges that were held back and turned
    /// out to be right.
    pub(super) fn finish(&mut self) -> Vec<EdgeEvent> {
        if self.measured != 1 {
            self.findings.add(
                "measurement_count",
                format!(
                    "{} spans are measured regions, a complete trace has exactly one; begin it with begin_measurement",
                    self.measured
                ),
            );
        }
        for (label, count) in &self.labels {
            if *count != 1 {
                self.findings.add(
                    "required_semantic_label_cardinality",
                    format!(
                        "{count} spans are called {label:?}, the contract asks for exactly one"
                    ),
                );
            }
        }
        if !self.strict {
            self.memory.finish(&mut self.findings);
        }
        if let Some(gradients) = &self.gradients {
            gradients.finish(&mut self.findings);
        }
        self.finish_data_edges()
    }

    fn finish_data_edges(&mut self) -> Vec<EdgeEvent> {
        let mut held_back = Vec::new();
        for (from_tensor, to_tensor) in std::mem::take(&mut self.data_edges) {
            if !self.knows_both(&from_tensor, &to_tensor) {
                self.findings.add(
                    "unknown_data_edge_tensor",
                    format!("the data edge from {from_tensor:?} to {to_tensor:?} names a tensor that no tensor or op event names"),
                );
            } else if self.strict {
                held_back.push(EdgeEvent::Data {
                    from_tensor,
                    to_tensor,
                });
            }
        }
        held_back
    }
}

fn call_fault(
    from: u64,
    to: u64,
    duration_ns: u64,
    child: &Facts,
    end_ns: u64,
) -> Option<(&'static str, String)> {
    let own_ns = end_ns - child.start_ns;
    if child.parent != from {
        Some((
            "call_edge_hierarchy_mismatch",
            format!("the call from s{from} to s{to} is not one of a parent to its child"),
        ))
    } else if own_ns != duration_ns {
        Some((
            "call_edge_duration_mismatch",
            format!(
                "the call from s{from} to s{to} took {duration_ns} ns, but the span s{to} {own_ns} ns"
            ),
        ))
    } else {
        None
    }
}

/// Stands for a text where only equality matters. Two of a million texts share a hash once in some
/// ten million sessions, and the cost is a finding that is not said.
pub(super) fn hash(text: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// One memory event, as far as pairing needs it.
#[derive(Clone, Copy)]
pub(super) struct MemoryMoment {
    pub(super) timestamp_ns: u64,
    pub(super) storage: u64,
    pub(super) tensor: u64,
    pub(super) bytes: u64,
    pub(super) action: MemoryAction,
}

/// Pairs memory events. They count in the order of their times, which the caller may choose, so
/// only the end knows for sure; a strict session asks for them in order.
#[derive(Default)]
struct MemoryChecks {
    moments: Vec<MemoryMoment>,
    lives: StorageLives<u64, u64>,
    latest_ns: u64,
}

impl MemoryChecks {
    fn add(&mut self, moment: MemoryMoment, strict: bool) -> Option<(&'static str, String)> {
        if !strict {
            self.moments.push(moment);
            return None;
        }
        let MemoryMoment {
            timestamp_ns,
            storage,
            tensor,
            bytes,
            action,
        } = moment;
        let fault = self.lives.fault(&storage, &tensor, bytes, action);
        if let Some(fault) = fault {
            return Some((fault.code(), fault.words().to_owned()));
        }
        if timestamp_ns < self.latest_ns {
            return Some((
                "unpaired_free",
                format!(
                    "is of {timestamp_ns} ns, before a memory event of {} ns that was recorded; a strict session pairs them in the order of their times",
                    self.latest_ns
                ),
            ));
        }
        self.lives.apply(storage, tensor, bytes, action);
        self.latest_ns = timestamp_ns;
        None
    }

    fn finish(&mut self, findings: &mut Findings) {
        self.moments.sort_by_key(|moment| moment.timestamp_ns);
        for moment in self.moments.drain(..) {
            let fault =
                self.lives
                    .apply(moment.storage, moment.tensor, moment.bytes, moment.action);
            if let Some(fault) = fault {
                findings.add(
                    fault.code(),
                    format!("a storage at {} ns {}", moment.timestamp_ns, fault.words()),
                );
            }
        }
    }
}

/// Holds gradients against the contract.
struct GradientChecks {
    /// Parameters by root and key: the family's place, and whether a gradient was seen.
    parameters: HashMap<(String, String), (usize, bool)>,
    families: Vec<(GradientFamilyContract, FamilyTally)>,
}

impl GradientChecks {
    fn new(contract: &GradientContract) -> Self {
        let mut families: Vec<_> = contract
            .families
            .iter()
            .map(|rule| (rule.clone(), FamilyTally::default()))
            .collect();
        let mut parameters = HashMap::new();
        for entry in &contract.expected {
            let family = families
                .iter_mut()
                .enumerate()
                .find(|(_, (rule, _))| rule.family == entry.family);
            if let Some((place, (_, tally))) = family {
                tally.expected += 1;
                parameters.insert((entry.root.clone(), entry.key.clone()), (place, false));
            }
        }
        Self {
            parameters,
            families,
        }
    }

    /// A gradient is recorded. In a strict session one that breaks a rule is not taken.
    fn add(
        &mut self,
        root: &str,
        key: &str,
        state: GradientState,
        strict: bool,
    ) -> Option<(&'static str, String)> {
        let parameter = (root.to_owned(), key.to_owned());
        let Some((family, seen)) = self.parameters.get_mut(&parameter) else {
            return Some((
                "gradient_manifest_undeclared_key",
                format!("parameter {key:?} of {root:?} is not in the gradient contract"),
            ));
        };
        if *seen {
            return Some((
                "gradient_manifest_duplicate_key",
                format!(
                    "parameter {key:?} of {root:?} has a gradient already, the contract asks for one"
                ),
            ));
        }
        let (rule, tally) = self.families.get_mut(*family)?;
        let mut next = *tally;
        next.add(state);
        if strict && let Some(fault) = next.faults(rule, true).first() {
            return Some((
                fault.code(),
                format!(
                    "parameter {key:?} of {root:?} is {state}: {}",
                    fault.message(rule, &next)
                ),
            ));
        }
        *tally = next;
        *seen = true;
        None
    }

    fn finish(&self, findings: &mut Findings) {
        let missing = self.parameters.iter().filter(|(_, (_, seen))| !seen);
        for ((root, key), _) in missing {
            findings.add(
                "gradient_manifest_missing_key",
                format!("parameter {key:?} of {root:?} is in the gradient contract, but was not recorded"),
            );
        }
        for (rule, tally) in &self.families {
            for fault in tally.faults(rule, false) {
                findings.add(fault.code(), fault.message(rule, tally));
            }
        }
    }
}
