//! The number formats that candle stores, and how one stored element becomes a float.
//!
//! Every decoder is branch-free arithmetic on the bits, so that a loop over it becomes vector code.

use super::census::Limits;
use super::kernel::Chunk;
use super::path::Path;
use super::vector::{Isa, Vector, WIDTH};
use half::{bf16, f16};
use std::ops::{Add, Mul, Sub};

/// The float that minima, maxima and comparisons are made in: exact for the elements that use it.
pub(super) trait Num:
    Native<Num = Self> + PartialOrd + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self>
{
    /// Eight of them on an instruction set.
    type Vector<I: Isa>: Vector<Num = Self, Wide = I::Wide>;
    const ZERO: Self;
    const ONE: Self;
    const NAN: Self;
    const INFINITY: Self;
    const NEG_INFINITY: Self;
    fn magnitude(self) -> Self;
    fn wide(self) -> f64;
}

macro_rules! num {
    ($float:ty, $vector:ident) => {
        impl Num for $float {
            type Vector<I: Isa> = I::$vector;
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const NAN: Self = <$float>::NAN;
            const INFINITY: Self = <$float>::INFINITY;
            const NEG_INFINITY: Self = <$float>::NEG_INFINITY;
            #[inline(always)]
            fn magnitude(self) -> Self {
                self.abs()
            }
            #[inline(always)]
            fn wide(self) -> f64 {
                self.into()
            }
        }
    };
}
num!(f32, Narrow);
num!(f64, Wide);

/// One stored element.
pub(super) trait Element: Copy {
    type Num: Num;
    /// Fractions of the format exist, so overflow and underflow mean something.
    const FLOAT: bool;
    /// The smallest normal magnitude; 1 for integers, below which only zero lies.
    const MIN_NORMAL: Self::Num;
    /// 90 % of the largest finite value, rounded down; infinite for integers.
    const NEAR_MAX: Self::Num;

    fn num(self) -> Self::Num;

    /// Everything about one chunk; with `holes` some of it is most likely not finite. Formats that
    /// the kernels do not read are decoded first.
    fn chunk(path: Path, elements: &[Self], holes: bool) -> Chunk {
        path.decoded(elements, |numbers| {
            path.native(numbers, Limits::of::<Self>(), holes)
        })
    }

    /// Whether a chunk holds NaN or +inf, or with `both` an infinity of any sign.
    fn any_alarm(path: Path, elements: &[Self], both: bool) -> bool {
        path.decoded(elements, |numbers| path.native_alarm(numbers, both))
    }
}

/// An element that the kernels read as it lies in memory.
pub(super) trait Native: Element {
    /// Eight elements as numbers.
    fn vector<I: Isa>(elements: &[Self; WIDTH]) -> <Self::Num as Num>::Vector<I>;
}

/// The methods of an element that the kernels read.
macro_rules! native {
    () => {
        fn chunk(path: Path, elements: &[Self], holes: bool) -> Chunk {
            path.native(elements, Limits::of::<Self>(), holes)
        }

        fn any_alarm(path: Path, elements: &[Self], both: bool) -> bool {
            path.native_alarm(elements, both)
        }
    };
}
pub(super) use native;

/// 90 % of `max` as the largest f32 that is not above it: `x > t` then holds for an f32 `x` exactly
/// where it holds in real numbers.
pub(super) const fn near_max(max: f64) -> f32 {
    let limit = 0.9 * max;
    let rounded = limit as f32;
    if rounded as f64 > limit {
        rounded.next_down()
    } else {
        rounded
    }
}

impl Element for f64 {
    type Num = f64;
    const FLOAT: bool = true;
    const MIN_NORMAL: f64 = f64::MIN_POSITIVE;
    const NEAR_MAX: f64 = 0.9 * f64::MAX;
    #[inline(always)]
    fn num(self) -> f64 {
        self
    }

    native!();
}

impl Native for f64 {
    #[inline(always)]
    fn vector<I: Isa>(elements: &[Self; WIDTH]) -> I::Wide {
        Vector::load(elements)
    }
}

impl Element for f32 {
    type Num = f32;
    const FLOAT: bool = true;
    const MIN_NORMAL: f32 = f32::MIN_POSITIVE;
    const NEAR_MAX: f32 = near_max(f32::MAX as f64);
    #[inline(always)]
    fn num(self) -> f32 {
        self
    }

    native!();
}

impl Native for f32 {
    #[inline(always)]
    fn vector<I: Isa>(elements: &[Self; WIDTH]) -> I::Narrow {
        Vector::load(elements)
    }
}

impl Element for bf16 {
    type Num = f32;
    const FLOAT: bool = true;
    const MIN_NORMAL: f32 = f32::MIN_POSITIVE;
    const NEAR_MAX: f32 = near_max(f32::from_bits(0x7f7f_0000) as f64);
    #[inline(always)]
    fn num(self) -> f32 {
        f32::from_bits(u32::from(self.to_bits()) << 16)
    }

    native!();
}

impl Native for bf16 {
    #[inline(always)]
    fn vector<I: Isa>(elements: &[Self; WIDTH]) -> I::Narrow {
        I::bf16(elements)
    }
}

/// An f32 from the fields of a shorter float: `magnitude` without its sign, `shift` mantissa bits
/// fewer than f32 has, an exponent bias smaller by `bias`.
#[inline(always)]
pub(super) fn expand(magnitude: u32, shift: u32, bias: u32) -> u32 {
    let normal = (magnitude << shift) + (bias << 23);
    // A subnormal is its mantissa behind the exponent of the smallest normal, less that normal.
    let one = (bias + 1) << 23;
    let subnormal = f32::from_bits((magnitude << shift) + one) - f32::from_bits(one);
    if magnitude << shift < 1 << 23 {
        subnormal.to_bits()
    } else {
        normal
    }
}

impl Element for f16 {
    type Num = f32;
    const FLOAT: bool = true;
    const MIN_NORMAL: f32 = 1.0 / 16384.0;
    const NEAR_MAX: f32 = near_max(65504.0);
    #[inline(always)]
    fn num(self) -> f32 {
        let bits = u32::from(self.to_bits());
        let magnitude = bits & 0x7fff;
        let finite = expand(magnitude, 13, 112);
        let not_finite = (magnitude << 13) | 0x7f80_0000;
        let chosen = if magnitude < 0x7c00 {
            finite
        } else {
            not_finite
        };
        f32::from_bits(chosen | (bits & 0x8000) << 16)
    }

    native!();
}

impl Native for f16 {
    #[inline(always)]
    fn vector<I: Isa>(elements: &[Self; WIDTH]) -> I::Narrow {
        I::f16(elements)
    }
}
