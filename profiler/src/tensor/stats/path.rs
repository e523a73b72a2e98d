//! The instruction set, chosen at run time.
//!
//! The kernels are compiled once for what the target always has (SSE2 on x86-64, NEON with fused
//! multiply-add on 64-bit ARM) and once for AVX2 with FMA and F16C. AVX-512 is left out: its
//! intrinsics and its target feature are younger than the oldest compiler supported.

use super::element::Element;
use super::kernel::{self, Chunk};
use super::portable::Portable;
use super::scan::Wanted;

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

    /// Everything about one chunk.
    pub(super) fn chunk<T: Element>(self, elements: &[T]) -> Chunk {
        match self {
            Path::Baseline => kernel::chunk::<T, Portable>(elements),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the proof exists, so the processor has the features.
            Path::Avx2(_) => unsafe { avx2_chunk(elements) },
        }
    }

    /// Whether any element of a chunk is wanted.
    pub(super) fn any<T: Element>(self, elements: &[T], wanted: Wanted) -> bool {
        let both = wanted == Wanted::NonFinite;
        match self {
            Path::Baseline => kernel::any_alarm::<T, Portable>(elements, both),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the proof exists, so the processor has the features.
            Path::Avx2(_) => unsafe { avx2_any(elements, both) },
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
fn avx2_chunk<T: Element>(elements: &[T]) -> Chunk {
    kernel::chunk::<T, super::avx2::Avx2>(elements)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
fn avx2_any<T: Element>(elements: &[T], both: bool) -> bool {
    kernel::any_alarm::<T, super::avx2::Avx2>(elements, both)
}
