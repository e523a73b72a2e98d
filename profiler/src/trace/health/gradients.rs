//! Gradients, and the contract of a capture that promises all of them.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::Issues;
use crate::capability::{
    CoverageLevel, GradientContract, GradientFamilyContract, GradientFamilyExpectation,
};
use crate::trace::document::TraceDocument;
use crate::trace::events::GradientEvent;
use crate::trace::schema::GradientState;

/// The gradients of each parameter, by root and key.
type Observed<'a> = BTreeMap<(&'a str, &'a str), Vec<&'a GradientEvent>>;

pub(super) fn judge(doc: &TraceDocument, issues: &mut Issues) {
    each_event(&doc.gradients, issues);
    let declared = doc.run.capture_contract.gradients;
    match (declared, &doc.run.capture_contract.gradient_contract) {
        (_, None) if declared != CoverageLevel::Complete => {}
        (_, None) => issues.error(
            "gradient_contract_missing",
            "the capture promises complete gradients, but has no gradient_contract",
        ),
        (CoverageLevel::Complete, Some(contract)) => exact(doc, contract, issues),
        (_, Some(_)) => issues.error(
            "gradient_contract_without_complete_coverage",
            "there is a gradient_contract, but complete gradients are not promised",
        ),
    }
}

fn each_event(gradients: &[GradientEvent], issues: &mut Issues) {
    let mut ids = HashSet::new();
    for event in gradients {
        if event.event_id.trim().is_empty() {
            issues.error(
                "empty_gradient_event_id",
                format!("the gradient of {} has no event_id", event.key),
            );
        }
        if event.root.trim().is_empty() || event.key.trim().is_empty() {
            issues.error(
                "empty_gradient_parameter_key",
                format!("gradient {} has no root or no key", event.event_id),
            );
        }
        if !ids.insert(event.event_id.as_str()) {
            issues.error(
                "duplicate_gradient_event_id",
                format!("two gradients have the event_id {}", event.event_id),
            );
        }
        if !event.state.allows(event.norm) {
            issues.error(
                "gradient_state_norm_inconsistent",
                format!(
                    "the gradient of {} is {} with the norm {:?}; this state has {}",
                    event.key,
                    event.state,
                    event.norm,
                    event.state.allowed_norm()
                ),
            );
        }
    }
}

fn exact(doc: &TraceDocument, contract: &GradientContract, issues: &mut Issues) {
    if let Err(error) = contract.validate() {
        issues.error("gradient_contract_invalid", error.to_string());
        return;
    }
    let mut observed = Observed::new();
    for event in &doc.gradients {
        observed
            .entry((&event.root, &event.key))
            .or_default()
            .push(event);
    }
    manifest(&observed, contract, issues);

    let mut members: HashMap<&str, Vec<Option<GradientState>>> = HashMap::new();
    for entry in &contract.expected {
        let events = observed.get(&(entry.root.as_str(), entry.key.as_str()));
        let state = events
            .and_then(|events| events.first())
            .map(|event| event.state);
        members.entry(&entry.family).or_default().push(state);
    }
    for rule in &contract.families {
        let states = members.get(rule.family.as_str());
        let tally = FamilyTally::of(states.map_or(&[], Vec::as_slice));
        for fault in tally.faults(rule, issues.failed) {
            issues.error(fault.code(), fault.message(rule, &tally));
        }
    }
}

fn manifest(observed: &Observed<'_>, contract: &GradientContract, issues: &mut Issues) {
    let expected: HashSet<(&str, &str)> = contract
        .expected
        .iter()
        .map(|entry| (entry.root.as_str(), entry.key.as_str()))
        .collect();
    for (parameter, events) in observed {
        let (root, key) = parameter;
        if events.len() > 1 {
            issues.error(
                "gradient_manifest_duplicate_key",
                format!(
                    "parameter {key} of {root} has {} gradients, promised is one",
                    events.len()
                ),
            );
        }
        if !expected.contains(parameter) {
            issues.error(
                "gradient_manifest_undeclared_key",
                format!("parameter {key} of {root} has a gradient, but is not in the contract"),
            );
        }
    }
    for entry in &contract.expected {
        if !observed.contains_key(&(entry.root.as_str(), entry.key.as_str())) {
            issues.unless_failed(
                "gradient_manifest_missing_key",
                format!(
                    "parameter {} of {} is in the contract, but has no gradient event",
                    entry.key, entry.root
                ),
            );
        }
    }
}

/// What the gradients of one family are, counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FamilyTally {
    pub(crate) expected: usize,
    pub(crate) recorded: usize,
    pub(crate) present: usize,
    pub(crate) missing: usize,
    pub(crate) non_finite: usize,
}

/// How a family can break its rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FamilyFault {
    NonFinite,
    TooFewActive,
    NotInactive,
    TooFewConditional,
}

impl FamilyTally {
    fn of(states: &[Option<GradientState>]) -> Self {
        let mut tally = Self {
            expected: states.len(),
            ..Self::default()
        };
        states.iter().flatten().for_each(|state| tally.add(*state));
        tally
    }

    pub(crate) fn add(&mut self, state: GradientState) {
        self.recorded += 1;
        match state {
            GradientState::Present => self.present += 1,
            GradientState::Missing => self.missing += 1,
            GradientState::NonFinite => self.non_finite += 1,
            GradientState::Zero => {}
        }
    }

    /// Where this breaks `rule`. While a failed capture has not recorded every member, too few is
    /// no fault.
    pub(crate) fn faults(&self, rule: &GradientFamilyContract, failed: bool) -> Vec<FamilyFault> {
        let mut faults = Vec::new();
        if self.non_finite > 0 {
            faults.push(FamilyFault::NonFinite);
        }
        let countable = !failed || self.recorded == self.expected;
        let too_few = countable && self.present < rule.min_present;
        match rule.expectation {
            GradientFamilyExpectation::Active if too_few => faults.push(FamilyFault::TooFewActive),
            GradientFamilyExpectation::Inactive if self.recorded > self.missing => {
                faults.push(FamilyFault::NotInactive);
            }
            GradientFamilyExpectation::DataConditional if too_few && self.present > 0 => {
                faults.push(FamilyFault::TooFewConditional);
            }
            _ => {}
        }
        faults
    }
}

impl FamilyFault {
    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::NonFinite => "gradient_family_non_finite",
            Self::TooFewActive => "gradient_active_family_below_minimum",
            Self::NotInactive => "gradient_inactive_family_leakage",
            Self::TooFewConditional => "gradient_conditional_family_below_minimum",
        }
    }

    pub(crate) fn message(self, rule: &GradientFamilyContract, tally: &FamilyTally) -> String {
        let family = &rule.family;
        match self {
            Self::NonFinite => format!(
                "gradients of family {family} that are not finite: {}",
                tally.non_finite
            ),
            Self::NotInactive => format!(
                "family {family} should have no gradients, it has {}",
                tally.recorded - tally.missing
            ),
            Self::TooFewActive | Self::TooFewConditional => format!(
                "family {family} has {} non-zero gradients, its contract asks for {}",
                tally.present, rule.min_present
            ),
        }
    }
}
