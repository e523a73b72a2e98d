//! The spans of futures: whose children they are, how they end, and what stays as it was.

mod by_hand;
mod endings;
mod forms;
mod measured;
mod parents;

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

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

fn threads(number: usize) -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(number).build().expect("a runtime")
}
