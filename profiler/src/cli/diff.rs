//! `candle-profile diff`: what differs between two traces, or two sets.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Result, bail, ensure};
use clap::Args;

use super::{Verdict, input, output};
use crate::view::diff::{self, Diff, Facts, Limits};

/// Compare two traces, or two sets of them (medians): times, memory, and the first label whose numbers part.
///
/// Each of two arguments may be a trace, a folder or a pattern; with more, `--` parts the sides:
/// `diff before/*.jsonl -- after/*.jsonl`. Traces of the same step are compared number by number.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The traces before, or two arguments: before and after
    #[arg(required = true, value_name = "BEFORE")]
    before: Vec<PathBuf>,
    /// The traces after
    #[arg(last = true, value_name = "AFTER")]
    after: Vec<PathBuf>,
    /// Exit 1 if a measured region got slower by more: `10%`, or as a factor `1.1`
    #[arg(long, value_parser = factor)]
    max_slowdown: Option<f64>,
    /// Exit 1 if statistics differ by more than this share (`0.001`, `0.1%`), or a label or a step is on one side only
    #[arg(long, value_parser = share)]
    tolerance: Option<f64>,
    /// Compare tensors of different types too, as a port to another precision needs it
    #[arg(long)]
    any_dtype: bool,
    /// Say it as JSON: candle-profiler/diff/1
    #[arg(long)]
    json: bool,
    /// Columns of the page
    #[arg(long, default_value_t = 80, value_parser = clap::value_parser!(u16).range(20..))]
    width: u16,
}

/// What is shown as a parting where no tolerance is asked for.
const USUAL_TOLERANCE: f64 = 1e-3;

pub(super) fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<Verdict> {
    let (before, after) = match (arguments.before.as_slice(), arguments.after.as_slice()) {
        ([before, after], []) => (std::slice::from_ref(before), std::slice::from_ref(after)),
        (before, []) => {
            let given = match before.len() {
                1 => "one was given".to_owned(),
                given => format!("{given} were given"),
            };
            bail!("diff takes two arguments, {given}; of sets, `--` parts the sides")
        }
        (before, after) => (before, after),
    };
    let read = |paths: &[PathBuf]| -> Result<Vec<Facts>> {
        let inputs = input::all(paths)?;
        inputs.iter().map(input::Input::facts).collect()
    };
    let stdin = [before, after]
        .concat()
        .iter()
        .filter(|path| path.as_os_str() == "-")
        .count();
    ensure!(
        stdin <= 1,
        "`-` is named {stdin} times, standard input can be read once"
    );
    let limits = Limits {
        slowdown: arguments.max_slowdown,
        tolerance: arguments.tolerance.unwrap_or(USUAL_TOLERANCE),
        enforced: arguments.tolerance.is_some(),
        any_dtype: arguments.any_dtype,
    };
    let diff = Diff::of(&read(before)?, &read(after)?, limits);
    match arguments.json {
        true => output::json(out, &diff::as_json(&diff))?,
        false => {
            let text = diff::render(&diff, arguments.width.into(), output::colour());
            out.write_all(text.as_bytes())?;
        }
    }
    Ok(match diff.faults.is_empty() {
        true => Verdict::Well,
        false => Verdict::Found,
    })
}

/// `10%` or `1.1`, as a factor.
fn factor(text: &str) -> Result<f64, String> {
    let allowed = "allowed is a percentage such as `10%`, or a factor from 1 on such as `1.1`";
    let factor = match text.strip_suffix('%') {
        Some(percent) => percent
            .trim()
            .parse::<f64>()
            .map(|percent| 1.0 + percent / 100.0),
        None => text.parse(),
    };
    match factor {
        Ok(factor) if factor.is_finite() && factor >= 1.0 => Ok(factor),
        _ => Err(allowed.to_owned()),
    }
}

/// `0.1%` or `0.001`, as a share.
fn share(text: &str) -> Result<f64, String> {
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|percent| percent / 100.0),
        None => text.parse(),
    };
    match share {
        Ok(share) if share.is_finite() && share >= 0.0 => Ok(share),
        _ => Err("allowed is a share from 0 on such as `0.001` or `0.1%`".to_owned()),
    }
}
