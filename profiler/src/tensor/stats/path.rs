//! The instruction set, chosen at run time.
//!
//! The kernels are compiled once for what the target always has (SSE2 on x86-64, NEON with fused
//! multiply-add on 64-bit ARM) and once for AVX2 with FMA. AVX-512 is left out: its intrinsics and
//! its target feature are younger than the oldest compiler supported.

use super::element::Element;
use super::kernel::{self, Chunk};
use super::scan::{self, Wanted};

/// One compiled variant of the kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Path {
    /// What the target always has.
    Baseline,
    /// AVX2 and FMA. Only [`Path::detect`] makes it, so that it is proof of a processor with both.
    #[cfg(target_arch = "x86_64")]
    Avx2(Proof),
}

/// Made only where the processor was asked.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Proof(());

/// The baseline has fused multiply-add.
const FUSED: bool = cfg!(any(target_arch = "aarch64", target_feature = "fma"));

impl Path {
    /// The fastest variant that this processor runs.
    pub(super) fn detect() -> Path {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            return Path::Avx2(Proof(()));
        }
        Path::Baseline
    }

    /// Everything about one chunk.
    pub(super) fn chunk<T: Element>(self, elements: &[T]) -> Chunk {
        match self {
            Path::Baseline => baseline_chunk(elements),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the proof exists, so the processor has AVX2 and FMA.
            Path::Avx2(_) => unsafe { avx2_chunk(elements) },
        }
    }

    /// Whether any element is wanted.
    pub(super) fn any<T: Element>(self, elements: &[T], wanted: Wanted) -> bool {
        match self {
            Path::Baseline => scan::any(elements, wanted),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the proof exists, so the processor has AVX2 and FMA.
            Path::Avx2(_) => unsafe { avx2_any(elements, wanted) },
        }
    }
}

#[inline(never)]
fn baseline_chunk<T: Element>(elements: &[T]) -> Chunk {
    kernel::chunk::<T, FUSED>(elements)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn avx2_chunk<T: Element>(elements: &[T]) -> Chunk {
    kernel::chunk::<T, true>(elements)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn avx2_any<T: Element>(elements: &[T], wanted: Wanted) -> bool {
    scan::any(elements, wanted)
}
