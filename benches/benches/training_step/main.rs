//! A training step of the digits example: plain, annotated, and with the same written by hand for candle-graph, in turn.
//!
//! ```text
//! cargo bench --workspace --bench training_step
//! ```

mod ours;
mod plain;
mod theirs;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use benches::{Outcome, Race, Targets, reference_session};
use candle_core::{DType, Device};
use candle_nn::{AdamW, VarBuilder, VarMap};
use candle_profiler::{Config, SummaryTo, measured};
use examples::{Digits, Random, init_weights};
use theirs::Tracing;

/// Digits of a batch, as many as in the example.
const BATCH: u32 = 32;
/// Steps of one turn.
const TURN: u64 = 4;
const TIME: Duration = Duration::from_secs(8);

const PLAIN: &str = "plain";
const OURS: &str = "candle-profiler";
const THEIRS: &str = "candle-graph";

/// One trainer of each kind, all with the same weights, and the batch they train on.
struct Bench {
    batch: Digits,
    plain: plain::Trainer,
    ours: ours::Trainer,
    theirs: theirs::Trainer,
}

/// Variables with the same values each time.
fn variables() -> Result<VarMap> {
    let mut vars = VarMap::new();
    let none = AdamW::new_lr(Vec::new(), 1e-3)?;
    plain::Trainer::new(builder(&vars), none)?;
    init_weights(&mut vars, &mut Random::new(42))?;
    Ok(vars)
}

fn builder(vars: &VarMap) -> VarBuilder<'static> {
    VarBuilder::from_varmap(vars, DType::F32, &Device::Cpu)
}

fn optimizer(vars: &VarMap) -> Result<AdamW> {
    Ok(AdamW::new_lr(vars.all_vars(), 1e-3)?)
}

impl Bench {
    fn new() -> Result<Self> {
        let rows: Vec<u32> = (0..BATCH).collect();
        let (first, second, third) = (variables()?, variables()?, variables()?);
        Ok(Self {
            batch: Digits::load(&Device::Cpu)?.select(&rows)?,
            plain: plain::Trainer::new(builder(&first), optimizer(&first)?)?,
            ours: ours::Trainer::new(builder(&second), optimizer(&second)?)?,
            theirs: theirs::Trainer::new(builder(&third), optimizer(&third)?)?,
        })
    }
}

/// The time of so many steps.
fn steps<E: Into<anyhow::Error>>(count: u64, mut step: impl FnMut() -> Result<(), E>) -> Duration {
    let start = Instant::now();
    for _ in 0..count {
        if let Err(error) = step() {
            panic!("a step failed: {}", error.into());
        }
    }
    start.elapsed()
}

fn show(outcome: &Outcome) {
    outcome.print(&[PLAIN]);
    for name in [OURS, THEIRS] {
        let share = |found: f64, plain: f64| 100.0 * (found / plain - 1.0);
        println!(
            "  {name}: {:+.2} % of the plain step by the least times, {:+.2} % by the medians",
            share(outcome.least(name), outcome.least(PLAIN)),
            share(outcome.median(name), outcome.median(PLAIN)),
        );
    }
}

/// All steps in one capture, which is open already.
#[measured]
fn in_one_capture(bench: &mut Bench, tracing: Tracing<'_>) -> Outcome {
    let batch = &bench.batch;
    Race::new("a step in a capture that is open")
        .runner(PLAIN, TURN, |count| {
            steps(count, || bench.plain.step(batch))
        })
        .runner(OURS, TURN, |count| steps(count, || bench.ours.step(batch)))
        .runner(THEIRS, TURN, |count| {
            steps(count, || bench.theirs.step(batch, tracing))
        })
        .run(TIME)
}

/// Each step a trace of its own.
fn in_captures_of_their_own(bench: &mut Bench, folder: &Path, statistics: bool) -> Outcome {
    let batch = &bench.batch;
    let file = folder.join("step.jsonl");
    Race::new("a step with a trace of its own, opened and finished")
        .runner(PLAIN, TURN, |count| {
            steps(count, || bench.plain.step(batch))
        })
        .runner(OURS, TURN, |count| steps(count, || bench.ours.step(batch)))
        .runner(THEIRS, TURN, |count| {
            steps(count, || {
                let session = reference_session(&file)?;
                let tracing = Tracing {
                    session: &session,
                    statistics,
                };
                bench.theirs.step(batch, tracing)?;
                session.finish()?;
                anyhow::Ok(())
            })
        })
        .run(TIME)
}

/// Every step is captured, with what `planes` says.
fn captured(planes: &str) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let config = Config::new().folder(folder.path().join("ours"));
    let config = config.steps("every:1")?.record(planes)?;
    candle_profiler::configure(config.summary(SummaryTo::Off))?;
    let statistics = planes.contains("stats");
    println!(
        "\n8 spans{}",
        if statistics { " and 9 statistics" } else { "" }
    );
    let mut bench = Bench::new()?;
    let session = reference_session(&folder.path().join("theirs.jsonl"))?;
    let tracing = Tracing {
        session: &session,
        statistics,
    };
    let outcome = in_one_capture(&mut bench, tracing);
    show(&outcome);
    let mut targets = Targets::new();
    if !statistics {
        targets.at_most(
            "a step with 8 spans / the plain step",
            outcome.ratio(OURS, PLAIN),
            1.01,
        );
    }
    show(&in_captures_of_their_own(
        &mut bench,
        folder.path(),
        statistics,
    ));
    targets.print();
    Ok(())
}

/// Nothing is captured.
fn switched_off() -> Result<()> {
    let mut bench = Bench::new()?;
    let batch = &bench.batch;
    let outcome = Race::new("\na step, switched off")
        .runner(PLAIN, TURN, |count| {
            steps(count, || bench.plain.step(batch))
        })
        .runner(OURS, TURN, |count| steps(count, || bench.ours.step(batch)))
        .run(TIME);
    outcome.print(&[PLAIN]);
    Ok(())
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("off") => switched_off(),
        Some("spans") => captured("spans"),
        Some("statistics") => captured("spans,stats"),
        // The settings hold for a whole process.
        _ if benches::asked_for() => ["off", "spans", "statistics"].iter().try_for_each(|mode| {
            let status = Command::new(std::env::current_exe()?).arg(mode).status()?;
            ensure!(status.success(), "{mode} ended with {status}");
            Ok(())
        }),
        _ => Ok(()),
    }
}
