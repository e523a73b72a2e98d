//! Steps that end in every way a program can end, while a future is open and another thread records.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use candle_profiler::{current, measured, profile_span, span};

#[profile_span]
async fn held() {
    drop(span("inside"));
    std::future::pending::<()>().await;
}

#[profile_span]
fn loaded() {
    std::hint::black_box(());
}

/// The other thread records until it is told to stop, which most ends never do.
static STOP: AtomicBool = AtomicBool::new(false);

fn worker(ready: &mpsc::Sender<()>, panics: bool) {
    let _span = span("worker");
    for _ in 0..50 {
        loaded();
    }
    let _ = ready.send(());
    if panics {
        std::thread::sleep(Duration::from_millis(20));
        panic!("no batch");
    }
    while !STOP.load(Ordering::Relaxed) {
        drop(span("tick"));
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The second of two steps ends as `how` says.
pub(crate) fn run(how: &str) -> Result<()> {
    if how == "dropped" {
        for number in [1, 2] {
            let mut step = Box::pin(dropped_step(number));
            let _ = step.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        }
        STOP.store(true, Ordering::Relaxed);
        return Ok(());
    }
    step(1, how)?;
    let ended = step(2, how);
    if how != "thread" {
        STOP.store(true, Ordering::Relaxed);
    }
    ended
}

#[measured]
fn step(number: u32, how: &str) -> Result<()> {
    if number == 1 {
        return Ok(());
    }
    let _outer = span("outer");
    let mut future = pin!(held());
    work(future.as_mut(), how == "panic-elsewhere")?;
    let _last = span("last");
    end(how)
}

/// A step that waits for what never comes.
#[measured(name = "train::ends::step")]
async fn dropped_step(number: u32) -> Result<()> {
    if number == 1 {
        return Ok(());
    }
    let _outer = span("outer");
    let mut future = pin!(held());
    work(future.as_mut(), false)?;
    let _last = span("last");
    std::future::pending().await
}

fn work(future: Pin<&mut impl Future<Output = ()>>, panics: bool) -> Result<()> {
    for number in 0..100 {
        drop(span(format!("work {number}")));
    }
    let polled = future.poll(&mut Context::from_waker(Waker::noop()));
    assert!(polled.is_pending());
    let (ready, is_ready) = mpsc::channel();
    let handle = current();
    std::thread::spawn(move || handle.run(|| worker(&ready, panics)));
    is_ready.recv()?;
    // Longer than a killed process may lose.
    let before = Instant::now();
    std::thread::sleep(Duration::from_millis(150));
    if !panics {
        wait_for_the_writer(before.elapsed());
    }
    Ok(())
}

/// Says `late` where the other thread's ticks, and with them all that came before, are not in the file yet; and `busy`
/// where this thread did not have its turn in time either, on a machine that has other work.
fn wait_for_the_writer(slept: Duration) {
    let is_written = || {
        let trace = std::fs::read_to_string("traces/train-ends-step-step2.jsonl.partial");
        trace.is_ok_and(|trace| trace.contains("\"tick\""))
    };
    if is_written() {
        return;
    }
    match slept > Duration::from_millis(155) {
        true => println!("busy"),
        false => println!("late"),
    }
    for _ in 0..200 {
        std::thread::sleep(Duration::from_millis(50));
        if is_written() {
            return;
        }
    }
}

fn end(how: &str) -> Result<()> {
    match how {
        "return" | "thread" | "panic-elsewhere" => Ok(()),
        "err" => bail!("no more data"),
        "panic" => panic!("a weight is lost"),
        "panic-abort" => {
            // A panic that may not unwind aborts, as every panic does in a program built that way.
            extern "C" fn cannot_unwind() {
                panic!("a weight is lost");
            }
            cannot_unwind();
            Ok(())
        }
        "exit" => std::process::exit(3),
        "abort" => std::process::abort(),
        "allocation" => {
            let too_much: Vec<u8> = Vec::with_capacity(isize::MAX as usize);
            println!("{}", too_much.capacity());
            Ok(())
        }
        #[cfg(unix)]
        "SIGTERM" => signal(15),
        #[cfg(unix)]
        "SIGINT" => signal(2),
        #[cfg(unix)]
        "SIGKILL" => signal(9),
        _ => bail!("there is no end {how}"),
    }
}

#[cfg(unix)]
fn signal(number: i32) -> Result<()> {
    unsafe extern "C" {
        /// POSIX: a signal to this process.
        safe fn raise(signal: i32) -> i32;
    }
    raise(number);
    bail!("signal {number} was survived");
}
