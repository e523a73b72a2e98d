//! Vectors for any target: arrays, in loops plain enough for the compiler's vectoriser.

use super::element::{Element, Num};
use super::vector::{Isa, Vector, WIDTH, WideVector};
use half::{bf16, f16};

/// What the target always has.
#[derive(Clone, Copy)]
pub(super) struct Portable;

/// The target has fused multiply-add, without which `mul_add` is a library call.
const FUSED: bool = cfg!(any(target_arch = "aarch64", target_feature = "fma"));

#[derive(Clone, Copy)]
pub(super) struct Array<N>([N; WIDTH]);

impl<N: Num> Array<N> {
    #[inline(always)]
    fn zip(mut self, other: Self, f: impl Fn(N, N) -> N) -> Self {
        for lane in 0..WIDTH {
            self.0[lane] = f(self.0[lane], other.0[lane]);
        }
        self
    }

    #[inline(always)]
    fn choose(self, limit: Self, then: Self, other: Self, f: impl Fn(N, N) -> bool) -> Self {
        let mut chosen = other;
        for lane in 0..WIDTH {
            let yes = f(self.0[lane], limit.0[lane]);
            chosen.0[lane] = if yes { then.0[lane] } else { other.0[lane] };
        }
        chosen
    }
}

impl<N: Num> Vector for Array<N> {
    type Num = N;
    type Wide = Array<f64>;

    #[inline(always)]
    fn splat(x: N) -> Self {
        Array([x; WIDTH])
    }

    #[inline(always)]
    fn load(numbers: &[N; WIDTH]) -> Self {
        Array(*numbers)
    }

    #[inline(always)]
    fn store(self) -> [N; WIDTH] {
        self.0
    }

    #[inline(always)]
    fn less(self, other: Self) -> Self {
        self.zip(other, |a, b| if a < b { a } else { b })
    }

    #[inline(always)]
    fn more(self, other: Self) -> Self {
        self.zip(other, |a, b| if a > b { a } else { b })
    }

    #[inline(always)]
    fn magnitude(self) -> Self {
        self.zip(self, |a, _| a.magnitude())
    }

    #[inline(always)]
    fn if_below(self, limit: Self, then: Self, other: Self) -> Self {
        self.choose(limit, then, other, |a, b| a < b)
    }

    /// As floats: loops over them become vectors of the same width as the numbers'.
    type Tally = Self;

    #[inline(always)]
    fn none() -> Self {
        Self::splat(N::ZERO)
    }

    #[inline(always)]
    fn count_below(self, limit: Self, tally: Self) -> Self {
        let one = self.choose(limit, Self::splat(N::ONE), Self::none(), |a, b| a < b);
        tally.zip(one, |a, b| a + b)
    }

    #[inline(always)]
    fn count_equal(self, limit: Self, tally: Self) -> Self {
        let one = self.choose(limit, Self::splat(N::ONE), Self::none(), |a, b| a == b);
        tally.zip(one, |a, b| a + b)
    }

    #[inline(always)]
    fn total(tally: Self) -> u64 {
        tally.0.into_iter().map(Num::wide).sum::<f64>() as u64
    }

    #[inline(always)]
    fn widen(self) -> Array<f64> {
        let mut wide = [0.0; WIDTH];
        for (to, x) in wide.iter_mut().zip(&self.0) {
            *to = x.wide();
        }
        Array(wide)
    }
}

impl WideVector for Array<f64> {
    #[inline(always)]
    fn times_plus(mut self, factor: Self, addend: Self) -> Self {
        for lane in 0..WIDTH {
            let (a, b, c) = (self.0[lane], factor.0[lane], addend.0[lane]);
            self.0[lane] = if FUSED { a.mul_add(b, c) } else { a * b + c };
        }
        self
    }

    #[inline(always)]
    fn times(self, factor: Self) -> Self {
        self.zip(factor, |a, b| a * b)
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self.zip(other, |a, b| a + b)
    }

    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        self.zip(other, |a, b| a - b)
    }
}

#[inline(always)]
fn decode<T: Element>(elements: &[T; WIDTH]) -> Array<T::Num> {
    let mut numbers = [T::Num::ZERO; WIDTH];
    for lane in 0..WIDTH {
        numbers[lane] = elements[lane].num();
    }
    Array(numbers)
}

impl Isa for Portable {
    type Narrow = Array<f32>;
    type Wide = Array<f64>;

    #[inline(always)]
    fn bf16(elements: &[bf16; WIDTH]) -> Array<f32> {
        decode(elements)
    }

    #[inline(always)]
    fn f16(elements: &[f16; WIDTH]) -> Array<f32> {
        decode(elements)
    }

    #[inline(always)]
    fn u8(elements: &[u8; WIDTH]) -> Array<f32> {
        decode(elements)
    }

    #[inline(always)]
    fn i16(elements: &[i16; WIDTH]) -> Array<f32> {
        decode(elements)
    }
}
