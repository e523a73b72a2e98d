//! The end of the process in the middle of a measured call.

use std::fs;

use tests::program::{command, files, traces};
use tests::trace::Trace;

use crate::train;

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

#[test]
fn an_err_fails_the_trace_and_leaves_the_program_alone() {
    let folder = folder();
    let ran = train(folder.path(), "error 4");
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert_eq!(ran.stdout, "step 2: batch 2 is empty\n");
    let trace = &traces(folder.path())[0];
    assert_eq!(trace.reason(), Some("batch 2 is empty"));
    assert_eq!(trace.tree(), "train::modes::failing_step*\n  load\n");
    assert_eq!(
        files(folder.path()).len(),
        1,
        "a failed call is evidence: none after it is captured"
    );
}

#[test]
fn a_panic_that_ends_the_program_still_leaves_a_whole_trace() {
    let folder = folder();
    let ran = train(folder.path(), "panic 4");
    assert_eq!(ran.code, Some(101));
    assert!(ran.stderr.contains("no gradient in step 2"));
    assert!(!ran.stderr.contains("candle-profiler"), "{}", ran.stderr);
    let trace = &traces(folder.path())[0];
    let reason = trace.reason().expect("a reason");
    assert!(
        reason.starts_with("panicked at tests/src/bin/train/modes.rs:"),
        "{reason}"
    );
    assert!(reason.ends_with(": no gradient in step 2"), "{reason}");
    assert!(trace.measured().is("panicked") && trace.span("load").is("panicked"));
}

#[test]
fn a_panic_caught_outside_fails_its_call_and_no_other() {
    let folder = folder();
    let ran = train(folder.path(), "panic-caught 4");
    assert_eq!(ran.code, Some(0));
    assert_eq!(
        ran.stdout,
        "step 1: ok\nstep 2: lost\nstep 3: ok\nstep 4: ok\n"
    );
    let traces = traces(folder.path());
    assert_eq!(traces.len(), 1);
    assert!(traces[0].reason().is_some());
}

#[test]
fn an_exit_inside_the_call_closes_its_trace_as_failed() {
    let folder = folder();
    let ran = train(folder.path(), "exit 4");
    assert_eq!(ran.code, Some(3));
    assert_eq!(
        (ran.stdout.as_str(), ran.stderr.as_str()),
        ("step 1\nstep 2\n", "")
    );
    let trace = &traces(folder.path())[0];
    assert_eq!(
        trace.reason(),
        Some("the process exited inside the measured region")
    );
    assert_eq!(
        trace.tree(),
        "train::modes::exiting_step*!open_at_end\n  \
           load!open_at_end\n    \
             train::modes::give_up forward!open_at_end\n"
    );
    let end = &trace.terminal()["timestamp_ns"];
    for span in &trace.spans {
        assert_eq!(
            span.time.1,
            end.as_u64().expect("a time"),
            "all end at once"
        );
    }
}

#[cfg(unix)]
#[test]
fn what_a_killed_process_recorded_is_in_its_partial() {
    let folder = folder();
    let variables = [("CANDLE_PROFILE", "traces")];
    tests::program::kill_when_ready(
        env!("CARGO_BIN_EXE_train"),
        folder.path(),
        &["hang"],
        &variables,
    );
    let partial = "traces/train-modes-endless_step-step2.jsonl.partial";
    assert_eq!(files(folder.path()), [partial]);
    let text = fs::read_to_string(folder.path().join(partial)).expect("the file");
    // The program waited 250 ms after its last span before it said that it was ready.
    let whole = &text[..=text.rfind('\n').expect("a line")];
    let trace = Trace::parse(whole);
    let work: Vec<_> = trace
        .spans
        .iter()
        .filter(|span| span.name.starts_with("work "))
        .collect();
    assert_eq!(work.len(), 100);
    assert!(work.iter().all(|span| !span.end.is_null()));
    assert!(trace.span("wait").end.is_null() && trace.measured().end.is_null());
    assert_eq!(trace.meta()["capture_step"], 2);

    let next = train(folder.path(), "empty-first 6");
    assert!(next.only_line().contains(partial), "{}", next.stderr);
    assert_eq!(
        fs::read_to_string(folder.path().join(partial)).expect("the file"),
        text
    );
}

#[cfg(unix)]
#[test]
fn a_forked_child_writes_nothing_and_waits_for_nobody() {
    let plain = tests::program::run(
        env!("CARGO_BIN_EXE_train"),
        folder().path(),
        &["fork", "3"],
        &[],
    );
    assert_eq!(plain.code, Some(0));
    for steps in ["1..=3", "2"] {
        let folder = folder();
        let variables = [
            ("CANDLE_PROFILE", "traces"),
            ("CANDLE_PROFILE_STEPS", steps),
            ("CANDLE_PROFILE_SUMMARY", "off"),
        ];
        let ran = tests::program::run(
            env!("CARGO_BIN_EXE_train"),
            folder.path(),
            &["fork", "3"],
            &variables,
        );
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
        assert_eq!(ran.stdout, plain.stdout);
        let traces = traces(folder.path());
        assert_eq!(files(folder.path()).len(), traces.len());
        assert_eq!(traces.len(), if steps == "2" { 1 } else { 3 });
        for trace in traces {
            assert_eq!(trace.reason(), None);
            assert_eq!(trace.named("of the child").len(), 0);
            assert_eq!(
                trace.path(trace.span("Model::forward")).last(),
                Some(&"outer")
            );
            assert_eq!(trace.named("Training::update").len(), 1);
        }
    }
}

/// A lock that another thread held at the fork is never let go of in the child.
#[cfg(unix)]
#[test]
fn a_forked_child_takes_no_lock_of_its_parents_threads() {
    let folder = folder();
    let variables = [
        ("CANDLE_PROFILE", "traces"),
        ("CANDLE_PROFILE_STEPS", "5,every:20000"),
        ("CANDLE_PROFILE_NONFINITE", "watch"),
        ("CANDLE_PROFILE_SUMMARY", "off"),
    ];
    let arguments = ["fork-beside-threads", "300"];
    let ran = tests::program::run(
        env!("CARGO_BIN_EXE_train"),
        folder.path(),
        &arguments,
        &variables,
    );
    assert_eq!(
        (ran.code, ran.stdout.as_str(), ran.stderr.as_str()),
        (Some(0), "300 children\n", "")
    );
    for trace in traces(folder.path()) {
        assert_eq!(trace.reason(), None);
    }
}

#[test]
fn a_program_that_keeps_stderr_locked_holds_nobody() {
    let folder = folder();
    let variables = [("CANDLE_PROFILE", "traces")];
    let ran = tests::program::run(
        env!("CARGO_BIN_EXE_train"),
        folder.path(),
        &["stderr-held", "3"],
        &variables,
    );
    assert_eq!(ran.code, Some(0));
    assert!(ran.stderr.contains("train step 2"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("no progress"), "{}", ran.stderr);
    assert_eq!(traces(folder.path()).len(), 1);
}

/// A parent that reads its child's stderr only when the child has ended: a summary for each step is more than the pipe
/// between them holds.
#[cfg(unix)]
#[test]
fn a_stderr_that_nobody_reads_holds_nobody_for_ever() {
    let folder = folder();
    let variables = [
        ("CANDLE_PROFILE", "traces"),
        ("CANDLE_PROFILE_STEPS", "every:1"),
    ];
    let train = env!("CARGO_BIN_EXE_train");
    let mut child = command(train, folder.path(), &["plain", "150"], &variables)
        .spawn()
        .expect("a child");
    let pipe = child.stderr.take().expect("stderr");
    let status = end_of(child);
    drop(pipe);
    assert!(status.success());
    assert_eq!(traces(folder.path()).len(), 150);
}

/// How a program ends that must not wait for anybody.
#[cfg(unix)]
fn end_of(mut child: std::process::Child) -> std::process::ExitStatus {
    for _ in 0..1200 {
        if let Some(status) = child.try_wait().expect("its state") {
            return status;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    child.kill().expect("its end");
    panic!("the program waits for somebody who reads its stderr");
}

/// A terminal says that it has room when there is room for a few bytes.
#[cfg(target_os = "linux")]
#[test]
fn a_terminal_that_nobody_reads_holds_nobody_for_ever() {
    use std::io::{Read, Write};
    use std::os::unix::fs::OpenOptionsExt;

    const O_NONBLOCK: i32 = 0o4000;
    const O_NOCTTY: i32 = 0o400;
    let Some((mut keeper, terminal)) = terminal() else {
        eprintln!("no terminal can be had here: not checked");
        return;
    };
    let open = |flags| {
        let mut options = fs::File::options();
        options.write(true).custom_flags(O_NOCTTY | flags);
        options.open(&terminal).expect("the terminal")
    };
    let mut filler = open(O_NONBLOCK);
    while filler.write(&[b'x'; 64]).is_ok() {}
    while filler.write(b"x").is_ok() {}
    // Room for less than a line.
    keeper.read_exact(&mut [0; 40]).expect("what was written");
    let folder = folder();
    let variables = [("CANDLE_PROFILE", "traces"), ("CANDLE_PROFILE_STEPS", "50")];
    let train = env!("CARGO_BIN_EXE_train");
    let mut command = command(train, folder.path(), &["plain", "3"], &variables);
    let child = command.stderr(open(0)).spawn().expect("a child");
    assert!(end_of(child).success());
}

/// A terminal of the system's: who reads what is written to it, and its path.
#[cfg(target_os = "linux")]
fn terminal() -> Option<(fs::File, String)> {
    use std::ffi::{CStr, c_char, c_int};
    use std::os::fd::FromRawFd;

    const O_RDWR: c_int = 2;
    const O_NOCTTY: c_int = 0o400;
    unsafe extern "C" {
        /// POSIX, `stdlib.h`, as are the others.
        safe fn posix_openpt(flags: c_int) -> c_int;
        safe fn grantpt(keeper: c_int) -> c_int;
        safe fn unlockpt(keeper: c_int) -> c_int;
        /// The path of the other side.
        fn ptsname_r(keeper: c_int, path: *mut c_char, length: usize) -> c_int;
    }
    let keeper = posix_openpt(O_RDWR | O_NOCTTY);
    if keeper < 0 || grantpt(keeper) != 0 || unlockpt(keeper) != 0 {
        return None;
    }
    let mut path = [0 as c_char; 128];
    // SAFETY: the buffer is as long as is said.
    if unsafe { ptsname_r(keeper, path.as_mut_ptr(), path.len()) } != 0 {
        return None;
    }
    // SAFETY: the call has put a text with its end into the buffer.
    let path = unsafe { CStr::from_ptr(path.as_ptr()) };
    // SAFETY: the descriptor was just made and is nobody else's.
    let keeper = unsafe { fs::File::from_raw_fd(keeper) };
    Some((keeper, path.to_str().ok()?.to_owned()))
}

/// A program may have set that a pipe without a reader ends it; what the profiler says must not.
#[cfg(unix)]
#[test]
fn a_stderr_whose_reader_has_gone_ends_nobody() {
    let folder = folder();
    let variables = [("CANDLE_PROFILE", "traces")];
    let train = env!("CARGO_BIN_EXE_train");
    let mut child = command(train, folder.path(), &["pipe-ends", "3"], &variables)
        .spawn()
        .expect("a child");
    drop(child.stderr.take());
    assert!(end_of(child).success());
}
