//! When something is recorded and into which file: a training program as a child process, steered by its environment.

mod files;
mod notices;
mod selection;
mod settings;

use std::path::Path;

use tempfile::TempDir;
use tests::program::{self, Ran};

/// The measured function of most modes, and its file for a step.
const NAME: &str = "train::model::train_step";

fn trace_of(step: u32) -> String {
    format!("traces/train-model-train_step-step{step}.jsonl")
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

/// Runs the training program; `mode` may hold a number of steps.
fn train(folder: &Path, mode: &str, variables: &[(&str, &str)]) -> Ran {
    let arguments: Vec<&str> = mode.split(' ').collect();
    program::run(env!("CARGO_BIN_EXE_train"), folder, &arguments, variables)
}

/// The same without a word on stderr but the summary, which is switched off; fails where the program does.
fn quiet(folder: &Path, mode: &str, variables: &[(&str, &str)]) -> Ran {
    let silent = [variables, &[("CANDLE_PROFILE_SUMMARY", "off")]].concat();
    let ran = train(folder, mode, &silent);
    assert_eq!(ran.stderr, "");
    assert_eq!(ran.code, Some(0));
    ran
}

/// What the program writes where nothing is recorded.
fn plain_output(mode: &str) -> String {
    let ran = train(folder().path(), mode, &[]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    ran.stdout
}
