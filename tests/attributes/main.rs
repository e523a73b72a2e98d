//! The attributes on any code that Rust accepts.

#[macro_use]
extern crate candle_profiler;

#[allow(
    missing_docs,
    unreachable_pub,
    dead_code,
    clippy::undocumented_unsafe_blocks
)]
mod macro_cases;

#[allow(
    missing_docs,
    unreachable_pub,
    dead_code,
    clippy::undocumented_unsafe_blocks
)]
mod kin;

#[allow(
    missing_docs,
    unreachable_pub,
    dead_code,
    clippy::undocumented_unsafe_blocks
)]
mod hygiene;

#[allow(
    missing_docs,
    unreachable_pub,
    dead_code,
    clippy::undocumented_unsafe_blocks
)]
mod signatures;

#[allow(
    missing_docs,
    unreachable_pub,
    dead_code,
    clippy::undocumented_unsafe_blocks
)]
mod statements;

#[test]
fn annotated_code_behaves_as_before() {
    macro_cases::check_all();
    kin::check();
    hygiene::check();
    signatures::check();
    statements::check();
}
