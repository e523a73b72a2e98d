//! What `.ci/instructions` counts the instructions of.
//!
//! `instructions KIND COUNT` makes so many calls with the profiler off, `instructions KIND COUNT FOLDER` makes them while
//! a capture is open that goes into the folder.

use std::future::Future;
use std::hint::black_box;
use std::path::Path;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use anyhow::{Context as _, Result, bail};
use candle_profiler::{measured, profile_span, profile_step, record_scalar};

#[inline(never)]
fn plain() {
    black_box(());
}

#[inline(never)]
#[profile_span]
fn span() {
    black_box(());
}

#[inline(never)]
#[profile_step(forward, name = "block {index}")]
fn named(index: u64) -> u64 {
    black_box(index)
}

#[inline(never)]
#[record_scalar("value")]
fn recorded(value: f64) -> f64 {
    black_box(value)
}

struct Model;

impl Model {
    #[inline(never)]
    #[profile_span]
    fn method(&self) {
        black_box(self);
    }

    #[inline(never)]
    #[profile_span]
    fn generic<T: Copy>(&self, value: T) -> T {
        black_box(value)
    }
}

#[inline(never)]
#[profile_span]
fn outermost() {
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
    span();
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

async fn plain_future(polls: u64) {
    NotReady(polls).await;
}

#[profile_span]
async fn future(polls: u64) {
    NotReady(polls).await;
}

/// Polls to the end, by calls that no optimiser sees through.
#[inline(never)]
fn drive(future: impl Future<Output = ()>) {
    let mut future = pin!(future);
    let mut future: Pin<&mut dyn Future<Output = ()>> = future.as_mut();
    let mut context = Context::from_waker(Waker::noop());
    while black_box(&mut future)
        .as_mut()
        .poll(&mut context)
        .is_pending()
    {}
}

fn times(count: u64, mut f: impl FnMut()) {
    for _ in 0..count {
        f();
    }
}

/// The calls; what runs in here is counted, and nothing else.
#[inline(never)]
fn counted(kind: &str, count: u64) -> Result<()> {
    match kind {
        "plain" => times(count, plain),
        "span" => times(count, span),
        "named" => times(count, || {
            named(3);
        }),
        "recorded" => times(count, || {
            recorded(0.5);
        }),
        "method" => times(count, || Model.method()),
        "generic" => times(count, || {
            Model.generic(7u32);
        }),
        "nested" => times(count, outermost),
        "plain-poll" => drive(plain_future(count)),
        "poll" => drive(future(count)),
        "plain-future" => times(count, || drive(plain_future(0))),
        "future" => times(count, || drive(future(0))),
        _ => bail!("there is no kind {kind}"),
    }
    Ok(())
}

#[measured]
fn capturing(kind: &str, count: u64) -> Result<()> {
    counted(kind, count)
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (kind, count, folder) = match arguments.as_slice() {
        [kind, count] => (kind, count, None),
        [kind, count, folder] => (kind, count, Some(folder)),
        _ => bail!("instructions KIND COUNT [FOLDER]"),
    };
    let count = count.parse().context("COUNT")?;
    match folder {
        None => counted(kind, count),
        Some(folder) => {
            benches::capture_every_call(Path::new(folder))?;
            capturing(kind, count)
        }
    }
}
