//! What a run does (train or infer) and which part of a step a span belongs to.

use serde::{Deserialize, Serialize};

/// Whether the captured run trains a model or only asks it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionPhase {
    /// Gradients are taken and variables move.
    Train,
    /// Only the forward direction runs.
    Infer,
}

impl ExecutionPhase {
    /// The word that stands in the trace: `train` or `infer`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Infer => "infer",
        }
    }

    /// Reads a phase as people write it: `train`, `training`, `infer`, `inference`, `eval`,
    /// `evaluate`, in any case.
    pub fn parse(value: &str) -> Option<Self> {
        match normalized(value).as_str() {
            "train" | "training" => Some(Self::Train),
            "infer" | "inference" | "eval" | "evaluate" => Some(Self::Infer),
            _ => None,
        }
    }
}

/// The part of a training step that a span does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionStep {
    /// From inputs to the loss or the answer.
    Forward,
    /// From the loss to the gradients.
    Backward,
    /// From the gradients to new variables.
    Optimizer,
}

impl ExecutionStep {
    /// The word that stands in the trace: `forward`, `backward` or `optimizer`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Backward => "backward",
            Self::Optimizer => "optimizer",
        }
    }

    /// Reads a step as people write it: `forward`, `fwd`, `backward`, `backward_pass`, `bwd`,
    /// `backprop`, `optimizer`, `optim`, `step`, in any case, with `-` or `_`.
    pub fn parse(value: &str) -> Option<Self> {
        match normalized(value).as_str() {
            "forward" | "fwd" => Some(Self::Forward),
            "backward" | "backward_pass" | "bwd" | "backprop" => Some(Self::Backward),
            "optimizer" | "optim" | "step" => Some(Self::Optimizer),
            _ => None,
        }
    }
}

fn normalized(value: &str) -> String {
    value.replace('-', "_").to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_in_their_usual_spellings() {
        assert_eq!(
            ExecutionPhase::parse("Training"),
            Some(ExecutionPhase::Train)
        );
        assert_eq!(ExecutionPhase::parse("EVAL"), Some(ExecutionPhase::Infer));
        assert_eq!(ExecutionPhase::parse("test"), None);
        assert_eq!(
            ExecutionStep::parse("backward-pass"),
            Some(ExecutionStep::Backward)
        );
        assert_eq!(
            ExecutionStep::parse("optim"),
            Some(ExecutionStep::Optimizer)
        );
        assert_eq!(ExecutionStep::parse("sideways"), None);
    }

    #[test]
    fn the_written_word_reads_back() {
        for phase in [ExecutionPhase::Train, ExecutionPhase::Infer] {
            assert_eq!(ExecutionPhase::parse(phase.as_str()), Some(phase));
        }
        for step in [
            ExecutionStep::Forward,
            ExecutionStep::Backward,
            ExecutionStep::Optimizer,
        ] {
            assert_eq!(ExecutionStep::parse(step.as_str()), Some(step));
        }
    }
}
