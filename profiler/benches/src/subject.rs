//! What is called: functions, methods and futures with and without spans, in calls that no optimiser sees through.

use std::future::Future;
use std::hint::black_box;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use candle_profiler::profile_span;

/// A call without a span.
#[inline(never)]
pub fn plain() {
    black_box(());
}

/// A span.
#[inline(never)]
#[profile_span]
pub fn annotated() {
    black_box(());
}

/// Has methods.
pub struct Model {
    /// What they give.
    pub size: u64,
}

impl Model {
    /// A method without a span.
    #[inline(never)]
    pub fn plain(&self) -> u64 {
        black_box(self.size)
    }

    /// A generic method without a span.
    #[inline(never)]
    pub fn plain_generic<T: Copy>(&self, value: T) -> T {
        black_box(value)
    }

    /// A span of a method.
    #[inline(never)]
    #[profile_span]
    pub fn method(&self) -> u64 {
        black_box(self.size)
    }

    /// A span of a generic method.
    #[inline(never)]
    #[profile_span]
    pub fn generic<T: Copy>(&self, value: T) -> T {
        black_box(value)
    }
}

/// Four nested spans.
#[inline(never)]
#[profile_span]
pub fn outermost() {
    second();
}

#[inline(never)]
#[profile_span]
fn second() {
    third();
}

#[inline(never)]
#[profile_span]
fn third() {
    annotated();
}

/// Is not ready as often as it says.
struct NotReady(u64);

impl Future for NotReady {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if self.0 == 0 {
            return Poll::Ready(());
        }
        self.0 -= 1;
        Poll::Pending
    }
}

/// A future that is pending so often.
pub async fn plain_future(polls: u64) {
    NotReady(polls).await;
}

/// The same with a span.
#[profile_span]
pub async fn annotated_future(polls: u64) {
    NotReady(polls).await;
}

/// Polls a future to its end, by calls that no optimiser sees through.
#[inline(never)]
pub fn drive(future: impl Future<Output = ()>) {
    let mut future = pin!(future);
    let mut future: Pin<&mut dyn Future<Output = ()>> = future.as_mut();
    let mut context = Context::from_waker(Waker::noop());
    while black_box(&mut future)
        .as_mut()
        .poll(&mut context)
        .is_pending()
    {}
}
