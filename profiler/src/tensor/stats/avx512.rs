//! Vectors for AVX-512: the eight f64 that all sums are made of fill one register, so adding up takes half the
//! instructions that AVX2 needs; the f32 stay in registers of AVX2.
//!
//! Every function here is part of a kernel that `path` compiles with these features and runs only
//! on a processor that was asked for them.

use super::narrow::narrow;
use super::vector::{Isa, Vector, WIDTH, WideVector};
use half::{bf16, f16};
use std::arch::x86_64::*;

/// Only `path` names it, behind its proof that the processor has AVX-512F, AVX2, FMA and F16C.
#[derive(Clone, Copy)]
pub(super) struct Avx512;

/// Eight f64.
#[derive(Clone, Copy)]
pub(super) struct Wide(__m512d);

/// An expression of intrinsics.
macro_rules! avx512 {
    ($($body:tt)*) => {
        // SAFETY: only reached by kernels that run where AVX-512F, AVX2, FMA and F16C are; what
        // memory is accessed is that of a reference to all of it.
        unsafe { $($body)* }
    };
}

narrow!(Avx512, Narrow, Wide, avx512, x => Wide(_mm512_cvtps_pd(x)));

impl Vector for Wide {
    type Num = f64;
    type Wide = Wide;
    /// One count for all places.
    type Tally = u64;

    #[inline(always)]
    fn splat(x: f64) -> Self {
        avx512! { Wide(_mm512_set1_pd(x)) }
    }

    #[inline(always)]
    fn load(numbers: &[f64; WIDTH]) -> Self {
        avx512! { Wide(_mm512_loadu_pd(numbers.as_ptr())) }
    }

    #[inline(always)]
    fn store(self) -> [f64; WIDTH] {
        let mut numbers = [0.0; WIDTH];
        avx512! { _mm512_storeu_pd(numbers.as_mut_ptr(), self.0) };
        numbers
    }

    #[inline(always)]
    fn less(self, other: Self) -> Self {
        avx512! { Wide(_mm512_min_pd(self.0, other.0)) }
    }

    #[inline(always)]
    fn more(self, other: Self) -> Self {
        avx512! { Wide(_mm512_max_pd(self.0, other.0)) }
    }

    #[inline(always)]
    fn magnitude(self) -> Self {
        avx512! { Wide(_mm512_abs_pd(self.0)) }
    }

    #[inline(always)]
    fn if_below(self, limit: Self, then: Self, other: Self) -> Self {
        avx512! {
            let yes = _mm512_cmp_pd_mask::<_CMP_LT_OQ>(self.0, limit.0);
            Wide(_mm512_mask_blend_pd(yes, other.0, then.0))
        }
    }

    #[inline(always)]
    fn widen(self) -> Wide {
        self
    }

    #[inline(always)]
    fn none() -> u64 {
        0
    }

    #[inline(always)]
    fn count_below(self, limit: Self, tally: u64) -> u64 {
        let yes = avx512! { _mm512_cmp_pd_mask::<_CMP_LT_OQ>(self.0, limit.0) };
        tally + u64::from(yes.count_ones())
    }

    #[inline(always)]
    fn count_equal(self, limit: Self, tally: u64) -> u64 {
        let yes = avx512! { _mm512_cmp_pd_mask::<_CMP_EQ_OQ>(self.0, limit.0) };
        tally + u64::from(yes.count_ones())
    }

    #[inline(always)]
    fn total(tally: u64) -> u64 {
        tally
    }
}

impl WideVector for Wide {
    #[inline(always)]
    fn times_plus(self, factor: Self, addend: Self) -> Self {
        avx512! { Wide(_mm512_fmadd_pd(self.0, factor.0, addend.0)) }
    }

    #[inline(always)]
    fn times(self, factor: Self) -> Self {
        avx512! { Wide(_mm512_mul_pd(self.0, factor.0)) }
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        avx512! { Wide(_mm512_add_pd(self.0, other.0)) }
    }

    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        avx512! { Wide(_mm512_sub_pd(self.0, other.0)) }
    }
}
