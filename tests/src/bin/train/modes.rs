//! What the program can do: one function a mode.

use std::time::Duration;

use anyhow::Result;
use candle_core::{Device, Tensor};
use candle_profiler::{
    Config, configure, measure_with, measured, not_a_step, profile_span, profile_step,
    record_stats, set_rank, span,
};

use crate::model::{Model, Training, predict, train_step};

/// Trains, and prints the weights.
pub(crate) fn plain(steps: u32) -> Result<()> {
    let mut training = Training::new()?;
    train(&mut training, steps)?;
    println!("{}", training.model.fingerprint()?);
    Ok(())
}

/// Keeps stderr for itself while it trains.
pub(crate) fn stderr_held(steps: u32) -> Result<()> {
    let _held = std::io::stderr().lock();
    plain(steps)
}

fn train(training: &mut Training, steps: u32) -> Result<()> {
    for _ in 0..steps {
        let (x, classes) = training.batch()?;
        train_step(training, &x, &classes)?;
    }
    Ok(())
}

/// Asks the untrained model.
pub(crate) fn infer(calls: u32) -> Result<()> {
    let mut training = Training::new()?;
    for _ in 0..calls {
        let (x, _) = training.batch()?;
        let classes = predict(&training.model, &x)?;
        println!("{:?}", classes.to_vec1::<u32>()?);
    }
    Ok(())
}

/// Trains and asks in turn: two measured names.
pub(crate) fn both(steps: u32) -> Result<()> {
    let mut training = Training::new()?;
    for _ in 0..steps {
        train(&mut training, 1)?;
        let (x, _) = training.batch()?;
        predict(&training.model, &x)?;
    }
    Ok(())
}

#[measured(infer, name = "{phase}", items = tokens, tags(length = tokens))]
fn generate(phase: &str, model: &Model, x: &Tensor, tokens: usize) -> Result<()> {
    println!("{phase} {tokens}");
    model.forward(x)?;
    Ok(())
}

/// One call of `prefill`, then calls of `decode`, by one function.
pub(crate) fn phases(calls: u32) -> Result<()> {
    let mut training = Training::new()?;
    for call in 0..calls {
        let (x, _) = training.batch()?;
        let (phase, tokens) = if call == 0 {
            ("prefill", 96)
        } else {
            ("decode", 1)
        };
        generate(phase, &training.model, &x, tokens)?;
    }
    Ok(())
}

#[measured]
fn failing_step(training: &mut Training, step: u32) -> Result<()> {
    let _span = span("load");
    let (x, classes) = training.batch()?;
    anyhow::ensure!(step != 2, "batch {step} is empty");
    training.learn(&x, &classes)?;
    Ok(())
}

/// The second step gives `Err`, and the program goes on.
pub(crate) fn error(steps: u32) -> Result<()> {
    let mut training = Training::new()?;
    for step in 1..=steps {
        if let Err(error) = failing_step(&mut training, step) {
            println!("step {step}: {error}");
        }
    }
    Ok(())
}

#[measured]
fn panicking_step(training: &mut Training, step: u32) -> Result<()> {
    let _span = span("load");
    let (x, classes) = training.batch()?;
    assert!(step != 2, "no gradient in step {step}");
    training.learn(&x, &classes)?;
    Ok(())
}

/// The second step panics.
pub(crate) fn panic(steps: u32) -> Result<()> {
    let mut training = Training::new()?;
    for step in 1..=steps {
        panicking_step(&mut training, step)?;
    }
    Ok(())
}

/// The second step panics; the program catches that and goes on.
pub(crate) fn panic_caught(steps: u32) -> Result<()> {
    let mut training = Training::new()?;
    for step in 1..=steps {
        let work = std::panic::AssertUnwindSafe(|| panicking_step(&mut training, step));
        let done = std::panic::catch_unwind(work);
        println!("step {step}: {}", if done.is_ok() { "ok" } else { "lost" });
    }
    Ok(())
}

#[profile_step(forward)]
fn give_up(step: u32) {
    if step == 2 {
        std::process::exit(3);
    }
}

#[measured]
fn exiting_step(step: u32) {
    let _span = span("load");
    give_up(step);
}

/// The second step exits.
pub(crate) fn exit(steps: u32) -> Result<()> {
    for step in 1..=steps {
        println!("step {step}");
        exiting_step(step);
    }
    Ok(())
}

#[measured]
fn endless_step(turn: u32) {
    if turn == 1 {
        return;
    }
    for number in 0..100 {
        let _span = span(format!("work {number}"));
    }
    let _open = span("wait");
    std::thread::sleep(Duration::from_millis(250));
    println!("ready");
    loop {
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The second step never ends.
pub(crate) fn hang() -> Result<()> {
    endless_step(1);
    endless_step(2);
    Ok(())
}

#[measured(step = step, tags(half = step / 2))]
fn numbered_step(training: &mut Training, step: u64) -> Result<()> {
    println!("step {step}");
    let (x, classes) = training.batch()?;
    training.learn(&x, &classes)?;
    Ok(())
}

/// The steps have numbers of their own: 0, 10, 20, …
pub(crate) fn numbered(steps: u32) -> Result<()> {
    let mut training = Training::new()?;
    for step in 0..u64::from(steps) {
        numbered_step(&mut training, step * 10)?;
    }
    Ok(())
}

#[measured]
fn accumulating_step(training: &mut Training, turn: u32) -> Result<()> {
    let (x, classes) = training.batch()?;
    if turn % 2 == 1 {
        not_a_step();
        training.model.forward(&x)?;
        return Ok(());
    }
    training.learn(&x, &classes)?;
    Ok(())
}

/// Only every second call is a step.
pub(crate) fn accumulate(calls: u32) -> Result<()> {
    let mut training = Training::new()?;
    for turn in 1..=calls {
        accumulating_step(&mut training, turn)?;
    }
    Ok(())
}

#[measured]
fn hollow_step(call: u32, full_from: u32) {
    if call >= full_from {
        let _span = span("work");
    }
}

/// Calls before `full_from` hold nothing.
pub(crate) fn empty(calls: u32, full_from: u32) -> Result<()> {
    for call in 1..=calls {
        hollow_step(call, full_from);
    }
    Ok(())
}

/// Eight threads, each with a model of its own, call one measured function.
pub(crate) fn threads(steps: u32) -> Result<()> {
    let workers: Vec<_> = (0..8)
        .map(|worker| {
            let name = format!("worker {worker}");
            let work = move || -> Result<String> {
                let mut training = Training::new()?;
                train(&mut training, steps)?;
                Ok(training.model.fingerprint()?)
            };
            std::thread::Builder::new().name(name).spawn(work)
        })
        .collect::<std::io::Result<_>>()?;
    for worker in workers {
        let weights = worker.join().map_err(|_| anyhow::anyhow!("a panic"))??;
        println!("{weights}");
    }
    Ok(())
}

#[profile_span]
fn lonely() {}

/// Annotated code without a measured region.
pub(crate) fn unmeasured(calls: u32) -> Result<()> {
    for _ in 0..calls {
        lonely();
    }
    Ok(())
}

/// No annotated code runs.
pub(crate) fn untouched() -> Result<()> {
    println!("{:?}", Device::Cpu.location());
    Ok(())
}

fn config() -> Result<Config> {
    Ok(Config::new()
        .folder("configured")
        .steps("4")?
        .tag("by", "hand"))
}

/// Settings made in the program.
pub(crate) fn configured(steps: u32) -> Result<()> {
    configure(config()?)?;
    plain(steps)
}

/// Settings made too late.
pub(crate) fn configured_late(steps: u32) -> Result<()> {
    lonely();
    match configure(config()?) {
        Ok(()) => println!("configured"),
        Err(error) => println!("refused: {error}"),
    }
    plain(steps)
}

/// The calls after the fifth are captured by wish, by a name known and by one that is not yet.
pub(crate) fn capture_next(steps: u32) -> Result<()> {
    candle_profiler::capture_next("wished", 2);
    let mut training = Training::new()?;
    train(&mut training, 5)?;
    candle_profiler::capture_next("train_step", 2);
    train(&mut training, steps - 5)?;
    for _ in 0..3 {
        measure_with("wished", || {
            let _span = span("work");
            Ok::<(), std::fmt::Error>(())
        })?;
    }
    Ok(())
}

/// The program knows its rank better than its launcher.
pub(crate) fn ranked(steps: u32) -> Result<()> {
    set_rank(6, 8);
    plain(steps)
}

#[measured]
fn burst_step() {
    // 6 × (1 + 4 × (1 + 5)) = 150 spans, nested three deep.
    for _ in 0..6 {
        burst_outer();
    }
}

#[profile_span]
fn burst_outer() {
    for _ in 0..4 {
        burst_middle();
    }
}

#[profile_span]
fn burst_middle() {
    for _ in 0..5 {
        burst_inner();
    }
}

#[profile_span]
fn burst_inner() {
    std::hint::black_box(());
}

/// Steps of 150 spans.
pub(crate) fn burst(steps: u32) -> Result<()> {
    for _ in 0..steps {
        burst_step();
    }
    Ok(())
}

#[measured]
fn flood_step() {
    for _ in 0..2000 {
        burst_inner();
    }
}

/// Steps of 2,000 spans of one function.
pub(crate) fn flood(steps: u32) -> Result<()> {
    for _ in 0..steps {
        flood_step();
    }
    Ok(())
}

#[measured]
async fn awaited_step(model: &Model, x: &Tensor) -> Result<()> {
    asked(model, x).await?;
    let _span = span("after");
    Ok(())
}

#[profile_span]
async fn asked(model: &Model, x: &Tensor) -> Result<()> {
    std::future::ready(()).await;
    model.forward(x)?;
    Ok(())
}

/// The steps are futures.
pub(crate) fn awaited(steps: u32) -> Result<()> {
    let mut training = Training::new()?;
    for _ in 0..steps {
        let (x, _) = training.batch()?;
        let mut step = std::pin::pin!(awaited_step(&training.model, &x));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        while step.as_mut().poll(&mut context).is_pending() {}
    }
    Ok(())
}

#[measured]
fn wished_step(real: bool) {
    let _span = span("inside");
    if !real {
        not_a_step();
    }
}

/// The next call is asked for, but the first one is no step.
pub(crate) fn wish_taken_back(steps: u32) -> Result<()> {
    candle_profiler::capture_next("wished_step", 1);
    for step in 0..steps {
        wished_step(step > 0);
    }
    Ok(())
}

#[measured]
#[record_stats("samples")]
fn sampling_step(samples: &Tensor) -> Tensor {
    samples.clone()
}

/// The steps look at sixteen numbers that are easy to tell from others.
pub(crate) fn samples(steps: u32) -> Result<()> {
    let samples: Vec<f32> = (0..16u16)
        .map(|number| 100_003.0 + 1009.0 * f32::from(number))
        .collect();
    let samples = Tensor::new(samples, &Device::Cpu)?;
    for _ in 0..steps {
        let _ = sampling_step(&samples);
    }
    Ok(())
}

/// Each step keeps 4 MiB more.
pub(crate) fn leak(steps: u32) -> Result<()> {
    let mut training = Training::new()?;
    let mut kept = Vec::new();
    for _ in 0..steps {
        train(&mut training, 1)?;
        kept.push(std::hint::black_box(vec![1u8; 4 << 20]));
    }
    Ok(())
}
