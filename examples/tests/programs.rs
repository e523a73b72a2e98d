//! The programs keep what their first lines say, also with the profiler in them and switched off.

use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};

/// Runs a program with nothing of the profiler in its environment.
fn run(program: &str, arguments: &[&str]) -> Result<Output> {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("CANDLE_PROFILE") {
            command.env_remove(name);
        }
    }
    let output = command.args(arguments).output()?;
    ensure!(output.status.success(), "{program} failed: {output:?}");
    Ok(output)
}

/// The number in `accuracy: NN.NN %`.
fn accuracy(line: &str) -> Result<f64> {
    let number = line
        .strip_prefix("accuracy: ")
        .and_then(|rest| rest.strip_suffix(" %"))
        .with_context(|| format!("no accuracy: {line:?}"))?;
    let (_, decimals) = number.split_once('.').context("no decimals")?;
    ensure!(decimals.len() == 2, "not two decimals: {line:?}");
    Ok(number.parse()?)
}

#[test]
fn digits_learns_the_same_each_time_and_says_only_how_well() -> Result<()> {
    let first = run(env!("CARGO_BIN_EXE_digits"), &[])?;
    let text = String::from_utf8(first.stdout.clone())?;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 1, "{text}");
    assert!(accuracy(lines[0])? >= 95.0, "{text}");
    // stderr is no terminal here: no bar, and the profiler is off.
    assert_eq!(String::from_utf8_lossy(&first.stderr), "");

    let second = run(env!("CARGO_BIN_EXE_digits"), &[])?;
    assert_eq!(second.stdout, first.stdout);
    Ok(())
}

#[test]
fn inference_tells_most_digits_right() -> Result<()> {
    let output = run(env!("CARGO_BIN_EXE_inference"), &[])?;
    let text = String::from_utf8(output.stdout)?;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(accuracy(lines[0])? >= 95.0, "{text}");
    assert!(lines[1].starts_with("throughput: "), "{text}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    Ok(())
}

#[test]
fn manual_writes_a_whole_trace_where_it_is_told() -> Result<()> {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("by/hand.jsonl");
    let text = path.to_str().context("a path that is no text")?;
    run(env!("CARGO_BIN_EXE_manual"), &[text])?;
    let trace = candle_profiler::parse_trace(&path)?;
    let health = candle_profiler::trace::health::analyze_health(&trace);
    ensure!(health.structurally_valid, "{health:?}");
    Ok(())
}

/// Runs the transformer for two epochs with the profiler on: its accuracy, what was said on stderr, and the trace.
fn transformer(
    folder: &std::path::Path,
    arguments: &[&str],
) -> Result<(f64, String, candle_profiler::TraceDocument)> {
    let output = Command::new(env!("CARGO_BIN_EXE_transformer"))
        .args(["--epochs", "2"])
        .args(arguments)
        .env("CANDLE_PROFILE", folder)
        .env("CANDLE_PROFILE_SUMMARY", folder.join("summary.txt"))
        .output()?;
    ensure!(output.status.success(), "{output:?}");
    let accuracy = accuracy(String::from_utf8(output.stdout)?.trim_end())?;
    let trace = candle_profiler::parse_trace(folder.join("transformer-train_step-step2.jsonl"))?;
    let health = candle_profiler::trace::health::analyze_health(&trace);
    ensure!(
        health.structurally_valid && health.capture_complete,
        "{health:?}"
    );
    Ok((accuracy, String::from_utf8(output.stderr)?, trace))
}

#[test]
fn transformer_is_told_where_its_graph_is_cut_and_learns_where_it_is_not() -> Result<()> {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("transformer");
    let _ = std::fs::remove_dir_all(&folder);
    let (cut, said, trace) = transformer(&folder.join("cut"), &[])?;
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 2, "{said}");
    for (line, place, twin) in [
        (
            lines[0],
            "Norm::forward (",
            "candle_nn::ops::layer_norm_slow",
        ),
        (
            lines[1],
            "Attention::weigh (",
            "candle_nn::ops::softmax(x, D::Minus1)",
        ),
    ] {
        let begins = format!("candle-profiler: {place}");
        assert!(
            line.starts_with(&begins) && line.contains("bin/transformer.rs:"),
            "{line}"
        );
        assert!(line.contains(twin), "{line}");
    }
    let marked = |trace: &candle_profiler::TraceDocument| {
        let extras = trace
            .tensors
            .iter()
            .filter_map(|tensor| tensor.extra.as_ref());
        extras
            .filter(|extra| extra.autograd.as_deref() == Some("cut"))
            .count()
    };
    assert_eq!(marked(&trace), 2);
    let summary = std::fs::read_to_string(folder.join("cut/summary.txt"))?;
    assert!(summary.contains("no gradient for"), "{summary}");

    let (fixed, said, trace) = transformer(&folder.join("fixed"), &["--fixed"])?;
    assert_eq!(said, "");
    assert_eq!(marked(&trace), 0);
    let summary = std::fs::read_to_string(folder.join("fixed/summary.txt"))?;
    assert!(summary.contains("29 variables, 29 present"), "{summary}");
    assert!(!summary.contains("problems"), "{summary}");
    assert!(fixed > cut + 20.0, "{fixed} % and {cut} %");
    Ok(())
}

#[test]
fn the_readme_shows_the_example_as_it_is() {
    let readme = include_str!("../../README.md");
    let (_, program) = include_str!("../src/bin/linear.rs")
        .split_once("\n\n")
        .expect("a comment and a program");
    assert!(readme.contains(program), "README.md and linear.rs differ");
}
