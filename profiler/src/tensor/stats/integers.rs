//! Integers: they have neither fractions nor infinities, and large ones have more digits than f64.

use super::census::Limits;
use super::element::{Element, Native, Num, native};
use super::kernel::Chunk;
use super::path::Path;
use super::vector::{Isa, Vector, WIDTH};

/// An integer as the float `$num`, by the function `$decoded`; eight of them by `$vector`.
macro_rules! integer {
    ($int:ty => $num:ty, $decoded:expr, $vector:expr) => {
        impl Element for $int {
            type Num = $num;
            const FLOAT: bool = false;
            const MIN_NORMAL: $num = 1.0;
            const NEAR_MAX: $num = <$num>::INFINITY;
            #[inline(always)]
            fn num(self) -> $num {
                $decoded(self)
            }

            native!();
        }

        impl Native for $int {
            #[inline(always)]
            fn vector<I: Isa>(elements: &[Self; WIDTH]) -> <$num as Num>::Vector<I> {
                $vector(elements)
            }
        }
    };
}
integer!(u8 => f32, f32::from, I::u8);
integer!(i16 => f32, f32::from, I::i16);
integer!(i32 => f64, f64::from, by_decoder::<I, _>);
integer!(u32 => f64, wide_u32, by_decoder::<I, _>);

/// Eight elements by their own decoder, whose arithmetic becomes vector code.
#[inline(always)]
fn by_decoder<I: Isa, T: Element>(elements: &[T; WIDTH]) -> <T::Num as Num>::Vector<I> {
    let mut numbers = [T::Num::ZERO; WIDTH];
    for (to, x) in numbers.iter_mut().zip(elements) {
        *to = x.num();
    }
    Vector::load(&numbers)
}

/// The exponent of 2^52: bits put behind it are a number larger by 2^52.
const LOW: u64 = (1023 + 52) << 52;
/// The exponent of 2^84, behind which bits count 2^32 times as much.
const HIGH: u64 = (1023 + 84) << 52;

/// As `f64::from`, for which x86-64 has no vector instruction before AVX-512.
#[inline(always)]
fn wide_u32(x: u32) -> f64 {
    f64::from_bits(u64::from(x) | LOW) - f64::from_bits(LOW)
}

/// Below this sums of integers in f64 are exact.
const EXACT: f64 = (1u64 << 53) as f64;

impl Element for i64 {
    type Num = f64;
    const FLOAT: bool = false;
    const MIN_NORMAL: f64 = 1.0;
    const NEAR_MAX: f64 = f64::INFINITY;

    /// As `self as f64`, for which x86-64 has no vector instruction before AVX-512: both halves are
    /// put behind exponents, and only their sum is rounded.
    #[inline(always)]
    fn num(self) -> f64 {
        let bits = self as u64 ^ (1 << 63);
        let high = f64::from_bits(bits >> 32 | HIGH);
        let low = f64::from_bits(bits & u64::from(u32::MAX) | LOW);
        // The exponents' own values, and 2^63, which turned the sign into a digit.
        const BOTH: f64 = f64::from_bits(HIGH) + f64::from_bits(LOW) + (1u64 << 63) as f64;
        (high - BOTH) + low
    }

    fn chunk(path: Path, elements: &[Self], holes: bool) -> Chunk {
        let mut chunk = path.native(elements, Limits::of::<Self>(), holes);
        let largest = chunk.max.max(-chunk.min);
        if largest * elements.len() as f64 >= EXACT {
            chunk.sums.sum = exact_sum(elements);
        }
        chunk
    }

    fn any_alarm(_: Path, _: &[Self], _: bool) -> bool {
        false
    }
}

impl Native for i64 {
    #[inline(always)]
    fn vector<I: Isa>(elements: &[Self; WIDTH]) -> I::Wide {
        by_decoder::<I, _>(elements)
    }
}

/// The sum of a chunk's elements, in two parts: as f64 large ones lose digits.
fn exact_sum(elements: &[i64]) -> (f64, f64) {
    // Halves are summed apart, which stays in 64 bits for the length of a chunk.
    let (mut high, mut low) = (0i64, 0u64);
    for x in elements {
        high += x >> 32;
        low += u64::from(*x as u32);
    }
    let exact = (i128::from(high) << 32) + i128::from(low);
    // Both parts are exact: a chunk's sum has fewer than twice 53 bits.
    (exact as f64, (exact - exact as f64 as i128) as f64)
}
