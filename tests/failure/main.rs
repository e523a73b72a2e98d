//! Failure is evidence: what a trace says when the measured call, or the whole program, does not end well.

mod ends;
mod errors;
mod hand;
mod load;
mod panics;
mod places;
mod process;
mod turns;

use std::path::Path;

use tests::program::{self, Ran};

/// Runs the training program in `folder`, with traces in `traces` and nothing on stderr but what goes wrong.
fn train(folder: &Path, mode: &str) -> Ran {
    let arguments: Vec<&str> = mode.split(' ').collect();
    let variables = [
        ("CANDLE_PROFILE", "traces"),
        ("CANDLE_PROFILE_SUMMARY", "off"),
    ];
    program::run(env!("CARGO_BIN_EXE_train"), folder, &arguments, &variables)
}
