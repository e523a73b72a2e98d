//! The option `ops`: which calls it records, and that it changes none.

#[macro_use]
extern crate candle_profiler;

#[allow(
    missing_docs,
    unreachable_pub,
    dead_code,
    clippy::all,
    clippy::undocumented_unsafe_blocks
)]
mod macro_cases {
    include!(concat!(env!("OUT_DIR"), "/macro_cases.rs"));
}

#[allow(
    missing_docs,
    unreachable_pub,
    dead_code,
    clippy::all,
    clippy::undocumented_unsafe_blocks
)]
mod kin {
    include!(concat!(env!("OUT_DIR"), "/kin.rs"));
}

#[test]
fn annotated_code_behaves_as_before() {
    // What the measured ones among them leave behind is valid, too.
    let ((), traces) = tests::capturing::captures(|| {
        macro_cases::check_all();
        kin::check();
    });
    assert!(traces.len() > 20);
}

#[allow(clippy::all, reason = "forms that nobody would write, too")]
mod bodies;
#[allow(
    clippy::all,
    unreachable_pub,
    reason = "forms that nobody would write, too"
)]
mod forms;
mod recorded;
