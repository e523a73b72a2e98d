//! Statistics of tensors that are not on the CPU: the device reduces each at once, and is waited for once, when the
//! region ends. Of the tensor itself nothing is kept.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use candle_core::{DType, Result, Tensor};

use super::alarms::{self, Which};
use super::stats::{self, Pending};
use crate::nonfinite::Found;
use crate::record::Evidence;

/// One tensor's statistics, to be told at the end.
pub(crate) struct Later {
    label: String,
    dims: Vec<usize>,
    dtype: DType,
    which: Which,
    pending: Mutex<Option<Pending>>,
    told: OnceLock<Told>,
}

/// What is written of it.
type Told = Mutex<Option<Evidence>>;

/// Whether a tensor's statistics have to wait.
pub(super) fn waits(tensor: &Tensor) -> bool {
    #[cfg(test)]
    if tests::ALL_WAIT.get() {
        return true;
    }
    !tensor.device().is_cpu()
}

impl Later {
    /// Starts the reduction.
    ///
    /// # Errors
    /// What the device reports.
    pub(super) fn begin(label: &str, which: Which, tensor: &Tensor) -> Result<Arc<Self>> {
        Ok(Arc::new(Self {
            label: label.to_owned(),
            dims: tensor.dims().to_vec(),
            dtype: tensor.dtype(),
            which,
            pending: Mutex::new(Some(stats::begin(tensor)?)),
            told: OnceLock::new(),
        }))
    }

    pub(crate) fn label(&self) -> &str {
        &self.label
    }

    /// What there is to tell, once.
    pub(crate) fn take(&self) -> Evidence {
        let told = self.told.get().and_then(|told| {
            let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
            told.take()
        });
        told.unwrap_or_else(|| {
            let label = &self.label;
            Evidence::Note(format!(
                "no statistics of {label}: the region ended before they were read back"
            ))
        })
    }

    fn tell(&self, statistics: Result<stats::Statistics>) -> Option<Found> {
        let (evidence, found) = match statistics {
            Ok(statistics) => alarms::evidence(
                &self.label,
                self.which,
                (&self.dims, self.dtype),
                None,
                statistics,
            ),
            Err(error) => {
                let label = &self.label;
                let note = format!("no statistics of {label}: {error}");
                (Evidence::Note(note), None)
            }
        };
        let _ = self.told.set(Mutex::new(Some(evidence)));
        found
    }
}

/// Reads all results back; gives the first value that is not finite.
pub(crate) fn read_back(all: &[Arc<Later>]) -> Option<Found> {
    let (mut waiting, mut pending) = (Vec::new(), Vec::new());
    for later in all {
        let begun = later
            .pending
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(begun) = begun {
            waiting.push(later);
            pending.push(begun);
        }
    }
    let mut first = None;
    for (later, statistics) in waiting.into_iter().zip(stats::read_back(pending)) {
        let found = later.tell(statistics);
        first = first.or(found);
    }
    first
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use candle_core::{Device, Tensor};

    use super::*;
    use crate::record::{Name, RecordSite};

    /// What two records of one tensor have in common.
    type Figures = (String, u64, f64, Option<bool>, Option<Vec<usize>>);

    thread_local! {
        /// Tensors on the CPU are taken for a device's, too.
        pub(super) static ALL_WAIT: Cell<bool> = const { Cell::new(false) };
    }

    #[test]
    fn what_is_read_back_at_the_end_is_what_is_there_at_once() {
        let device = Device::Cpu;
        let tensors = [
            Tensor::new(&[3f32, -4.0, f32::NAN, 0.0], &device).unwrap(),
            Tensor::arange(0f64, 6000.0, &device)
                .unwrap()
                .reshape((60, 100))
                .unwrap()
                .t()
                .unwrap(),
            Tensor::new(&[[1f32], [f32::NEG_INFINITY]], &device).unwrap(),
        ];
        let site = RecordSite(Name::Text("a"), file!(), line!(), false, Name::Text(""));
        let mut at_once = Vec::new();
        let mut later = Vec::new();
        for (tensor, label) in tensors.iter().zip(["a", "b", "c"]) {
            let found = super::super::evidence(&site, label, tensor, &mut |evidence| {
                at_once.push(evidence);
            });
            assert_eq!(found.is_some(), label == "a");
            ALL_WAIT.set(true);
            let found = super::super::evidence(&site, label, tensor, &mut |evidence| {
                later.push(evidence);
            });
            ALL_WAIT.set(false);
            assert!(found.is_none(), "nothing is known yet");
        }
        let waiting: Vec<Arc<Later>> = later
            .iter()
            .filter_map(|evidence| match evidence {
                Evidence::Later(later) => Some(Arc::clone(later)),
                _ => None,
            })
            .collect();
        assert_eq!(waiting.len(), 3);
        let found = read_back(&waiting).expect("the NaN");
        assert!(
            found.what.starts_with("a (f32 [4]): 1 of 4"),
            "{}",
            found.what
        );
        let at_once: Vec<_> = at_once.into_iter().filter_map(statistics).collect();
        let told: Vec<_> = waiting
            .iter()
            .map(|later| later.take())
            .filter_map(statistics)
            .collect();
        assert_eq!(told, at_once);
        assert!(statistics(waiting[0].take()).is_none(), "each is told once");
    }

    fn statistics(evidence: Evidence) -> Option<Figures> {
        match evidence {
            Evidence::Statistics { event, alarm, .. } => {
                let first = event
                    .extra
                    .as_ref()
                    .and_then(|extra| extra.first_non_finite.clone());
                Some((event.label, event.non_finite, event.abs_max, alarm, first))
            }
            _ => None,
        }
    }
}
