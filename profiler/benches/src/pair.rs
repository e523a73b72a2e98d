//! Work that two threads do at the same time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// A second thread, which does its share of each turn together with the thread that asks for it.
pub struct Pair {
    orders: Sender<u64>,
    times: Receiver<Duration>,
    /// How many threads have come to the start of a turn, over all turns.
    ready: Arc<AtomicU64>,
    turns: u64,
}

/// The turns that the second thread is asked to do.
pub struct Turns {
    orders: Receiver<u64>,
    times: Sender<Duration>,
    ready: Arc<AtomicU64>,
    turns: u64,
}

/// Both threads run when this returns: one that was only woken would come too late for a turn of microseconds.
fn meet(ready: &AtomicU64, turns: u64) {
    ready.fetch_add(1, Ordering::AcqRel);
    while ready.load(Ordering::Acquire) < 2 * turns {
        std::hint::spin_loop();
    }
}

impl Pair {
    /// Starts the second thread with `work`, which does all its turns.
    pub fn new(work: impl FnOnce(Turns) + Send + 'static) -> Self {
        let (orders, ordered) = channel();
        let (told, times) = channel();
        let ready = Arc::new(AtomicU64::new(0));
        let turns = Turns {
            orders: ordered,
            times: told,
            ready: Arc::clone(&ready),
            turns: 0,
        };
        std::thread::spawn(move || work(turns));
        Pair {
            orders,
            times,
            ready,
            turns: 0,
        }
    }

    /// One turn of `count` items, half of them by `mine`; the longer of the two threads' times.
    pub fn turn(&mut self, count: u64, mine: impl FnOnce(u64) -> Duration) -> Duration {
        self.turns += 1;
        if self.orders.send(count / 2).is_err() {
            return Duration::MAX;
        }
        meet(&self.ready, self.turns);
        let mine = mine(count / 2);
        mine.max(self.times.recv().unwrap_or(Duration::MAX))
    }
}

impl Turns {
    /// Does all turns until the pair is dropped.
    pub fn each(mut self, mut work: impl FnMut(u64) -> Duration) {
        while let Ok(count) = self.orders.recv() {
            self.turns += 1;
            meet(&self.ready, self.turns);
            if self.times.send(work(count)).is_err() {
                return;
            }
        }
    }
}
