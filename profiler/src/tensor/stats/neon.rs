//! Vectors in NEON registers, which every 64-bit ARM has, with fused multiply-add.

#![allow(
    unused_unsafe,
    reason = "where NEON is part of the target, newer compilers know intrinsics to be safe"
)]

use super::element::Element;
use super::vector::{Isa, Vector, WIDTH, WideVector};
use half::{bf16, f16};
use std::arch::aarch64::*;

/// The instruction set.
#[derive(Clone, Copy)]
pub(super) struct Neon;

/// Eight f32, the first four first.
#[derive(Clone, Copy)]
pub(super) struct Narrow(float32x4_t, float32x4_t);

/// Eight f64, the first two first.
#[derive(Clone, Copy)]
pub(super) struct Wide([float64x2_t; 4]);

/// An expression of intrinsics.
macro_rules! neon {
    ($($body:tt)*) => {
        // SAFETY: NEON is part of the target; what memory is accessed is that of a reference to
        // all of it.
        unsafe { $($body)* }
    };
}

impl Vector for Narrow {
    type Num = f32;
    type Wide = Wide;
    /// A count for each place of half a vector.
    type Tally = uint32x4_t;

    #[inline(always)]
    fn splat(x: f32) -> Self {
        neon! { Narrow(vdupq_n_f32(x), vdupq_n_f32(x)) }
    }

    #[inline(always)]
    fn load(numbers: &[f32; WIDTH]) -> Self {
        let start = numbers.as_ptr();
        neon! { Narrow(vld1q_f32(start), vld1q_f32(start.add(4))) }
    }

    #[inline(always)]
    fn store(self) -> [f32; WIDTH] {
        let mut numbers = [0.0; WIDTH];
        let start = numbers.as_mut_ptr();
        neon! {
            vst1q_f32(start, self.0);
            vst1q_f32(start.add(4), self.1);
        }
        numbers
    }

    // The instructions for minimum and maximum give NaN where one of the two is.
    #[inline(always)]
    fn less(self, other: Self) -> Self {
        self.if_below(other, self, other)
    }

    #[inline(always)]
    fn more(self, other: Self) -> Self {
        other.if_below(self, self, other)
    }

    #[inline(always)]
    fn magnitude(self) -> Self {
        neon! { Narrow(vabsq_f32(self.0), vabsq_f32(self.1)) }
    }

    #[inline(always)]
    fn if_below(self, limit: Self, then: Self, other: Self) -> Self {
        neon! {
            let low = vcltq_f32(self.0, limit.0);
            let high = vcltq_f32(self.1, limit.1);
            Narrow(vbslq_f32(low, then.0, other.0), vbslq_f32(high, then.1, other.1))
        }
    }

    #[inline(always)]
    fn widen(self) -> Wide {
        neon! {
            Wide([
                vcvt_f64_f32(vget_low_f32(self.0)),
                vcvt_high_f64_f32(self.0),
                vcvt_f64_f32(vget_low_f32(self.1)),
                vcvt_high_f64_f32(self.1),
            ])
        }
    }

    #[inline(always)]
    fn none() -> uint32x4_t {
        neon! { vdupq_n_u32(0) }
    }

    #[inline(always)]
    fn count_below(self, limit: Self, tally: uint32x4_t) -> uint32x4_t {
        neon! {
            // A place of a comparison that holds is all ones, which is -1.
            let tally = vsubq_u32(tally, vcltq_f32(self.0, limit.0));
            vsubq_u32(tally, vcltq_f32(self.1, limit.1))
        }
    }

    #[inline(always)]
    fn count_equal(self, limit: Self, tally: uint32x4_t) -> uint32x4_t {
        neon! {
            let tally = vsubq_u32(tally, vceqq_f32(self.0, limit.0));
            vsubq_u32(tally, vceqq_f32(self.1, limit.1))
        }
    }

    #[inline(always)]
    fn total(tally: uint32x4_t) -> u64 {
        neon! { u64::from(vaddvq_u32(tally)) }
    }
}

/// The four registers each by itself.
macro_rules! each {
    ($f:ident($first:expr $(, $other:expr)*)) => {
        neon! { Wide(std::array::from_fn(|at| $f($first.0[at] $(, $other.0[at])*))) }
    };
}

impl Vector for Wide {
    type Num = f64;
    type Wide = Wide;
    /// A count for each place of a quarter of a vector.
    type Tally = uint64x2_t;

    #[inline(always)]
    fn splat(x: f64) -> Self {
        neon! { Wide([vdupq_n_f64(x); 4]) }
    }

    #[inline(always)]
    fn load(numbers: &[f64; WIDTH]) -> Self {
        let start = numbers.as_ptr();
        neon! { Wide(std::array::from_fn(|at| vld1q_f64(start.add(2 * at)))) }
    }

    #[inline(always)]
    fn store(self) -> [f64; WIDTH] {
        let mut numbers = [0.0; WIDTH];
        let start = numbers.as_mut_ptr();
        for at in 0..4 {
            neon! { vst1q_f64(start.add(2 * at), self.0[at]) };
        }
        numbers
    }

    #[inline(always)]
    fn less(self, other: Self) -> Self {
        self.if_below(other, self, other)
    }

    #[inline(always)]
    fn more(self, other: Self) -> Self {
        other.if_below(self, self, other)
    }

    #[inline(always)]
    fn magnitude(self) -> Self {
        each!(vabsq_f64(self))
    }

    #[inline(always)]
    fn if_below(self, limit: Self, then: Self, other: Self) -> Self {
        neon! {
            Wide(std::array::from_fn(|at| {
                let yes = vcltq_f64(self.0[at], limit.0[at]);
                vbslq_f64(yes, then.0[at], other.0[at])
            }))
        }
    }

    #[inline(always)]
    fn widen(self) -> Wide {
        self
    }

    #[inline(always)]
    fn none() -> uint64x2_t {
        neon! { vdupq_n_u64(0) }
    }

    #[inline(always)]
    fn count_below(self, limit: Self, mut tally: uint64x2_t) -> uint64x2_t {
        for at in 0..4 {
            tally = neon! { vsubq_u64(tally, vcltq_f64(self.0[at], limit.0[at])) };
        }
        tally
    }

    #[inline(always)]
    fn count_equal(self, limit: Self, mut tally: uint64x2_t) -> uint64x2_t {
        for at in 0..4 {
            tally = neon! { vsubq_u64(tally, vceqq_f64(self.0[at], limit.0[at])) };
        }
        tally
    }

    #[inline(always)]
    fn total(tally: uint64x2_t) -> u64 {
        neon! { vaddvq_u64(tally) }
    }
}

impl WideVector for Wide {
    #[inline(always)]
    fn times_plus(self, factor: Self, addend: Self) -> Self {
        each!(vfmaq_f64(addend, self, factor))
    }

    #[inline(always)]
    fn times(self, factor: Self) -> Self {
        each!(vmulq_f64(self, factor))
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        each!(vaddq_f64(self, other))
    }

    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        each!(vsubq_f64(self, other))
    }
}

impl Isa for Neon {
    type Narrow = Narrow;
    type Wide = Wide;

    #[inline(always)]
    fn bf16(elements: &[bf16; WIDTH]) -> Narrow {
        neon! {
            let bits = vld1q_u16(elements.as_ptr().cast());
            Narrow(
                vreinterpretq_f32_u32(vshll_n_u16::<16>(vget_low_u16(bits))),
                vreinterpretq_f32_u32(vshll_high_n_u16::<16>(bits)),
            )
        }
    }

    /// By arithmetic on the bits, which becomes vector code too: the instruction takes a type that
    /// Rust has not made stable.
    #[inline(always)]
    fn f16(elements: &[f16; WIDTH]) -> Narrow {
        Narrow::load(&elements.map(Element::num))
    }

    #[inline(always)]
    fn u8(elements: &[u8; WIDTH]) -> Narrow {
        neon! {
            let wide = vmovl_u8(vld1_u8(elements.as_ptr()));
            Narrow(
                vcvtq_f32_u32(vmovl_u16(vget_low_u16(wide))),
                vcvtq_f32_u32(vmovl_high_u16(wide)),
            )
        }
    }

    #[inline(always)]
    fn i16(elements: &[i16; WIDTH]) -> Narrow {
        neon! {
            let both = vld1q_s16(elements.as_ptr());
            Narrow(
                vcvtq_f32_s32(vmovl_s16(vget_low_s16(both))),
                vcvtq_f32_s32(vmovl_high_s16(both)),
            )
        }
    }
}
