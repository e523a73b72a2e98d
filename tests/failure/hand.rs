//! The end of the process inside a session by hand.

use candle_profiler::view::{RepairOptions, repair};
use tests::program::{files, run};
use tests::trace::Trace;

#[test]
fn an_exit_ends_the_session_as_failed() {
    for (mode, code) in [("hand-exit", 3), ("hand-forget", 0)] {
        let folder = tempfile::tempdir().expect("a folder");
        let ran = run(env!("CARGO_BIN_EXE_train"), folder.path(), &[mode], &[]);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(code), ""));
        assert_eq!(files(folder.path()), ["hand.jsonl"]);
        let trace = Trace::read(&folder.path().join("hand.jsonl"));
        let reason = trace.reason();
        assert_eq!(reason, Some("the process exited inside the session"));
        for name in ["before", "after"] {
            assert!(!trace.span(name).end.is_null(), "{mode}: {name}");
        }
    }
}

#[cfg(unix)]
#[test]
fn a_killed_process_leaves_what_it_recorded() {
    let folder = tempfile::tempdir().expect("a folder");
    tests::program::kill_when_ready(
        env!("CARGO_BIN_EXE_train"),
        folder.path(),
        &["hand-hang"],
        &[],
    );
    let path = folder.path().join("hand.jsonl");
    let repaired = repair(&path, &RepairOptions::default()).expect("a repair");
    let trace = Trace::read(&repaired.path);
    assert!(!trace.span("before").end.is_null());
    assert!(trace.span("region").end.is_null());
}
