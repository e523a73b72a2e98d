//! A program of the tests as a child process: its settings, what it said, what it left behind.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::trace::Trace;

/// What a program did.
pub struct Ran {
    /// Its exit status; `None`: a signal ended it.
    pub code: Option<i32>,
    /// What it wrote on stdout.
    pub stdout: String,
    /// What it wrote on stderr.
    pub stderr: String,
}

/// Variables that steer the profiler; a child gets only those that its test sets.
const VARIABLES: [&str; 18] = [
    "CANDLE_PROFILE",
    "CANDLE_PROFILE_STEPS",
    "CANDLE_PROFILE_RECORD",
    "CANDLE_PROFILE_SYNC",
    "CANDLE_PROFILE_SUMMARY",
    "CANDLE_PROFILE_TAGS",
    "CANDLE_PROFILE_NONFINITE",
    "CANDLE_PROFILE_BUDGET",
    "RANK",
    "WORLD_SIZE",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "PMI_RANK",
    "PMI_SIZE",
    "SLURM_PROCID",
    "SLURM_NTASKS",
    "RUST_BACKTRACE",
    "CLICOLOR_FORCE",
];

/// Set where a sanitizer is built in, whose own memory grows while a program runs: that is told and means nothing.
const SANITIZED: &str = "CANDLE_PROFILER_TEST_SANITIZED";

/// The program, ready to start in `folder`, its output captured.
pub fn command(
    program: &str,
    folder: &Path,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> Command {
    let mut command = Command::new(program);
    for name in VARIABLES {
        command.env_remove(name);
    }
    command
        .current_dir(folder)
        .args(arguments)
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs the program in `folder` to its end.
pub fn run(program: &str, folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Ran {
    let output = command(program, folder, arguments, variables)
        .output()
        .expect("the program starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    let mut stderr = text(output.stderr);
    if std::env::var_os(SANITIZED).is_some() {
        let lines = stderr.split_inclusive('\n');
        stderr = lines
            .filter(|line| !line.contains(": resident memory grew "))
            .collect();
    }
    Ran {
        code: output.status.code(),
        stdout: text(output.stdout),
        stderr,
    }
}

/// Starts the program in `folder`, and kills it with SIGKILL once it has said on a line of its own that it is ready.
#[cfg(unix)]
pub fn kill_when_ready(
    program: &str,
    folder: &Path,
    arguments: &[&str],
    variables: &[(&str, &str)],
) {
    use std::io::{BufRead, BufReader};

    let mut child = command(program, folder, arguments, variables)
        .spawn()
        .expect("a child");
    let mut ready = String::new();
    BufReader::new(child.stdout.take().expect("stdout"))
        .read_line(&mut ready)
        .expect("a line");
    assert_eq!(ready, "ready\n");
    child.kill().expect("SIGKILL");
    child.wait().expect("its end");
}

impl Ran {
    /// The one line on stderr; fails where there are more or none.
    pub fn only_line(&self) -> &str {
        let lines: Vec<&str> = self.stderr.lines().collect();
        match lines.as_slice() {
            [line] => line,
            _ => panic!("one line expected on stderr:\n{}", self.stderr),
        }
    }
}

/// The paths of all files below a folder, sorted, with `/`, relative to it.
pub fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    walk(folder, "", &mut found);
    found.sort();
    found
}

fn walk(folder: &Path, above: &str, found: &mut Vec<String>) {
    let Ok(entries) = folder.read_dir() else {
        return;
    };
    for entry in entries.flatten() {
        let name = format!("{above}{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            walk(&entry.path(), &format!("{name}/"), found);
        } else {
            found.push(name);
        }
    }
}

/// All traces below a folder, in the order of their paths; each is valid by the judge.
pub fn traces(folder: &Path) -> Vec<Trace> {
    files(folder)
        .iter()
        .filter(|name| name.ends_with(".jsonl"))
        .map(|name| Trace::read(&folder.join(name)))
        .collect()
}
