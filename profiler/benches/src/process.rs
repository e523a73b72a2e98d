//! What a process has used.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use cpu_time::ProcessTime;

/// What a piece of work took in a process of its own.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// From its start to its end, in seconds.
    pub wall: f64,
    /// Processor time of all threads, in seconds.
    pub processor: f64,
    /// The most memory the process had at once, in MiB; 0 where the system does not tell.
    pub peak_memory: f64,
}

/// Runs `work` and prints what it took, for [`Usage::of_child`] to read.
///
/// # Errors
/// What `work` gives.
pub fn report(work: impl FnOnce() -> Result<()>) -> Result<()> {
    let (start, processor) = (Instant::now(), ProcessTime::now());
    work()?;
    let (wall, processor) = (start.elapsed(), processor.elapsed());
    let seconds = |time: Duration| time.as_secs_f64();
    println!("{} {} {}", seconds(wall), seconds(processor), peak_memory());
    Ok(())
}

/// In MiB, from the process's `VmHWM` of Linux.
fn peak_memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
    kib.unwrap_or(0.0) / 1024.0
}

impl Usage {
    /// Runs this program again with `arguments`; it must end in [`report`].
    ///
    /// # Errors
    /// Where the child fails or says something else.
    pub fn of_child(arguments: &[&str]) -> Result<Usage> {
        let program = std::env::current_exe()?;
        let output = Command::new(program).args(arguments).output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        ensure!(
            output.status.success(),
            "the child {arguments:?} ended with {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        let numbers: Vec<f64> = text.split_whitespace().flat_map(str::parse).collect();
        let &[wall, processor, peak_memory] = numbers.as_slice() else {
            anyhow::bail!("the child {arguments:?} said {text}");
        };
        Ok(Usage {
            wall,
            processor,
            peak_memory,
        })
    }

    /// The least of each figure.
    ///
    /// # Errors
    /// Where there is none.
    pub fn least(all: &[Usage]) -> Result<Usage> {
        let least = |a: Usage, b: &Usage| Usage {
            wall: a.wall.min(b.wall),
            processor: a.processor.min(b.processor),
            peak_memory: a.peak_memory.min(b.peak_memory),
        };
        let (first, rest) = all.split_first().context("nothing was measured")?;
        Ok(rest.iter().fold(*first, least))
    }
}
