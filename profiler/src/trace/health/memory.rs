//! Lives of storages: what is freed was allocated before, with the same size.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use super::Issues;
use crate::trace::document::TraceDocument;
use crate::trace::memory::MemoryAction;

pub(super) fn judge(doc: &TraceDocument, issues: &mut Issues) {
    let mut in_time: Vec<_> = doc.memory.iter().collect();
    in_time.sort_by_key(|event| event.timestamp_ns);
    let mut lives = StorageLives::default();
    for event in in_time {
        let storage = (event.device.as_str(), event.storage_id.as_str());
        let fault = lives.apply(storage, event.tensor_id.as_str(), event.bytes, event.action);
        if let Some(fault) = fault {
            issues.error(
                fault.code(),
                format!(
                    "storage {} of tensor {} on {} at {} ns {}",
                    event.storage_id,
                    event.tensor_id,
                    event.device,
                    event.timestamp_ns,
                    fault.words()
                ),
            );
        }
    }
    let live = lives.live.len();
    if live > 0 {
        issues.warning(
            "retained_allocations",
            match live {
                1 => "1 storage was never freed".to_owned(),
                live => format!("{live} storages were never freed"),
            },
        );
    }
}

/// What can be wrong with one memory event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StorageFault {
    Unpaired,
    Size,
    Repeated,
}

impl StorageFault {
    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::Unpaired => "unpaired_free",
            Self::Size => "allocation_size_mismatch",
            Self::Repeated => "duplicate_allocation",
        }
    }

    /// Completes a sentence that starts with the storage.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Unpaired => "is freed, but was not live",
            Self::Size => "does not have the size that it was allocated with",
            Self::Repeated => "was allocated for this tensor already",
        }
    }
}

/// Which storages live, by (device, storage id), while events are applied in order of time.
/// Several tensors may share one; the first free ends it.
pub(crate) struct StorageLives<S, T> {
    live: HashMap<S, (u64, HashSet<T>)>,
}

impl<S, T> Default for StorageLives<S, T> {
    fn default() -> Self {
        Self {
            live: HashMap::new(),
        }
    }
}

impl<S: Hash + Eq, T: Hash + Eq> StorageLives<S, T> {
    /// What would be wrong with this event next.
    pub(crate) fn fault(
        &self,
        storage: &S,
        tensor: &T,
        bytes: u64,
        action: MemoryAction,
    ) -> Option<StorageFault> {
        match (self.live.get(storage), action) {
            (None, MemoryAction::Alloc) => None,
            (None, MemoryAction::Free) => Some(StorageFault::Unpaired),
            (Some((size, _)), _) if *size != bytes => Some(StorageFault::Size),
            (Some((_, tensors)), MemoryAction::Alloc) => {
                tensors.contains(tensor).then_some(StorageFault::Repeated)
            }
            (Some(_), MemoryAction::Free) => None,
        }
    }

    /// Lets the event happen, and says what is wrong with it.
    pub(crate) fn apply(
        &mut self,
        storage: S,
        tensor: T,
        bytes: u64,
        action: MemoryAction,
    ) -> Option<StorageFault> {
        let fault = self.fault(&storage, &tensor, bytes, action);
        match action {
            // Of the wrong size, it is no event of the storage that lives.
            MemoryAction::Alloc if fault == Some(StorageFault::Size) => {}
            MemoryAction::Alloc => {
                let (_, tensors) = self
                    .live
                    .entry(storage)
                    .or_insert_with(|| (bytes, HashSet::new()));
                tensors.insert(tensor);
            }
            MemoryAction::Free => {
                self.live.remove(&storage);
            }
        }
        fault
    }
}
