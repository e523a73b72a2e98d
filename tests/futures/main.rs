//! The spans of futures: whose children they are, how they end, and what stays as it was.

mod by_hand;
mod endings;
mod forms;
mod measured;
mod parents;

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use candle_profiler::profile_span;
use tokio::runtime::{Builder, Runtime};

/// Polls a future once.
fn poll_once<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Polls a future on this thread until it is done.
fn wait<F: Future>(future: F) -> F::Output {
    let mut future = Box::pin(future);
    loop {
        if let Poll::Ready(output) = poll_once(future.as_mut()) {
            return output;
        }
    }
}

/// Is pending once, and asks to be polled again at once.
fn turn() -> impl Future<Output = ()> + Send {
    let mut polled = false;
    poll_fn(move |context| {
        if std::mem::replace(&mut polled, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
}

#[profile_span(name = "leaf {id}")]
fn leaf(id: u32) {}

#[profile_span(name = "worker {id}")]
async fn worker(id: u32, turns: u32) {
    for _ in 0..turns {
        leaf(id);
        turn().await;
    }
}

fn threads(number: usize) -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(number).build().expect("a runtime")
}
