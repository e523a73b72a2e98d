//! How many bytes of storages were alive at once.

use std::collections::HashMap;
use std::hash::Hash;

use super::memory::MemoryAction;

/// Storages that come and go, told in any order. `K` names one.
#[derive(Debug)]
pub(crate) struct Storages<K> {
    numbers: HashMap<K, u32>,
    moments: Vec<Moment>,
}

#[derive(Debug)]
struct Moment {
    timestamp_ns: u64,
    bytes: u64,
    storage: u32,
    action: MemoryAction,
}

impl<K> Default for Storages<K> {
    fn default() -> Storages<K> {
        Storages {
            numbers: HashMap::new(),
            moments: Vec::new(),
        }
    }
}

impl<K: Eq + Hash> Storages<K> {
    /// What happened to a storage, and when.
    pub(crate) fn take(&mut self, storage: K, action: MemoryAction, bytes: u64, timestamp_ns: u64) {
        let next = self.numbers.len() as u32;
        let storage = *self.numbers.entry(storage).or_insert(next);
        self.moments.push(Moment {
            timestamp_ns,
            bytes,
            storage,
            action,
        });
    }

    /// The most bytes that were alive at once; none where no storage came to life.
    pub(crate) fn peak(mut self) -> Option<u64> {
        self.moments.sort_by_key(|moment| moment.timestamp_ns);
        let mut live: HashMap<u32, u64> = HashMap::new();
        let mut total = 0u64;
        let mut peak = None;
        // What happens at one time counts together, so that a hand-over is no peak.
        let at_once = |a: &Moment, b: &Moment| a.timestamp_ns == b.timestamp_ns;
        for moments in self.moments.chunk_by(at_once) {
            for moment in moments {
                match moment.action {
                    MemoryAction::Alloc => {
                        peak = peak.or(Some(0));
                        live.entry(moment.storage).or_insert_with(|| {
                            total = total.saturating_add(moment.bytes);
                            moment.bytes
                        });
                    }
                    MemoryAction::Free => {
                        let freed = live.remove(&moment.storage);
                        total = total.saturating_sub(freed.unwrap_or(0));
                    }
                }
            }
            peak = peak.map(|so_far: u64| so_far.max(total));
        }
        peak
    }
}
