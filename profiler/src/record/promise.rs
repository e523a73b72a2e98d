//! The exact list of gradients that a capture promises, until it is over.

use std::collections::{BTreeMap, HashMap};

use crate::capability::{GradientContract, GradientFamilyExpectation};
use crate::trace::{GradientEvent, GradientState, TraceRunMeta};

/// What was promised, and what has come. Of several events of one gradient the last stands: it is that of all
/// backward passes that were accumulated.
pub(super) struct Promise {
    contract: GradientContract,
    events: HashMap<(String, String), Kept>,
    /// Bytes that their lines take at most.
    bytes: usize,
}

struct Kept {
    event: Box<GradientEvent>,
    bytes: usize,
}

/// What is added to an event when it is written: its number, and that it was zero before.
const ADDED: usize = 128;

/// So many variables of each fault are named.
const MOST_NAMED: usize = 6;

impl Promise {
    pub(super) fn of(meta: &TraceRunMeta) -> Option<Self> {
        let contract = meta.capture_contract.gradient_contract.clone()?;
        Some(Self {
            contract,
            events: HashMap::new(),
            bytes: 0,
        })
    }

    /// Bytes that the lines of what has come take at most.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes an event; where there is no room for its line, gives it back. `fits` is asked for the bytes by which all
    /// of them grow.
    pub(super) fn take(
        &mut self,
        mut event: Box<GradientEvent>,
        fits: impl FnOnce(usize) -> bool,
    ) -> Result<(), Box<GradientEvent>> {
        let promised = self
            .contract
            .expected
            .iter()
            .find(|entry| entry.root == event.root && entry.key == event.key);
        // What is not promised would make the whole list invalid.
        let Some(entry) = promised else {
            return Ok(());
        };
        let extra = event.extra.get_or_insert_default();
        extra.family = Some(entry.family.clone());
        // One event for each stands for all passes.
        extra.pass = None;
        let key = (event.root.clone(), event.key.clone());
        let line = serde_json::to_vec(&*event).map_or(0, |line| line.len());
        let bytes = line + ADDED;
        let before = self.events.get(&key).map_or(0, |kept| kept.bytes);
        if !fits(bytes.saturating_sub(before)) {
            return Err(event);
        }
        self.bytes = self.bytes + bytes - before;
        self.events.insert(key, Kept { event, bytes });
        Ok(())
    }

    /// The events in the order of the list, and how the promise was broken, if it was. Events that break it are left
    /// out: a failed capture may hold fewer, but none that contradict the list.
    pub(super) fn settle(mut self) -> (Vec<GradientEvent>, Option<String>) {
        let mut faults = Faults::default();
        let mut events = Vec::new();
        let mut absent = Vec::new();
        let mut present: BTreeMap<&str, usize> = BTreeMap::new();
        for entry in &self.contract.expected {
            let key = (entry.root.clone(), entry.key.clone());
            let Some(Kept { event, .. }) = self.events.remove(&key) else {
                absent.push(entry.key.as_str());
                continue;
            };
            let rule = self
                .contract
                .families
                .iter()
                .find(|rule| rule.family == entry.family);
            let inactive = rule.is_some_and(|rule| {
                rule.expectation == GradientFamilyExpectation::Inactive
                    && event.state != GradientState::Missing
            });
            if event.state == GradientState::NonFinite {
                faults.push(format!("that of {} is not finite", entry.key));
            } else if inactive {
                faults.push(format!(
                    "{} has one, although its family {} is to have none",
                    entry.key, entry.family
                ));
            } else {
                if event.state == GradientState::Present {
                    *present.entry(&entry.family).or_default() += 1;
                }
                events.push(*event);
            }
        }
        for rule in &self.contract.families {
            let here = present.get(rule.family.as_str()).copied().unwrap_or(0);
            let conditional = rule.expectation == GradientFamilyExpectation::DataConditional;
            if here < rule.min_present && !(conditional && here == 0) {
                faults.push(format!(
                    "family {} has {here} that are not zero, promised are {}",
                    rule.family, rule.min_present
                ));
                // The list is judged by what it holds: one member less, and its family is not counted.
                let of_family = |event: &GradientEvent| {
                    let extra = event.extra.as_deref();
                    extra.and_then(|extra| extra.family.as_deref()) == Some(&rule.family)
                };
                if let Some(at) = events.iter().position(of_family) {
                    events.remove(at);
                }
            }
        }
        if !absent.is_empty() {
            let shown: Vec<&str> = absent.iter().copied().take(MOST_NAMED).collect();
            let more = match absent.len() - shown.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            faults.push(format!("none was seen of {}{more}", shown.join(", ")));
        }
        let broken = faults
            .told()
            .map(|faults| format!("the promised gradients were not all as promised: {faults}"));
        (events, broken)
    }
}

/// What is wrong: the first of it in words.
#[derive(Default)]
struct Faults {
    first: Vec<String>,
    more: usize,
}

impl Faults {
    fn push(&mut self, fault: String) {
        if self.first.len() < MOST_NAMED {
            self.first.push(fault);
        } else {
            self.more += 1;
        }
    }

    fn told(self) -> Option<String> {
        let more = match self.more {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        (!self.first.is_empty()).then(|| self.first.join("; ") + &more)
    }
}
