//! Things timed in turn.

use std::time::{Duration, Instant};

/// The time that `count` calls of `f` take.
#[inline(always)]
pub fn repeat(count: u64, mut f: impl FnMut()) -> Duration {
    let start = Instant::now();
    for _ in 0..count {
        f();
    }
    start.elapsed()
}

/// Runners that are timed in turn.
pub struct Race<'a> {
    title: String,
    runners: Vec<Runner<'a>>,
    pause: Duration,
}

struct Runner<'a> {
    name: String,
    /// Items of one turn.
    batch: u64,
    /// Does that many items and tells how long it took.
    run: Box<dyn FnMut(u64) -> Duration + 'a>,
    /// The time of one item in each turn, in nanoseconds.
    times: Vec<f64>,
}

impl<'a> Race<'a> {
    /// A race without runners.
    pub fn new(title: impl Into<String>) -> Self {
        Race {
            title: title.into(),
            runners: Vec::new(),
            pause: Duration::ZERO,
        }
    }

    /// Sleeps after each round, so that the writer's thread catches up and what is timed are bursts.
    pub fn pause(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// Adds a runner that does `batch` items a turn. `run` does as many as it is asked to, and tells how long that took.
    pub fn runner(
        mut self,
        name: impl Into<String>,
        batch: u64,
        run: impl FnMut(u64) -> Duration + 'a,
    ) -> Self {
        self.runners.push(Runner {
            name: name.into(),
            batch,
            run: Box::new(run),
            times: Vec::new(),
        });
        self
    }

    /// Lets the runners take turns for about `time`, three turns each at least.
    pub fn run(mut self, time: Duration) -> Outcome {
        const LEAST: usize = 3;
        let end = Instant::now() + time;
        let mut rounds = 0;
        while rounds < LEAST || Instant::now() < end {
            for runner in &mut self.runners {
                // A tenth first, untimed: caches and predictors are the runner's own when it counts.
                (runner.run)(runner.batch / 10);
                let taken = (runner.run)(runner.batch);
                let item = taken.as_nanos() as f64 / runner.batch as f64;
                runner.times.push(item);
            }
            std::thread::sleep(self.pause);
            rounds += 1;
        }
        let rows = self.runners.into_iter().map(Row::of).collect();
        Outcome {
            title: self.title,
            rounds,
            rows,
        }
    }
}

/// What a race found.
pub struct Outcome {
    title: String,
    rounds: usize,
    rows: Vec<Row>,
}

struct Row {
    name: String,
    least: f64,
    median: f64,
}

impl Row {
    fn of(runner: Runner<'_>) -> Self {
        let mut times = runner.times;
        times.sort_by(f64::total_cmp);
        Row {
            name: runner.name,
            least: times[0],
            median: times[times.len() / 2],
        }
    }
}

impl Outcome {
    /// Prints the times of an item, and how often the least one of each runner in `beside` goes into it.
    pub fn print(&self, beside: &[&str]) {
        println!("\n{} ({} rounds)", self.title, self.rounds);
        print!("  {:<46} {:>10} {:>10}", "", "least", "median");
        for name in beside {
            print!("  / {name}");
        }
        println!();
        for row in &self.rows {
            let (least, median) = (time(row.least), time(row.median));
            print!("  {:<46} {least:>10} {median:>10}", row.name);
            for name in beside {
                let ratio = format!("{:.3}", row.least / self.least(name));
                print!("  {ratio:>width$}", width = name.chars().count() + 2);
            }
            println!();
        }
    }

    /// The least time of a runner, in nanoseconds an item.
    pub fn least(&self, name: &str) -> f64 {
        self.row(name).least
    }

    /// The median time of a runner, in nanoseconds an item.
    pub fn median(&self, name: &str) -> f64 {
        self.row(name).median
    }

    /// How often the least time of `other` goes into that of `name`.
    pub fn ratio(&self, name: &str, other: &str) -> f64 {
        self.least(name) / self.least(other)
    }

    fn row(&self, name: &str) -> &Row {
        let found = self.rows.iter().find(|row| row.name == name);
        found.unwrap_or_else(|| panic!("{}: no runner is named {name}", self.title))
    }
}

/// Nanoseconds in the unit that suits them.
fn time(ns: f64) -> String {
    match ns {
        ..1e3 => format!("{ns:.2} ns"),
        ..1e6 => format!("{:.2} µs", ns / 1e3),
        ..1e9 => format!("{:.2} ms", ns / 1e6),
        _ => format!("{:.2} s", ns / 1e9),
    }
}
