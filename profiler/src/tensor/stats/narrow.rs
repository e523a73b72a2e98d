//! Eight f32 in a register of AVX2, which the AVX-512 variant uses too: only what is wide differs.

/// The instruction set `$Isa` with the vector `$Narrow`, whose numbers `$widen` makes a `$Wide`. `$intrinsics` is the macro
/// in whose braces intrinsics of the instruction set may stand.
macro_rules! narrow {
    ($Isa:ident, $Narrow:ident, $Wide:ident, $intrinsics:ident, $x:ident => $widen:expr) => {
        /// Eight f32.
        #[derive(Clone, Copy)]
        pub(super) struct $Narrow(__m256);

        impl Vector for $Narrow {
            type Num = f32;
            type Wide = $Wide;
            /// A count for each place.
            type Tally = __m256i;

            #[inline(always)]
            fn splat(x: f32) -> Self {
                $intrinsics! { $Narrow(_mm256_set1_ps(x)) }
            }

            #[inline(always)]
            fn load(numbers: &[f32; WIDTH]) -> Self {
                $intrinsics! { $Narrow(_mm256_loadu_ps(numbers.as_ptr())) }
            }

            #[inline(always)]
            fn store(self) -> [f32; WIDTH] {
                let mut numbers = [0.0; WIDTH];
                $intrinsics! { _mm256_storeu_ps(numbers.as_mut_ptr(), self.0) };
                numbers
            }

            #[inline(always)]
            fn less(self, other: Self) -> Self {
                $intrinsics! { $Narrow(_mm256_min_ps(self.0, other.0)) }
            }

            #[inline(always)]
            fn more(self, other: Self) -> Self {
                $intrinsics! { $Narrow(_mm256_max_ps(self.0, other.0)) }
            }

            #[inline(always)]
            fn magnitude(self) -> Self {
                $intrinsics! { $Narrow(_mm256_andnot_ps(_mm256_set1_ps(-0.0), self.0)) }
            }

            #[inline(always)]
            fn if_below(self, limit: Self, then: Self, other: Self) -> Self {
                $intrinsics! {
                    let yes = _mm256_cmp_ps::<_CMP_LT_OQ>(self.0, limit.0);
                    $Narrow(_mm256_blendv_ps(other.0, then.0, yes))
                }
            }

            #[inline(always)]
            fn widen(self) -> $Wide {
                let $x = self.0;
                $intrinsics! { $widen }
            }

            #[inline(always)]
            fn none() -> __m256i {
                $intrinsics! { _mm256_setzero_si256() }
            }

            #[inline(always)]
            fn count_below(self, limit: Self, tally: __m256i) -> __m256i {
                $intrinsics! {
                    let yes = _mm256_cmp_ps::<_CMP_LT_OQ>(self.0, limit.0);
                    // A place of a comparison that holds is -1.
                    _mm256_sub_epi32(tally, _mm256_castps_si256(yes))
                }
            }

            #[inline(always)]
            fn count_equal(self, limit: Self, tally: __m256i) -> __m256i {
                $intrinsics! {
                    let yes = _mm256_cmp_ps::<_CMP_EQ_OQ>(self.0, limit.0);
                    _mm256_sub_epi32(tally, _mm256_castps_si256(yes))
                }
            }

            #[inline(always)]
            fn total(tally: __m256i) -> u64 {
                let mut counts = [0u32; WIDTH];
                $intrinsics! { _mm256_storeu_si256(counts.as_mut_ptr().cast(), tally) };
                counts.into_iter().map(u64::from).sum()
            }
        }

        impl Isa for $Isa {
            type Narrow = $Narrow;
            type Wide = $Wide;

            #[inline(always)]
            fn bf16(elements: &[bf16; WIDTH]) -> $Narrow {
                $intrinsics! {
                    let bits = _mm256_cvtepu16_epi32(_mm_loadu_si128(elements.as_ptr().cast()));
                    $Narrow(_mm256_castsi256_ps(_mm256_slli_epi32::<16>(bits)))
                }
            }

            #[inline(always)]
            fn f16(elements: &[f16; WIDTH]) -> $Narrow {
                $intrinsics! { $Narrow(_mm256_cvtph_ps(_mm_loadu_si128(elements.as_ptr().cast()))) }
            }

            #[inline(always)]
            fn u8(elements: &[u8; WIDTH]) -> $Narrow {
                $intrinsics! {
                    let wide = _mm256_cvtepu8_epi32(_mm_loadl_epi64(elements.as_ptr().cast()));
                    $Narrow(_mm256_cvtepi32_ps(wide))
                }
            }

            #[inline(always)]
            fn i16(elements: &[i16; WIDTH]) -> $Narrow {
                $intrinsics! {
                    let wide = _mm256_cvtepi16_epi32(_mm_loadu_si128(elements.as_ptr().cast()));
                    $Narrow(_mm256_cvtepi32_ps(wide))
                }
            }
        }
    };
}
pub(super) use narrow;
