//! Words that go with numbers.

use super::text::count;

/// `1 tensor`, `1,200 tensors`
pub(crate) fn counted(number: u64, one: &str, many: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ => format!("{} {many}", count(number)),
    }
}
