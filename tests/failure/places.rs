//! Places where a trace cannot be, and names that it should not have.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use candle_profiler::view::{RepairOptions, repair};
use candle_profiler::{ProfileRun, TraceSession};
use tests::program::{command, files, run, traces};

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

/// What the program prints without a profiler.
fn plain_output(folder: &Path) -> String {
    run(env!("CARGO_BIN_EXE_train"), folder, &["plain", "3"], &[]).stdout
}

/// Runs the program with its traces at `place`; it must not notice. Gives what it said on stderr.
fn plain_at(folder: &Path, place: &str) -> String {
    let variables = [("CANDLE_PROFILE", place), ("CANDLE_PROFILE_SUMMARY", "off")];
    let ran = run(
        env!("CARGO_BIN_EXE_train"),
        folder,
        &["plain", "3"],
        &variables,
    );
    assert_eq!(
        (ran.code, ran.stdout),
        (Some(0), plain_output(folder)),
        "{place}"
    );
    ran.stderr
}

/// One line, and it names the place.
fn refused_at(folder: &Path, place: &str) -> String {
    let said = plain_at(folder, place);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.starts_with("candle-profiler: "), "{said}");
    said
}

#[cfg(target_os = "linux")]
#[test]
fn devices_and_paths_that_are_far_too_long() {
    let folder = folder();
    assert!(refused_at(folder.path(), "/dev/full").contains("/dev/full"));
    assert!(refused_at(folder.path(), "/dev/full/below").contains("/dev/full"));
    let long = format!("{}/{}", "d".repeat(200), "e/".repeat(2400));
    assert!(long.len() > 5000);
    let said = refused_at(folder.path(), &long);
    assert!(said.contains(&"d".repeat(50)), "{said}");
    let long_name = format!("{}.jsonl", "n".repeat(5000));
    refused_at(folder.path(), &long_name);
    assert_eq!(files(folder.path()), [] as [String; 0]);
}

#[cfg(unix)]
#[test]
fn links_are_followed_to_folders_and_kept_as_files() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, path(name)).expect("a link");
    fs::create_dir(path("real")).expect("a folder");
    fs::write(path("precious"), "mine").expect("a file");
    link("real", "linked");
    link("precious", "exact.jsonl");
    link("nowhere", "dangling.jsonl");
    link("precious", "grown.jsonl.partial");
    for (place, in_the_way) in [
        ("linked", ""),
        ("exact.jsonl", "exact.jsonl is there"),
        ("dangling.jsonl", "dangling.jsonl is there"),
        ("grown.jsonl", "grown.jsonl.partial was left there"),
    ] {
        let said = plain_at(folder.path(), place);
        assert_eq!(said.is_empty(), in_the_way.is_empty(), "{said}");
        assert!(said.contains(in_the_way), "{said}");
    }
    assert_eq!(
        fs::read_to_string(path("precious")).expect("the file"),
        "mine"
    );
    for link in [
        "linked",
        "exact.jsonl",
        "dangling.jsonl",
        "grown.jsonl.partial",
    ] {
        assert!(path(link).is_symlink(), "{link}");
    }
    assert!(!path("nowhere").exists());
    let names = [
        "exact-2.jsonl",
        "dangling-2.jsonl",
        "grown-2.jsonl",
        "real/train-model-train_step-step2.jsonl",
    ];
    for name in names {
        tests::trace::Trace::read(&path(name));
    }
}

/// Runs the program with its traces on a small file system of its own, mounted by the text `mount`; copies what is left
/// there to `left`. `None` where a test may not mount.
#[cfg(target_os = "linux")]
fn on_a_small_disk(folder: &Path, mount: &str, mode: &str) -> Option<std::process::Output> {
    fs::create_dir_all(folder.join("disk")).expect("a folder");
    let may_mount = "mount -t tmpfs -o size=1m none disk";
    let in_namespace = |script: &str| {
        let mut unshare = Command::new("unshare");
        unshare.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]);
        unshare.current_dir(folder);
        unshare
    };
    if !in_namespace(may_mount)
        .output()
        .is_ok_and(|output| output.status.success())
    {
        eprintln!("no file system can be mounted here: not checked");
        return None;
    }
    let program = command(env!("CARGO_BIN_EXE_train"), folder, &[], &[]);
    let program = program.get_program().to_string_lossy().into_owned();
    let script = format!(
        "mkdir -p left && {mount} && CANDLE_PROFILE=disk CANDLE_PROFILE_SUMMARY=off '{program}' {mode}; \
         code=$?; cp disk/* left/; exit $code"
    );
    Some(in_namespace(&script).output().expect("unshare"))
}

/// A stack that no address space holds: the writer's thread cannot be started.
#[cfg(target_os = "linux")]
#[test]
fn a_writer_that_cannot_start_leaves_nothing() {
    for place in ["traces", "traces/exact.jsonl"] {
        let folder = folder();
        let variables = [
            ("CANDLE_PROFILE", place),
            ("CANDLE_PROFILE_STEPS", "every:1"),
            ("RUST_MIN_STACK", "4611686018427387904"),
        ];
        let train = env!("CARGO_BIN_EXE_train");
        let ran = run(train, folder.path(), &["burst", "5"], &variables);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let said = ran.only_line();
        assert!(said.contains("the writer's thread"), "{said}");
        assert_eq!(files(folder.path()), [] as [String; 0]);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_fills_half_way() {
    let folder = folder();
    let mount = "mount -t tmpfs -o size=128k none disk";
    let Some(output) = on_a_small_disk(folder.path(), mount, "flood 3") else {
        return;
    };
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(output.status.success(), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(
        said.contains("No space left") && said.contains(".jsonl.partial"),
        "{said}"
    );
    let left = files(&folder.path().join("left"));
    assert_eq!(left, ["train-modes-flood_step-step2.jsonl.partial"]);
    let partial = folder.path().join("left").join(&left[0]);
    let repaired = repair(partial, &RepairOptions::default()).expect("a repair");
    let trace = tests::trace::Trace::read(&repaired.path);
    assert!(
        trace.named("train::modes::burst_inner").len() > 500,
        "{repaired:?}"
    );
}

/// As file systems over the network may.
#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_finds_no_room_only_when_the_file_is_closed() {
    let folder = folder();
    let variables = [
        ("CANDLE_PROFILE", "traces"),
        ("CANDLE_PROFILE_SUMMARY", "off"),
    ];
    let program = env!("CARGO_BIN_EXE_unclosed");
    let ran = run(program, folder.path(), &[], &variables);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "done\n"));
    let said = ran.only_line();
    let partial = "traces/step-step2.jsonl.partial";
    assert!(
        said.contains("No space left") && said.contains(partial),
        "{said}"
    );
    assert_eq!(files(folder.path()), [partial], "it is called a trace");
}

#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_never_answers_ends_the_capture_and_the_program_goes_on() {
    let folder = folder();
    let variables = [
        ("CANDLE_PROFILE", "traces"),
        ("CANDLE_PROFILE_STEPS", "every:1"),
    ];
    let program = env!("CARGO_BIN_EXE_unclosed");
    let ran = run(program, folder.path(), &["hang"], &variables);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "done\n"));
    let said = ran.only_line();
    assert!(said.contains("made no progress for 5 s"), "{said}");
    // One capture hung, and no other was opened; all lines of the one are in its file.
    let partial = "traces/step-step1.jsonl.partial";
    assert_eq!(files(folder.path()), [partial]);
    let trace = tests::trace::Trace::read(&folder.path().join(partial));
    assert_eq!(trace.named("work").len(), 1);
}

/// The mode bits of a folder or a file, as a user sees them whom they bind.
#[cfg(target_os = "linux")]
#[test]
fn a_folder_or_a_file_that_may_not_be_written() {
    use std::os::unix::fs::PermissionsExt;

    let folder = folder();
    let mode = |path: &Path, bits| {
        fs::set_permissions(path, fs::Permissions::from_mode(bits)).expect("a mode");
    };
    let path = |name: &str| folder.path().join(name);
    mode(folder.path(), 0o755);
    fs::create_dir(path("closed")).expect("a folder");
    fs::create_dir(path("open")).expect("a folder");
    fs::write(path("open/run.jsonl"), "kept").expect("a file");
    mode(&path("open/run.jsonl"), 0o444);
    mode(&path("closed"), 0o555);
    mode(&path("open"), 0o777);
    let is_root = fs::write(path("closed/probe"), "").is_ok();
    let _ = fs::remove_file(path("closed/probe"));
    let train = env!("CARGO_BIN_EXE_train");
    let ran_at = |place: &str| {
        let variables = [("CANDLE_PROFILE", place), ("CANDLE_PROFILE_SUMMARY", "off")];
        // Root may write everywhere: somebody else is to run the program.
        let nobody = ["--reuid=65534", "--regid=65534", "--clear-groups", train];
        let arguments = ["plain", "3"];
        match is_root {
            true => run(
                "setpriv",
                folder.path(),
                &[&nobody[..], &arguments].concat(),
                &variables,
            ),
            false => run(train, folder.path(), &arguments, &variables),
        }
    };
    let may_run = |user: &[&str]| Command::new("setpriv").args(user).output();
    let probe = [
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        train,
        "untouched",
    ];
    if is_root && !may_run(&probe).is_ok_and(|output| output.status.success()) {
        eprintln!("nobody else can run the program here: not checked");
        return;
    }
    let plain = plain_output(folder.path());
    for place in ["closed", "closed/run.jsonl", "closed/below"] {
        let ran = ran_at(place);
        assert_eq!((ran.code, &ran.stdout), (Some(0), &plain), "{}", ran.stderr);
        let said = ran.only_line();
        assert!(
            said.contains("closed") && said.contains("Permission denied"),
            "{said}"
        );
    }
    // A file that may not be written is not replaced either, though the folder would allow it.
    let ran = ran_at("open/run.jsonl");
    assert_eq!(ran.code, Some(0));
    assert!(ran.only_line().contains("becomes open/run-2.jsonl"));
    tests::trace::Trace::read(&path("open/run-2.jsonl"));
    mode(&path("closed"), 0o755);
    assert_eq!(files(folder.path()), ["open/run-2.jsonl", "open/run.jsonl"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_cannot_be_written() {
    let folder = folder();
    let mount = "mount -t tmpfs -o ro none disk";
    let Some(output) = on_a_small_disk(folder.path(), mount, "plain 3") else {
        return;
    };
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    let said: Vec<&str> = said
        .lines()
        .filter(|line| !line.starts_with("cp: "))
        .collect();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("Read-only file system"), "{said:?}");
    let stdout = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(stdout, plain_output(folder.path()));
}

#[cfg(target_os = "linux")]
#[test]
fn a_session_by_hand_on_a_full_device_is_an_error_and_no_panic() {
    let ended = TraceSession::open("/dev/full", ProfileRun::training("step", 1, "cpu")).and_then(
        |session| {
            let _span = session.begin_span("work", candle_profiler::SpanKind::Function);
            drop(_span);
            session.finish()
        },
    );
    assert!(ended.is_err());
}

/// The name may have been a slip: then the file is somebody's data.
#[test]
fn data_under_the_name_of_a_trace_is_kept() {
    let folder = folder();
    let path = folder.path().join("train.jsonl");
    fs::write(&path, "{\"text\":\"my data\"}\n").expect("a file");
    let said = plain_at(folder.path(), "train.jsonl");
    assert_eq!(
        said,
        "candle-profiler: train.jsonl is there, and no trace of an earlier run that may be replaced: the trace becomes \
         train-2.jsonl\n"
    );
    let kept = fs::read_to_string(&path).expect("the file");
    assert_eq!(kept, "{\"text\":\"my data\"}\n");
    assert_eq!(files(folder.path()), ["train-2.jsonl", "train.jsonl"]);
    // A trace that broke off under this name is not given up either.
    let folder = self::folder();
    fs::write(folder.path().join("train.jsonl.partial"), "").expect("a file");
    let said = plain_at(folder.path(), "train.jsonl");
    assert_eq!(
        said,
        "candle-profiler: train.jsonl.partial was left there: the trace becomes train-2.jsonl\n"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told_once_however_many_steps_are_captured() {
    let folder = folder();
    let mount = "mount -t tmpfs -o size=64k none disk && export CANDLE_PROFILE_STEPS=every:1";
    let Some(output) = on_a_small_disk(folder.path(), mount, "burst 50") else {
        return;
    };
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(output.status.success(), "{said}");
    // A sanitizer's own memory may grow meanwhile.
    let growth = |line: &&str| line.contains("resident memory grew");
    let lines: Vec<&str> = said.lines().filter(|line| !growth(line)).collect();
    assert_eq!(lines.len(), 1, "{said}");
    assert!(lines[0].contains("No space left"), "{said}");
}

/// Runs the program under a limit of the shell's.
#[cfg(target_os = "linux")]
fn limited(folder: &Path, limit: &str, mode: &str) -> tests::program::Ran {
    let script = format!(
        "ulimit {limit}; exec {} {mode}",
        env!("CARGO_BIN_EXE_train")
    );
    let variables = [
        ("CANDLE_PROFILE", "traces"),
        ("CANDLE_PROFILE_SUMMARY", "off"),
    ];
    run("sh", folder, &["-c", &script], &variables)
}

#[cfg(target_os = "linux")]
#[test]
fn a_limit_of_the_size_of_files_ends_the_trace_and_not_the_program() {
    let folder = folder();
    let ran = limited(folder.path(), "-f 16", "flood 3");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let said = ran.only_line();
    assert!(said.contains("File too large"), "{said}");
    assert_eq!(
        files(folder.path()),
        ["traces/train-modes-flood_step-step2.jsonl.partial"]
    );
}

#[cfg(target_os = "linux")]
#[test]
fn where_there_is_no_handle_left_that_is_said() {
    let folder = folder();
    let ran = limited(folder.path(), "-n 40", "no-handles 3");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "done\n"));
    let said = ran.only_line();
    assert!(said.contains("Too many open files"), "{said}");
    assert_eq!(files(folder.path()), [] as [String; 0]);
}

/// The numbers of closed standard streams are given to the next file: that is not to be the trace, to which the program,
/// and the profiler, would then go on writing.
#[cfg(target_os = "linux")]
#[test]
fn a_trace_never_becomes_stdout_or_stderr() {
    let folder = folder();
    let variables = [("CANDLE_PROFILE", "traces")];
    let ran = run(
        env!("CARGO_BIN_EXE_train"),
        folder.path(),
        &["streams-closed", "3"],
        &variables,
    );
    assert_eq!(ran.code, Some(0));
    for trace in traces(folder.path()) {
        assert!(!trace.spans.is_empty());
    }
    assert_eq!(files(folder.path()).len(), 1);
}

#[test]
fn two_sessions_do_not_write_one_file() {
    let folder = folder();
    let path = folder.path().join("trace.jsonl");
    let run = || ProfileRun::training("step", 1, "cpu");
    let first = TraceSession::open(&path, run()).expect("a session");
    if cfg!(unix) {
        let error = TraceSession::open(&path, run()).err().expect("an error");
        assert!(error.to_string().contains("writes it"), "{error}");
    }
    drop(first.begin_measurement("step"));
    first.finish().expect("a trace");
    tests::trace::Trace::read(&path);
    // Once it is finished the next one may replace it.
    let next = TraceSession::open(&path, run()).expect("a session");
    drop(next.begin_measurement("step"));
    next.finish().expect("a trace");
}

#[test]
fn a_name_in_a_line_moves_no_cursor() {
    let folder = folder();
    let variables = [("CANDLE_PROFILE", "traces")];
    let train = env!("CARGO_BIN_EXE_train");
    let ran = run(train, folder.path(), &["odd-name-once"], &variables);
    assert_eq!(ran.code, Some(0));
    let said = ran.only_line();
    assert!(said.contains(r"new\nline\u{1b}[2J"), "{said}");
    assert!(!said.contains('\u{1b}') && said.len() < 40_000, "{said}");
}

#[test]
fn odd_names_stay_in_their_folder_and_in_their_lines() {
    let folder = folder();
    let variables = [
        ("CANDLE_PROFILE", "deep/traces"),
        ("CANDLE_PROFILE_STEPS", "every:1"),
        ("CANDLE_PROFILE_SUMMARY", "off"),
    ];
    let ran = run(
        env!("CARGO_BIN_EXE_train"),
        folder.path(),
        &["odd-names"],
        &variables,
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(
        ran.stderr.lines().count(),
        3,
        "the blank name and label: {}",
        ran.stderr
    );
    let files = files(folder.path());
    assert!(
        files
            .iter()
            .all(|file| file.starts_with("deep/traces/") && file.len() < 200)
    );
    let traces = traces(folder.path());
    assert_eq!((files.len(), traces.len()), (32, 32));
    let mut entrypoints = BTreeSet::new();
    for trace in &traces {
        let entrypoint = trace.meta()["entrypoint"]
            .as_str()
            .expect("a text")
            .to_owned();
        if !entrypoint.contains("load.rs") {
            assert_eq!(trace.labels(), [entrypoint.as_str()]);
            assert_eq!(trace.named(&entrypoint).len(), 3, "root, region, span");
        }
        entrypoints.insert(entrypoint);
    }
    assert_eq!(entrypoints.len(), 16);
    assert!(entrypoints.contains("nul\0 bell\u{7} escape\u{1b}[31m"));
    assert!(entrypoints.iter().any(|name| name.len() == 1_000_000));
}
