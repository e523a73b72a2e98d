//! The few operations that the kernels are written in, over eight numbers at once.

use super::element::Num;
use half::{bf16, f16};

/// Numbers in a vector.
pub(super) const WIDTH: usize = 8;

/// Eight numbers.
pub(super) trait Vector: Copy {
    type Num: Num;
    type Wide: WideVector;
    /// Counts, one for each place or for several; a chunk's elements at most.
    type Tally: Copy;
    fn splat(x: Self::Num) -> Self;
    fn load(numbers: &[Self::Num; WIDTH]) -> Self;
    fn store(self) -> [Self::Num; WIDTH];
    /// The lesser of each pair, `other` where they do not compare.
    fn less(self, other: Self) -> Self;
    /// The greater of each pair, `other` where they do not compare.
    fn more(self, other: Self) -> Self;
    fn magnitude(self) -> Self;
    /// Of each place `then` where this is below `limit`, else `other`; NaN is not below.
    fn if_below(self, limit: Self, then: Self, other: Self) -> Self;
    fn widen(self) -> Self::Wide;
    /// Nothing counted.
    fn none() -> Self::Tally;
    /// `tally` and one for each place where this is below `limit`; NaN is not.
    fn count_below(self, limit: Self, tally: Self::Tally) -> Self::Tally;
    /// `tally` and one for each place where this equals `limit`; NaN does not.
    fn count_equal(self, limit: Self, tally: Self::Tally) -> Self::Tally;
    /// The sum of all counts.
    fn total(tally: Self::Tally) -> u64;
}

/// Eight numbers of f64.
pub(super) trait WideVector: Vector<Num = f64> {
    /// `self * factor + addend`, in one rounding where the instruction set does.
    fn times_plus(self, factor: Self, addend: Self) -> Self;
    fn times(self, factor: Self) -> Self;
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
}

/// An instruction set: its vectors, and the formats that it decodes by instructions of its own.
pub(super) trait Isa: Copy {
    type Narrow: Vector<Num = f32, Wide = Self::Wide>;
    type Wide: WideVector<Wide = Self::Wide>;
    fn bf16(elements: &[bf16; WIDTH]) -> Self::Narrow;
    fn f16(elements: &[f16; WIDTH]) -> Self::Narrow;
    fn u8(elements: &[u8; WIDTH]) -> Self::Narrow;
    fn i16(elements: &[i16; WIDTH]) -> Self::Narrow;
}
