//! Sizes of tensors, and what memory events say.

use serde::{Deserialize, Serialize};

use crate::phase::ExecutionStep;

/// What a tensor or a storage is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryCategory {
    /// A variable of the model.
    Parameter,
    /// A value of the forward direction.
    Activation,
    /// A value of the backward direction.
    Gradient,
    /// State of the optimizer.
    Optimizer,
    /// Anything else.
    #[default]
    Other,
}

/// Whether a storage came to life or ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryAction {
    /// It is there from now on, or another tensor shares it from now on.
    Alloc,
    /// It is gone.
    Free,
}

/// Bits of one element of a dtype as candle names it, in any case; none where unknown.
pub fn dtype_size_bits(dtype: &str) -> Option<u64> {
    Some(match dtype.trim().to_ascii_lowercase().as_str() {
        "f4" => 4,
        "f6e2m3" | "f6e3m2" => 6,
        "u8" | "i8" | "bool" | "f8" | "f8e4m3" | "f8e8m0" => 8,
        "u16" | "i16" | "f16" | "bf16" => 16,
        "u32" | "i32" | "f32" => 32,
        "u64" | "i64" | "f64" => 64,
        _ => return None,
    })
}

/// Bytes of one element; none where the dtype is unknown or its elements share bytes.
pub fn dtype_size_bytes(dtype: &str) -> Option<usize> {
    match dtype_size_bits(dtype)? {
        8 => Some(1),
        16 => Some(2),
        32 => Some(4),
        64 => Some(8),
        _ => None,
    }
}

/// Elements of a tensor of this shape; 1 for the empty shape. Saturates.
pub fn elem_count(shape: &[usize]) -> u64 {
    shape
        .iter()
        .fold(1, |count: u64, &dim| count.saturating_mul(dim as u64))
}

/// Elements of a tensor of this shape, as the format counts them: none where a product on the way
/// does not fit, even if a later dimension is 0.
pub(crate) fn exact_elem_count(shape: &[usize]) -> Option<u64> {
    shape
        .iter()
        .try_fold(1, |count: u64, &dim| count.checked_mul(dim as u64))
}

/// Bytes of a tensor laid out without gaps, rounded up to whole bytes; none where the dtype is
/// unknown. Saturates.
pub fn dense_tensor_bytes(shape: &[usize], dtype: &str) -> Option<u64> {
    let bits = u128::from(elem_count(shape)) * u128::from(dtype_size_bits(dtype)?);
    Some(u64::try_from(bits.div_ceil(8)).unwrap_or(u64::MAX))
}

/// `explicit` where given, else [`dense_tensor_bytes`].
pub fn resolve_dense_tensor_bytes(
    explicit: Option<u64>,
    shape: &[usize],
    dtype: &str,
) -> Option<u64> {
    explicit.or_else(|| dense_tensor_bytes(shape, dtype))
}

/// What a tensor made in this step is for.
pub fn category_for_step(step: Option<ExecutionStep>, requires_grad: bool) -> MemoryCategory {
    match step {
        Some(ExecutionStep::Forward) => MemoryCategory::Activation,
        Some(ExecutionStep::Backward) => MemoryCategory::Gradient,
        Some(ExecutionStep::Optimizer) => MemoryCategory::Optimizer,
        None if requires_grad => MemoryCategory::Parameter,
        None => MemoryCategory::Activation,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_format() {
        for (dtype, shape, bytes) in [
            ("u8", &[3usize][..], 3),
            ("F8E4M3", &[3], 3),
            ("f8e8m0", &[3], 3),
            ("i16", &[3], 6),
            ("f16", &[3], 6),
            ("bf16", &[3], 6),
            ("u32", &[3], 12),
            ("i32", &[2, 3], 24),
            ("f32", &[], 4),
            ("i64", &[3], 24),
            ("f64", &[3, 0], 0),
            ("f6e2m3", &[3], 3),
            ("f6e3m2", &[5], 4),
            ("f4", &[3], 2),
        ] {
            assert_eq!(
                dense_tensor_bytes(shape, dtype),
                Some(bytes),
                "{dtype} {shape:?}"
            );
        }
        assert_eq!(dense_tensor_bytes(&[1], "q4_0"), None);
        assert_eq!(dense_tensor_bytes(&[usize::MAX, 2], "f64"), Some(u64::MAX));
        assert_eq!(dtype_size_bytes("f4"), None);
        assert_eq!(resolve_dense_tensor_bytes(Some(7), &[1], "f32"), Some(7));
    }

    #[test]
    fn an_overflow_on_the_way_is_no_count() {
        assert_eq!(exact_elem_count(&[]), Some(1));
        assert_eq!(exact_elem_count(&[usize::MAX, 2, 0]), None);
        assert_eq!(exact_elem_count(&[0, usize::MAX, 2]), Some(0));
    }
}
