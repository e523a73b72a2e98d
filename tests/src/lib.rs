//! What the tests share.

pub mod capturing;
pub mod program;
pub mod trace;
mod verdict;

pub use verdict::*;
