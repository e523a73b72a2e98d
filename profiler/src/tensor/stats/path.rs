//! The instruction set, chosen at run time.
//!
//! The kernels are compiled for AVX2 with FMA and F16C, for these with AVX-512F, for NEON, and as
//! plain loops for what the target always has (SSE2 on x86-64).

use super::census::{self, Limits};
use super::element::{Element, Native, Num};
use super::kernel::{self, CHUNK, Chunk};
use super::portable::Portable;

/// One compiled variant of the kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Path {
    /// Plain loops.
    #[cfg_attr(
        target_arch = "aarch64",
        allow(dead_code, reason = "there the tests alone use it")
    )]
    Portable,
    /// NEON, which every 64-bit ARM has.
    #[cfg(target_arch = "aarch64")]
    Neon,
    /// AVX2, FMA and F16C.
    #[cfg(target_arch = "x86_64")]
    Avx2(proof::Avx2),
    /// These and AVX-512F.
    #[cfg(target_arch = "x86_64")]
    Avx512(proof::Avx512),
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

    /// Exists only where the processor has AVX-512F besides what [`Avx2`] stands for.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(in super::super) struct Avx512(());

    impl Avx512 {
        pub(in super::super) fn find() -> Option<Avx512> {
            Avx2::find()
                .filter(|_| is_x86_feature_detected!("avx512f"))
                .map(|_| Avx512(()))
        }
    }
}

impl Path {
    /// The fastest variant that this processor runs.
    pub(super) fn detect() -> Path {
        #[cfg(target_arch = "x86_64")]
        {
            let avx512 = proof::Avx512::find().map(Path::Avx512);
            let found = avx512.or_else(|| proof::Avx2::find().map(Path::Avx2));
            found.unwrap_or(Path::Portable)
        }
        #[cfg(target_arch = "aarch64")]
        {
            Path::Neon
        }
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        {
            Path::Portable
        }
    }

    /// Every variant that this processor runs, the plain one first.
    #[cfg(test)]
    pub(super) fn all() -> Vec<Path> {
        let mut all = vec![Path::Portable];
        #[cfg(target_arch = "x86_64")]
        {
            all.extend(proof::Avx2::find().map(Path::Avx2));
            all.extend(proof::Avx512::find().map(Path::Avx512));
        }
        #[cfg(target_arch = "aarch64")]
        all.push(Path::Neon);
        all
    }

    /// Everything about one chunk of elements that the kernels read; with `holes` some of them are
    /// most likely not finite.
    pub(super) fn native<T: Native>(
        self,
        elements: &[T],
        limits: Limits<T::Num>,
        holes: bool,
    ) -> Chunk {
        match self {
            Path::Portable => kernel::chunk::<T, Portable>(elements, limits, holes),
            #[cfg(target_arch = "aarch64")]
            Path::Neon => kernel::chunk::<T, super::neon::Neon>(elements, limits, holes),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the proof exists, so the processor has the features.
            Path::Avx2(_) => unsafe { avx2::chunk(elements, limits, holes) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the proof exists, so the processor has the features.
            Path::Avx512(_) => unsafe { avx512::chunk(elements, limits, holes) },
        }
    }

    /// Whether a chunk holds NaN or +inf, or with `both` an infinity of any sign.
    pub(super) fn native_alarm<T: Native>(self, elements: &[T], both: bool) -> bool {
        match self {
            Path::Portable => census::any_alarm::<T, Portable>(elements, both),
            #[cfg(target_arch = "aarch64")]
            Path::Neon => census::any_alarm::<T, super::neon::Neon>(elements, both),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the proof exists, so the processor has the features.
            Path::Avx2(_) => unsafe { avx2::any_alarm(elements, both) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the proof exists, so the processor has the features.
            Path::Avx512(_) => unsafe { avx512::any_alarm(elements, both) },
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
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the proof exists, so the processor has the features.
            Path::Avx2(_) => unsafe { avx2::decoded(elements, &mut numbers) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the proof exists, so the processor has the features.
            Path::Avx512(_) => unsafe { avx512::decoded(elements, &mut numbers) },
            _ => decode(elements, &mut numbers),
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

/// The kernels compiled with the features of an instruction set that not every x86-64 has.
#[cfg(target_arch = "x86_64")]
macro_rules! compiled {
    ($name:ident, $isa:ty, $features:literal) => {
        mod $name {
            use super::*;

            #[target_feature(enable = $features)]
            pub(super) fn chunk<T: Native>(
                elements: &[T],
                limits: Limits<T::Num>,
                holes: bool,
            ) -> Chunk {
                kernel::chunk::<T, $isa>(elements, limits, holes)
            }

            #[target_feature(enable = $features)]
            pub(super) fn any_alarm<T: Native>(elements: &[T], both: bool) -> bool {
                census::any_alarm::<T, $isa>(elements, both)
            }

            #[target_feature(enable = $features)]
            pub(super) fn decoded<T: Element>(elements: &[T], numbers: &mut [T::Num; CHUNK]) {
                decode(elements, numbers);
            }
        }
    };
}
#[cfg(target_arch = "x86_64")]
compiled!(avx2, crate::tensor::stats::avx2::Avx2, "avx2,fma,f16c");
#[cfg(target_arch = "x86_64")]
compiled!(
    avx512,
    crate::tensor::stats::avx512::Avx512,
    "avx512f,avx2,fma,f16c"
);
