//! The exact list of gradients that a region promises.

use candle_core::TensorId;

use crate::capability::GradientContract;
use crate::instrument::candle::GradientCapturePlan;

/// What is kept of a plan while its region is captured: no variable.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) root: String,
    pub(crate) entries: Vec<(String, TensorId)>,
    pub(crate) contract: GradientContract,
}

impl Plan {
    pub(crate) fn of(plan: &GradientCapturePlan) -> Self {
        let entries = plan.entries().iter();
        Self {
            root: plan.root().to_owned(),
            entries: entries
                .map(|(key, var)| (key.clone(), var.as_tensor().id()))
                .collect(),
            contract: plan.contract().clone(),
        }
    }
}
