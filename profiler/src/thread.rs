//! Which thread this is.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

static NEXT: AtomicU64 = AtomicU64::new(1);

thread_local! {
    static KEY: Cell<u64> = const { Cell::new(0) };
}

/// A number that no other thread of this process has or ever had, unlike the system's, which comes
/// back once a thread is gone.
pub(crate) fn thread_key() -> u64 {
    KEY.with(|key| {
        if key.get() == 0 {
            key.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        key.get()
    })
}

/// Takes a lock that another thread may never give back, for example in the child of a fork.
pub(crate) fn lock_until<T>(mutex: &Mutex<T>, until: Instant) -> Option<MutexGuard<'_, T>> {
    loop {
        match mutex.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) if Instant::now() >= until => return None,
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_its_key_and_shares_it_with_none() {
        let here = thread_key();
        assert_eq!(here, thread_key());
        let there = std::thread::spawn(thread_key).join().unwrap();
        let later = std::thread::spawn(thread_key).join().unwrap();
        assert_ne!(here, there);
        assert_ne!(there, later);
    }
}
