//! The tool `candle-profile`, run as a program: what it says, where, and with which exit code.

mod check;
mod diff;
mod export;
mod legacy;
mod merge;
mod page;
mod passes;
mod repair;
mod sample;
mod summary;

use std::path::Path;

use serde_json::Value;
use tests::program::{self, Ran};

/// Runs the tool in a folder.
fn tool(folder: &Path, arguments: &[&str]) -> Ran {
    program::run(env!("CARGO_BIN_EXE_tool"), folder, arguments, &[])
}

/// The same where all is well; gives what it wrote.
fn well(folder: &Path, arguments: &[&str]) -> String {
    let ran = tool(folder, arguments);
    assert_eq!(
        (ran.code, ran.stderr.as_str()),
        (Some(0), ""),
        "{arguments:?}\n{}",
        ran.stdout
    );
    ran.stdout
}

/// The same, read as JSON.
fn json(folder: &Path, arguments: &[&str]) -> Value {
    serde_json::from_str(&well(folder, arguments)).expect("JSON")
}

/// Where it cannot be done: the one line on stderr.
fn refused(folder: &Path, arguments: &[&str]) -> String {
    let ran = tool(folder, arguments);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(2), ""),
        "{arguments:?}"
    );
    ran.only_line().to_owned()
}

/// Puts a file into a folder.
fn put(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).expect("to write");
}

fn get(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).expect("to read")
}

#[test]
fn help_and_wrong_arguments_have_their_exit_codes() {
    let folder = tests::folder();
    let help = well(folder.path(), &["--help"]);
    for command in [
        "summary", "check", "diff", "export", "merge", "repair", "view",
    ] {
        assert!(help.contains(command), "{command} in\n{help}");
        assert!(well(folder.path(), &[command, "--help"]).contains("Usage:"));
    }
    assert!(help.contains("Exit codes: 0 all is well; 1 something was found"));
    let version = format!("candle-profile {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(well(folder.path(), &["--version"]), version);
    for arguments in [
        &["summary"][..],
        &["nothing"],
        &["export", "x", "--to", "y"],
        &["summary", "x", "--width", "9"],
    ] {
        let ran = tool(folder.path(), arguments);
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (Some(2), ""),
            "{arguments:?}"
        );
        assert!(ran.stderr.starts_with("error: "), "{}", ran.stderr);
    }
}

#[test]
fn help_fits_into_80_columns() {
    let folder = tests::folder();
    for command in [
        "", "summary", "check", "diff", "export", "merge", "repair", "view",
    ] {
        for flag in ["-h", "--help"] {
            let arguments = [command, flag];
            let arguments = &arguments[usize::from(command.is_empty())..];
            for line in well(folder.path(), arguments).lines() {
                assert!(line.chars().count() <= 80, "{arguments:?}: {line}");
            }
        }
    }
}

/// A folder's name is not always text.
#[cfg(target_os = "linux")]
#[test]
fn a_folder_with_any_name_is_searched() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let folder = tests::folder();
    let inside = folder.path().join(OsStr::from_bytes(b"b\xffd [x]"));
    std::fs::create_dir(&inside).expect("a folder");
    put(
        &inside,
        "all.jsonl",
        &tests::golden("all-events.trace10.jsonl"),
    );
    let mut command = program::command(env!("CARGO_BIN_EXE_tool"), folder.path(), &["check"], &[]);
    let output = command.arg(&inside).output().expect("its end");
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(String::from_utf8_lossy(&output.stdout).contains("valid, complete, 8"));
}

#[test]
fn files_that_cannot_be_used_are_named_with_the_line() {
    let folder = tests::folder();
    let path = folder.path();
    assert!(
        refused(path, &["summary", "gone.jsonl"]).starts_with("candle-profile: open gone.jsonl: ")
    );
    assert_eq!(
        refused(path, &["summary", "*.jsonl"]),
        "candle-profile: *.jsonl: no file matches"
    );
    std::fs::create_dir(path.join("empty")).expect("a folder");
    assert_eq!(
        refused(path, &["check", "empty"]),
        "candle-profile: empty: there is no trace (a file that ends in .jsonl)"
    );
    // No process of this number lives.
    let text = tests::golden("all-events.trace10.jsonl").replace("\"run-7514-", "\"run-0-");
    let lines: Vec<&str> = text.lines().collect();
    put(path, "cut.jsonl", &(lines[..5].join("\n") + "\n"));
    assert_eq!(
        refused(path, &["summary", "cut.jsonl"]),
        "candle-profile: cut.jsonl: there is no `terminal` record; the trace was cut off; to repair: \
         candle-profile repair cut.jsonl"
    );
    put(
        path,
        "torn.jsonl",
        &format!("{}\n{}\n{{\"kind\":\"span_st", lines[0], lines[1]),
    );
    let line = refused(path, &["export", "torn.jsonl", "--to", "folded"]);
    assert_eq!(
        line,
        "candle-profile: torn.jsonl, line 3: the line breaks off; to repair: candle-profile repair torn.jsonl"
    );
    put(
        path,
        "nan.jsonl",
        &format!(
            "{}\n{{\"kind\":\"span_end\",\"duration_ns\":NaN}}\n",
            lines[0]
        ),
    );
    assert_eq!(
        refused(path, &["summary", "nan.jsonl"]),
        "candle-profile: nan.jsonl, line 2: column 34: NaN is no number of JSON, where all are finite"
    );
    put(
        path,
        "comma.jsonl",
        &format!("{}\n{{\"kind\":\"span_end\",,}}\n", lines[0]),
    );
    let line = refused(path, &["summary", "comma.jsonl"]);
    assert!(
        line.starts_with("candle-profile: comma.jsonl, line 2: column 20: "),
        "{line}"
    );
    put(
        path,
        "other.jsonl",
        "{\"kind\":\"meta\",\"schema\":\"candle-graph/trace/99\"}\n",
    );
    let line = refused(path, &["diff", "other.jsonl", "other.jsonl"]);
    assert!(
        line.starts_with("candle-profile: other.jsonl, line 1: "),
        "{line}"
    );
    assert_eq!(
        refused(path, &["summary", "-", "-"]),
        "candle-profile: `-` is named 2 times, standard input can be read once"
    );
}

#[test]
fn standard_input_is_read_and_a_reader_that_leaves_is_no_error() {
    use std::io::Write;
    use std::process::Stdio;
    let folder = tests::folder();
    let mut command = program::command(
        env!("CARGO_BIN_EXE_tool"),
        folder.path(),
        &["check", "-"],
        &[],
    );
    let mut child = command.stdin(Stdio::piped()).spawn().expect("the tool");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin
        .write_all(tests::golden("all-events.trace10.jsonl").as_bytes())
        .expect("to write");
    drop(stdin);
    let output = child.wait_with_output().expect("its end");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "standard input: valid, complete, 8 spans\n"
    );
    // The reading end of the pipe is closed before the tool writes.
    sample::large(folder.path(), "large.jsonl", 20_000);
    let arguments = ["export", "large.jsonl", "--to", "chrome"];
    let mut command = program::command(env!("CARGO_BIN_EXE_tool"), folder.path(), &arguments, &[]);
    let mut child = command.spawn().expect("the tool");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("its end");
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
}
