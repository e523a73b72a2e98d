//! Vectors in AVX2 registers, with FMA and F16C.
//!
//! Every function here is part of a kernel that `path` compiles with these features and runs only
//! on a processor that was asked for them.

use super::narrow::narrow;
use super::vector::{Isa, Vector, WIDTH, WideVector};
use half::{bf16, f16};
use std::arch::x86_64::*;

/// Only `path` names it, behind its proof that the processor has AVX2, FMA and F16C.
#[derive(Clone, Copy)]
pub(super) struct Avx2;

/// Eight f64, the first four first.
#[derive(Clone, Copy)]
pub(super) struct Wide(__m256d, __m256d);

/// An expression of intrinsics.
macro_rules! avx2 {
    ($($body:tt)*) => {
        // SAFETY: only reached by kernels that run where AVX2, FMA and F16C are; what memory is
        // accessed is that of a reference to all of it.
        unsafe { $($body)* }
    };
}

narrow!(Avx2, Narrow, Wide, avx2, x => Wide(
    _mm256_cvtps_pd(_mm256_castps256_ps128(x)),
    _mm256_cvtps_pd(_mm256_extractf128_ps::<1>(x)),
));

/// The two registers each by itself.
macro_rules! halves {
    ($f:ident($a:expr $(, $b:expr)*)) => {
        avx2! { Wide($f($a.0 $(, $b.0)*), $f($a.1 $(, $b.1)*)) }
    };
}

impl Vector for Wide {
    type Num = f64;
    type Wide = Wide;
    /// A count for each place of half a vector.
    type Tally = __m256i;

    #[inline(always)]
    fn splat(x: f64) -> Self {
        avx2! { Wide(_mm256_set1_pd(x), _mm256_set1_pd(x)) }
    }

    #[inline(always)]
    fn load(numbers: &[f64; WIDTH]) -> Self {
        let start = numbers.as_ptr();
        avx2! { Wide(_mm256_loadu_pd(start), _mm256_loadu_pd(start.add(4))) }
    }

    #[inline(always)]
    fn store(self) -> [f64; WIDTH] {
        let mut numbers = [0.0; WIDTH];
        let start = numbers.as_mut_ptr();
        avx2! {
            _mm256_storeu_pd(start, self.0);
            _mm256_storeu_pd(start.add(4), self.1);
        }
        numbers
    }

    #[inline(always)]
    fn less(self, other: Self) -> Self {
        halves!(_mm256_min_pd(self, other))
    }

    #[inline(always)]
    fn more(self, other: Self) -> Self {
        halves!(_mm256_max_pd(self, other))
    }

    #[inline(always)]
    fn magnitude(self) -> Self {
        halves!(_mm256_andnot_pd(Wide::splat(-0.0), self))
    }

    #[inline(always)]
    fn if_below(self, limit: Self, then: Self, other: Self) -> Self {
        avx2! {
            let low = _mm256_cmp_pd::<_CMP_LT_OQ>(self.0, limit.0);
            let high = _mm256_cmp_pd::<_CMP_LT_OQ>(self.1, limit.1);
            Wide(
                _mm256_blendv_pd(other.0, then.0, low),
                _mm256_blendv_pd(other.1, then.1, high),
            )
        }
    }

    #[inline(always)]
    fn widen(self) -> Wide {
        self
    }

    #[inline(always)]
    fn none() -> __m256i {
        avx2! { _mm256_setzero_si256() }
    }

    #[inline(always)]
    fn count_below(self, limit: Self, tally: __m256i) -> __m256i {
        avx2! {
            let low = _mm256_cmp_pd::<_CMP_LT_OQ>(self.0, limit.0);
            let high = _mm256_cmp_pd::<_CMP_LT_OQ>(self.1, limit.1);
            // A place of a comparison that holds is -1.
            let tally = _mm256_sub_epi64(tally, _mm256_castpd_si256(low));
            _mm256_sub_epi64(tally, _mm256_castpd_si256(high))
        }
    }

    #[inline(always)]
    fn count_equal(self, limit: Self, tally: __m256i) -> __m256i {
        avx2! {
            let low = _mm256_cmp_pd::<_CMP_EQ_OQ>(self.0, limit.0);
            let high = _mm256_cmp_pd::<_CMP_EQ_OQ>(self.1, limit.1);
            let tally = _mm256_sub_epi64(tally, _mm256_castpd_si256(low));
            _mm256_sub_epi64(tally, _mm256_castpd_si256(high))
        }
    }

    #[inline(always)]
    fn total(tally: __m256i) -> u64 {
        let mut counts = [0u64; WIDTH / 2];
        avx2! { _mm256_storeu_si256(counts.as_mut_ptr().cast(), tally) };
        counts.into_iter().sum()
    }
}

impl WideVector for Wide {
    #[inline(always)]
    fn times_plus(self, factor: Self, addend: Self) -> Self {
        halves!(_mm256_fmadd_pd(self, factor, addend))
    }

    #[inline(always)]
    fn times(self, factor: Self) -> Self {
        halves!(_mm256_mul_pd(self, factor))
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        halves!(_mm256_add_pd(self, other))
    }

    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        halves!(_mm256_sub_pd(self, other))
    }
}
