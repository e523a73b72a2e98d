//! Programs that fork.

#![cfg(unix)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use candle_core::{DType, Device};
use candle_nn::{VarBuilder, VarMap};
use candle_profiler::{
    capture_next, current, measured, name_vars, not_a_step, record_scalar, set_rank, span,
};
use process::{SIGKILL, WNOHANG};

use crate::model::{Training, train_step};

mod process {
    /// POSIX, `signal.h`.
    pub(super) const SIGKILL: i32 = 9;
    /// Linux and the BSDs, `sys/wait.h`.
    pub(super) const WNOHANG: i32 = 1;

    unsafe extern "C" {
        /// POSIX: 0 in the child.
        pub(super) safe fn fork() -> i32;
        /// POSIX: ends the process at once.
        pub(super) safe fn _exit(status: i32) -> !;
        /// POSIX: sends a signal.
        pub(super) safe fn kill(pid: i32, signal: i32) -> i32;
        /// POSIX: waits for a child.
        pub(super) fn waitpid(pid: i32, status: *mut i32, options: i32) -> i32;
    }
}

/// The child's exit status; an error where it does not end.
fn status(child: i32) -> Result<i32> {
    let since = Instant::now();
    let mut status = 0;
    loop {
        // SAFETY: `status` is a place for the child's status.
        if unsafe { process::waitpid(child, &raw mut status, WNOHANG) } == child {
            return Ok(status >> 8);
        }
        if since.elapsed() > Duration::from_secs(60) {
            process::kill(child, SIGKILL);
            anyhow::bail!("the child hangs");
        }
        std::thread::sleep(Duration::from_micros(100));
    }
}

#[measured]
fn forking_step(training: &mut Training) -> Result<()> {
    let (x, classes) = training.batch()?;
    let outer = span("outer");
    let child = process::fork();
    if child == 0 {
        // Everything that a worker process might do with what it was born with.
        training.learn(&x, &classes)?;
        drop(outer);
        let _span = span("of the child");
        not_a_step();
        for _ in 0..4 {
            train_step(training, &x, &classes)?;
        }
        process::_exit(5);
    }
    training.learn(&x, &classes)?;
    println!("child {}", status(child)?);
    Ok(())
}

/// Each step forks a child that trains too.
pub(crate) fn steps(steps: u32) -> Result<()> {
    let mut training = Training::new()?;
    for _ in 0..steps {
        forking_step(&mut training)?;
    }
    println!("{}", training.model.fingerprint()?);
    Ok(())
}

#[measured]
fn short(value: f64) -> f64 {
    let _span = span("part");
    record_scalar("value", &value);
    value + 1.0
}

fn variables() -> Result<VarMap> {
    let variables = VarMap::new();
    VarBuilder::from_varmap(&variables, DType::F32, &Device::Cpu).get(4, "weight")?;
    Ok(variables)
}

/// Forks children beside threads that are in the middle of everything: whatever lock they hold then, nobody lets go of
/// in the child.
pub(crate) fn beside_threads(children: u32) -> Result<()> {
    let stop = AtomicBool::new(false);
    let own: Vec<VarMap> = (0..3).map(|_| variables()).collect::<Result<_>>()?;
    let variables = variables()?;
    let handle = {
        let _open = span("outside");
        current()
    };
    let ended = std::thread::scope(|scope| {
        for variables in own {
            let stop = &stop;
            scope.spawn(move || {
                let mut value = 0.0;
                while !stop.load(Ordering::Relaxed) {
                    value = short(value);
                    name_vars("", &variables);
                }
            });
        }
        let ended = (0..children).try_for_each(|_| {
            let child = process::fork();
            if child == 0 {
                for number in 0..10 {
                    short(f64::from(number));
                }
                handle.run(|| short(f64::NAN));
                capture_next("short", 1);
                name_vars("", &variables);
                set_rank(1, 2);
                process::_exit(5);
            }
            let status = status(child)?;
            ensure!(status == 5, "the child ended with {status}");
            Ok(())
        });
        stop.store(true, Ordering::Relaxed);
        ended
    });
    ended?;
    println!("{children} children");
    Ok(())
}
