//! The instruction set, chosen at run time.
//!
//! The kernels are compiled once for what the target always has (SSE2 on x86-64, NEON with fused
//! multiply-add on 64-bit ARM) and once for AVX2 with FMA and F16C. AVX-512 is left out: its
//! intrinsics and its target feature are younger than the oldest compiler supported.

use super::element::{Element, Native, Num};
use super::kernel::{self, CHUNK, Chunk, Limits};
use super::portable::Portable;

/// One compiled variant of the kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Path {
    /// What the target always has.
    Baseline,
    /// AVX2, FMA and F16C.
    #[cfg(target_arch = "x86_64")]
    Avx2(proof::Avx2),
}

#[cfg(target_arch = "x86_64")]
mod proof {
    /// Exists only where the processor has AVX2, FMA and F16C.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(in super::super) struct Avx2(());

    impl Avx2 {
        pub(in super::super) fn find() -> Option<Avx2> {
            let found = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("fma")
                && is_x86_feature_detected!("f16c");
            found.then_some(Avx2(()))
        }
    }
}

impl Path {
    /// The fastest variant that this processor runs.
    pub(super) fn detect() -> Path {
        #[cfg(target_arch = "x86_64")]
        if let Some(proof) = proof::Avx2::find() {
            return Path::Avx2(proof);
        }
        Path::Baseline
    }

    /// Everything about one chunk of elements that the kernels read.
    pub(super) fn native<T: Native>(self, elements: &[T], limits: Limits<T::Num>) -> Chunk {
        match self {
            Path::Baseline => kernel::chunk::<T, Portable>(elements, limits),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the proof exists, so the processor has the features.
            Path::Avx2(_) => unsafe { avx2_chunk(elements, limits) },
        }
    }

    /// Whether a chunk holds NaN or +inf, or with `both` an infinity of any sign.
    pub(super) fn native_alarm<T: Native>(self, elements: &[T], both: bool) -> bool {
        match self {
            Path::Baseline => kernel::any_alarm::<T, Portable>(elements, both),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the proof exists, so the processor has the features.
            Path::Avx2(_) => unsafe { avx2_alarm(elements, both) },
        }
    }

    /// Gives the numbers of a chunk to `take`.
    pub(super) fn decoded<T: Element, R>(
        self,
        elements: &[T],
        take: impl FnOnce(&[T::Num]) -> R,
    ) -> R {
        let mut numbers = [T::Num::ZERO; CHUNK];
        let count = elements.len().min(CHUNK);
        match self {
            Path::Baseline => decode(elements, &mut numbers),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the proof exists, so the processor has the features.
            Path::Avx2(_) => unsafe { avx2_decode(elements, &mut numbers) },
        }
        take(&numbers[..count])
    }
}

#[inline(always)]
fn decode<T: Element>(elements: &[T], numbers: &mut [T::Num; CHUNK]) {
    for (to, x) in numbers.iter_mut().zip(elements) {
        *to = x.num();
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
fn avx2_decode<T: Element>(elements: &[T], numbers: &mut [T::Num; CHUNK]) {
    decode(elements, numbers);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
fn avx2_chunk<T: Native>(elements: &[T], limits: Limits<T::Num>) -> Chunk {
    kernel::chunk::<T, super::avx2::Avx2>(elements, limits)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
fn avx2_alarm<T: Native>(elements: &[T], both: bool) -> bool {
    kernel::any_alarm::<T, super::avx2::Avx2>(elements, both)
}
