//! What threads share beside each other: the standard library's, and loom's in the test that tries the orders in which
//! threads may run and see each other's writes.

#[cfg(all(test, loom))]
pub(super) use loom::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicPtr, AtomicU64},
};
#[cfg(not(all(test, loom)))]
pub(super) use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicPtr, AtomicU64},
};

use super::stream::Record;

#[cfg(all(test, loom))]
type Shared = loom::cell::UnsafeCell<Record>;
#[cfg(not(all(test, loom)))]
type Shared = std::cell::UnsafeCell<Record>;

/// Room for one record in memory that a producer and a consumer share.
#[repr(transparent)]
pub(crate) struct Slot(Shared);

// SAFETY: a slot is written by the one producer before it publishes the slot and read by the one consumer after; the
// pointers inside are only tagged numbers until then.
unsafe impl Sync for Slot {}
// SAFETY: as above; nothing in a slot belongs to a thread.
unsafe impl Send for Slot {}

impl Slot {
    pub(super) fn new(record: Record) -> Self {
        Self(Shared::new(record))
    }

    /// # Safety
    /// The slot is in memory that only this thread writes to, and not published yet.
    #[inline(always)]
    pub(super) unsafe fn write(slot: *mut Slot, record: Record) {
        #[cfg(not(all(test, loom)))]
        // SAFETY: as the caller promises; a slot is a record.
        unsafe {
            slot.cast::<Record>().write(record);
        }
        #[cfg(all(test, loom))]
        // SAFETY: as the caller promises.
        unsafe {
            (*slot).0.with_mut(|to| to.write(record));
        }
    }

    /// # Safety
    /// The slot has been published and its producer does not write to it any more.
    pub(super) unsafe fn read(slot: *mut Slot) -> Record {
        #[cfg(not(all(test, loom)))]
        // SAFETY: as the caller promises; a slot is a record.
        return unsafe { slot.cast::<Record>().read() };
        #[cfg(all(test, loom))]
        // SAFETY: as the caller promises.
        unsafe {
            (*slot).0.with(|from| from.read())
        }
    }
}
