//! What a capture promises about its evidence, written into its `meta` line.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail, ensure};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::trace::list;

/// First bytes of what is hashed into [`GradientContract::manifest_sha256`], so that the digest
/// of a manifest never equals a digest of anything else.
pub const GRADIENT_MANIFEST_SCHEMA: &str = "candle-graph/gradient-manifest/1";

/// How much of one kind of evidence a capture holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CoverageLevel {
    /// Nothing is promised.
    #[default]
    None,
    /// What is there is true; more may have happened.
    Partial,
    /// Everything that happened is there.
    Complete,
}

impl CoverageLevel {
    /// The level that is true once `count` observations were seen: at least `Partial` for one or
    /// more.
    pub fn with_observations(self, count: usize) -> Self {
        match count {
            0 => self,
            _ => self.max(Self::Partial),
        }
    }
}

/// How near the measured work is to what runs without a profiler.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MeasurementScope {
    /// Not said.
    #[default]
    Unknown,
    /// The work as it runs while it is profiled.
    ProfiledWork,
    /// The work as it runs in production.
    ProductionEquivalent,
}

/// One parameter whose gradient a complete capture must hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpectedGradient {
    /// The set that `key` belongs to, for example the name of a `VarMap`.
    pub root: String,
    /// The parameter's name under `root`.
    pub key: String,
    /// The [`GradientFamilyContract`] that judges it.
    pub family: String,
}

impl ExpectedGradient {
    /// An entry of the manifest.
    pub fn new(root: impl Into<String>, key: impl Into<String>, family: impl Into<String>) -> Self {
        Self {
            root: root.into(),
            key: key.into(),
            family: family.into(),
        }
    }
}

/// What the gradients of a family should look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GradientFamilyExpectation {
    /// At least `min_present` members have a non-zero gradient.
    Active,
    /// No member has a gradient at all.
    Inactive,
    /// The data decides: none present, or at least `min_present`.
    DataConditional,
}

/// The rule for one family of parameters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GradientFamilyContract {
    /// The family's name, as in [`ExpectedGradient::family`].
    pub family: String,
    /// What is expected of its gradients.
    pub expectation: GradientFamilyExpectation,
    /// How many members must be present; 0 for an inactive family.
    pub min_present: usize,
}

impl GradientFamilyContract {
    /// A family that learns in every step.
    pub fn active(family: impl Into<String>, min_present: usize) -> Self {
        Self::with(family, GradientFamilyExpectation::Active, min_present)
    }

    /// A family that is frozen.
    pub fn inactive(family: impl Into<String>) -> Self {
        Self::with(family, GradientFamilyExpectation::Inactive, 0)
    }

    /// A family that learns only where the data reaches it.
    pub fn data_conditional(family: impl Into<String>, min_present: usize) -> Self {
        Self::with(
            family,
            GradientFamilyExpectation::DataConditional,
            min_present,
        )
    }

    fn with(
        family: impl Into<String>,
        expectation: GradientFamilyExpectation,
        min_present: usize,
    ) -> Self {
        Self {
            family: family.into(),
            expectation,
            min_present,
        }
    }
}

/// The exact list of parameters of a capture with complete gradients, and the rules for them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GradientContract {
    /// `sha256:` and the digest of `expected` in hex; binds the list to its order.
    pub manifest_sha256: String,
    /// Every parameter, once.
    pub expected: Vec<ExpectedGradient>,
    /// One rule for each family named in `expected`.
    pub families: Vec<GradientFamilyContract>,
}

impl GradientContract {
    /// A contract with its digest computed.
    ///
    /// # Errors
    /// What [`Self::validate`] refuses.
    pub fn new(
        expected: Vec<ExpectedGradient>,
        families: Vec<GradientFamilyContract>,
    ) -> Result<Self> {
        let contract = Self {
            manifest_sha256: manifest_digest(&expected),
            expected,
            families,
        };
        contract.validate()?;
        Ok(contract)
    }

    /// Checks a contract that came from elsewhere.
    ///
    /// # Errors
    /// An empty list, a digest that is not the list's, blank names, a parameter or family that
    /// must not be empty or stands more than once, a family without members or without a rule,
    /// and a `min_present` that its expectation cannot have.
    pub fn validate(&self) -> Result<()> {
        ensure!(
            !self.expected.is_empty(),
            "gradient contract: `expected` must not be empty; name at least one parameter"
        );
        ensure!(
            !self.families.is_empty(),
            "gradient contract: `families` must not be empty; every family of a parameter needs a rule"
        );
        let digest = manifest_digest(&self.expected);
        ensure!(
            self.manifest_sha256 == digest,
            "gradient contract: manifest_sha256 is {:?}, but the digest of `expected` in its order is {digest:?}",
            self.manifest_sha256
        );
        let members = self.count_members()?;
        self.check_families(&members)
    }

    /// Members of each family, after every entry was found to be well named and unique.
    fn count_members(&self) -> Result<BTreeMap<&str, usize>> {
        let mut seen = BTreeSet::new();
        let mut members = BTreeMap::new();
        for entry in &self.expected {
            for (field, value) in [
                ("root", &entry.root),
                ("key", &entry.key),
                ("family", &entry.family),
            ] {
                ensure!(
                    !value.trim().is_empty(),
                    "gradient contract: {field} of entry {entry:?} must not be empty"
                );
            }
            ensure!(
                seen.insert((entry.root.as_str(), entry.key.as_str())),
                "gradient contract: parameter {:?} of root {:?} is listed more than once",
                entry.key,
                entry.root
            );
            *members.entry(entry.family.as_str()).or_insert(0) += 1;
        }
        Ok(members)
    }

    fn check_families(&self, members: &BTreeMap<&str, usize>) -> Result<()> {
        let mut ruled = BTreeSet::new();
        for rule in &self.families {
            let name = rule.family.as_str();
            ensure!(
                !name.trim().is_empty(),
                "gradient contract: a family's name must not be empty"
            );
            ensure!(
                ruled.insert(name),
                "gradient contract: family {name:?} has more than one rule"
            );
            let Some(&count) = members.get(name) else {
                bail!("gradient contract: family {name:?} has a rule but no parameter");
            };
            let allowed = match rule.expectation {
                GradientFamilyExpectation::Inactive => 0..=0,
                GradientFamilyExpectation::Active | GradientFamilyExpectation::DataConditional => {
                    1..=count
                }
            };
            ensure!(
                allowed.contains(&rule.min_present),
                "gradient contract: min_present of family {name:?} is {}, allowed are {} to {}",
                rule.min_present,
                allowed.start(),
                allowed.end()
            );
        }
        if let Some(name) = members.keys().find(|name| !ruled.contains(*name)) {
            bail!("gradient contract: family {name:?} has parameters but no rule");
        }
        Ok(())
    }
}

fn manifest_digest(expected: &[ExpectedGradient]) -> String {
    let mut hash = Sha256::new();
    hash.update(GRADIENT_MANIFEST_SCHEMA);
    hash.update([0]);
    for entry in expected {
        // The length before each text keeps `("ab", "c")` and `("a", "bc")` apart.
        for text in [&entry.root, &entry.key, &entry.family] {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        }
    }
    format!("sha256:{:x}", hash.finalize())
}

/// What a capture promises, one level for each kind of evidence.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptureContract {
    /// What was measured.
    pub measurement_scope: MeasurementScope,
    /// `op` events.
    pub operations: CoverageLevel,
    /// Whether each operation that makes an activation is linked to it by a tensor or memory
    /// event.
    #[serde(default)]
    pub activations: CoverageLevel,
    /// `tensor` events.
    #[serde(default)]
    pub tensors: CoverageLevel,
    /// `gradient` events; complete exactly when there is a `gradient_contract`.
    #[serde(default)]
    pub gradients: CoverageLevel,
    /// The parameters of complete gradients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gradient_contract: Option<GradientContract>,
    /// `memory` events.
    pub logical_memory: CoverageLevel,
    /// `device_memory` events.
    pub physical_memory: CoverageLevel,
    /// `device_interval` events.
    pub device_timing: CoverageLevel,
    /// Names that exactly one span each must have.
    #[serde(default, deserialize_with = "list::read")]
    pub required_semantic_labels: Vec<String>,
    /// Those of the required names whose work runs on a GPU.
    #[serde(
        default,
        deserialize_with = "list::read",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub gpu_expected_semantic_labels: Vec<String>,
    /// Those of the required names whose work stays on the CPU.
    #[serde(
        default,
        deserialize_with = "list::read",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub cpu_only_semantic_labels: Vec<String>,
}

impl CaptureContract {
    /// The names expected on the GPU: all required ones where none is classified.
    pub fn resolved_gpu_expected_semantic_labels(&self) -> Vec<String> {
        if self.labels_are_classified() {
            self.gpu_expected_semantic_labels.clone()
        } else {
            self.required_semantic_labels.clone()
        }
    }

    /// The names that stay on the CPU.
    pub fn resolved_cpu_only_semantic_labels(&self) -> Vec<String> {
        self.cpu_only_semantic_labels.clone()
    }

    pub(crate) fn labels_are_classified(&self) -> bool {
        !self.gpu_expected_semantic_labels.is_empty() || !self.cpu_only_semantic_labels.is_empty()
    }

    /// Why complete activations cannot be promised by this contract, if so.
    pub fn activation_contract_violation(&self) -> Option<&'static str> {
        let complete = CoverageLevel::Complete;
        let none = CoverageLevel::None;
        if self.activations != complete {
            None
        } else if self.operations != complete {
            Some("capture contract: activations are complete only where operations are complete")
        } else if self.tensors == none && self.logical_memory == none {
            Some(
                "capture contract: complete activations need tensors or logical_memory as evidence",
            )
        } else {
            None
        }
    }

    /// Checks what must hold before a capture starts.
    ///
    /// # Errors
    /// Blank or repeated labels, classes that do not divide the required labels, complete
    /// activations without their evidence, and complete gradients without a valid contract (or
    /// the other way round).
    pub fn validate(&self) -> Result<()> {
        self.check_labels()?;
        if let Some(violation) = self.activation_contract_violation() {
            bail!(violation);
        }
        match (self.gradients, &self.gradient_contract) {
            (CoverageLevel::Complete, Some(contract)) => contract.validate(),
            (CoverageLevel::Complete, None) => {
                bail!("capture contract: gradients are `complete`, which needs a gradient_contract")
            }
            (level, Some(_)) => bail!(
                "capture contract: gradients are {level:?} but there is a gradient_contract; allowed with one is only Complete"
            ),
            (_, None) => Ok(()),
        }
    }

    fn check_labels(&self) -> Result<()> {
        let required = unique_labels("required_semantic_labels", &self.required_semantic_labels)?;
        if !self.labels_are_classified() {
            return Ok(());
        }
        let gpu = unique_labels(
            "gpu_expected_semantic_labels",
            &self.gpu_expected_semantic_labels,
        )?;
        let cpu = unique_labels("cpu_only_semantic_labels", &self.cpu_only_semantic_labels)?;
        for label in gpu.union(&cpu) {
            ensure!(
                required.contains(label),
                "capture contract: label {label:?} is classified but not in required_semantic_labels"
            );
        }
        if let Some(label) = gpu.intersection(&cpu).next() {
            bail!("capture contract: label {label:?} is classified for both GPU and CPU");
        }
        if let Some(label) = required
            .iter()
            .find(|label| !gpu.contains(*label) && !cpu.contains(*label))
        {
            bail!(
                "capture contract: label {label:?} is in neither gpu_expected_semantic_labels nor cpu_only_semantic_labels; once one label is classified, all must be"
            );
        }
        Ok(())
    }
}

fn unique_labels<'a>(field: &str, labels: &'a [String]) -> Result<BTreeSet<&'a str>> {
    let mut unique = BTreeSet::new();
    for label in labels {
        ensure!(
            !label.trim().is_empty(),
            "capture contract: {field} holds the label {label:?}, which must not be empty"
        );
        ensure!(
            unique.insert(label.as_str()),
            "capture contract: {field} holds the label {label:?} more than once"
        );
    }
    Ok(unique)
}

#[cfg(test)]
#[path = "capability_tests.rs"]
mod tests;
