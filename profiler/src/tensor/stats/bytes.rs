//! The formats that are a byte or less, which the kernels read as the f32 that they stand for.

use super::element::{Element, expand, near_max};

/// The byte of an f8e4m3: 4 exponent and 3 mantissa bits, no infinity, one NaN of each sign.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct E4M3(pub(super) u8);

impl Element for E4M3 {
    type Num = f32;
    const FLOAT: bool = true;
    const MIN_NORMAL: f32 = 1.0 / 64.0;
    const NEAR_MAX: f32 = near_max(448.0);
    #[inline(always)]
    fn num(self) -> f32 {
        let bits = u32::from(self.0);
        let magnitude = bits & 0x7f;
        let finite = expand(magnitude, 20, 120);
        let chosen = if magnitude < 0x7f {
            finite
        } else {
            f32::NAN.to_bits()
        };
        f32::from_bits(chosen | (bits & 0x80) << 24)
    }
}

/// The byte of an f8e8m0: a power of two from 2^-127 to 2^127, or NaN; no sign and no zero.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct E8M0(pub(super) u8);

impl Element for E8M0 {
    type Num = f32;
    const FLOAT: bool = true;
    const MIN_NORMAL: f32 = f32::from_bits(0x0040_0000);
    const NEAR_MAX: f32 = near_max(f32::from_bits(0x7f00_0000) as f64);
    #[inline(always)]
    fn num(self) -> f32 {
        let power = if self.0 == 0 {
            0x0040_0000
        } else {
            u32::from(self.0) << 23
        };
        f32::from_bits(if self.0 == 0xff {
            f32::NAN.to_bits()
        } else {
            power
        })
    }
}

/// Two f4 (2 exponent bits, 1 mantissa bit, only finite values) in a byte; stands for one of them,
/// the other half being asked for by `HIGH`.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct E2M1<const HIGH: bool>(pub(super) u8);

impl<const HIGH: bool> Element for E2M1<HIGH> {
    type Num = f32;
    const FLOAT: bool = true;
    const MIN_NORMAL: f32 = 1.0;
    const NEAR_MAX: f32 = near_max(6.0);
    #[inline(always)]
    fn num(self) -> f32 {
        let bits = u32::from(if HIGH { self.0 >> 4 } else { self.0 & 0xf });
        let finite = expand(bits & 7, 22, 126);
        f32::from_bits(finite | (bits & 8) << 28)
    }
}
