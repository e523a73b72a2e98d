//! How many elements of a chunk are of which kind: one pass that compares and counts.

use super::element::{Element, Native, Num};
use super::kernel::{V, each_pair};
use super::vector::{Isa, Vector};

/// How many elements are of a kind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) nan: u64,
    pub(super) pos_inf: u64,
    pub(super) neg_inf: u64,
    pub(super) zeros: u64,
    pub(super) subnormal: u64,
    pub(super) near_max: u64,
}

impl Counts {
    pub(super) fn non_finite(&self) -> u64 {
        self.nan + self.pos_inf + self.neg_inf
    }
}

/// What a format counts as small and as large.
#[derive(Clone, Copy)]
pub(super) struct Limits<N> {
    pub(super) min_normal: N,
    pub(super) near_max: N,
}

impl<N> Limits<N> {
    pub(super) fn of<T: Element<Num = N>>() -> Self {
        Limits {
            min_normal: T::MIN_NORMAL,
            near_max: T::NEAR_MAX,
        }
    }
}

/// Counts the elements of a chunk. Without `HOLES` it is known that all are finite.
#[inline(always)]
pub(super) fn census<T: Native, I: Isa, const HOLES: bool>(
    elements: &[T],
    limits: Limits<T::Num>,
) -> Counts {
    let infinity = V::<T, I>::splat(T::Num::INFINITY);
    let zero = V::<T, I>::splat(T::Num::ZERO);
    let min_normal = V::<T, I>::splat(limits.min_normal);
    let near_max = V::<T, I>::splat(limits.near_max);
    let none = V::<T, I>::none();
    let (mut below, mut finite, mut pos_inf) = (none, none, none);
    let (mut zeros, mut small, mut beyond) = (none, none, none);
    // NaN fills up the last ones: it compares with nothing.
    each_pair!(T, I, elements, T::Num::NAN, pair => {
        for x in pair {
            let magnitude = x.magnitude();
            zeros = x.count_equal(zero, zeros);
            small = magnitude.count_below(min_normal, small);
            beyond = near_max.count_below(magnitude, beyond);
            if HOLES {
                below = x.count_below(infinity, below);
                finite = magnitude.count_below(infinity, finite);
                pos_inf = x.count_equal(infinity, pos_inf);
            }
        }
    });
    let total = V::<T, I>::total;
    let zeros = total(zeros);
    let mut counts = Counts {
        zeros,
        subnormal: total(small) - zeros,
        near_max: total(beyond),
        ..Counts::default()
    };
    if HOLES {
        let (below, pos_inf) = (total(below), total(pos_inf));
        counts.pos_inf = pos_inf;
        counts.neg_inf = below - total(finite);
        counts.nan = elements.len() as u64 - below - pos_inf;
        // An infinity is beyond every limit too.
        counts.near_max = counts.near_max.saturating_sub(pos_inf + counts.neg_inf);
    }
    counts
}

/// Whether a chunk holds NaN or +inf, or with `both` an infinity of any sign.
#[inline(always)]
pub(super) fn any_alarm<T: Native, I: Isa>(elements: &[T], both: bool) -> bool {
    let infinity = V::<T, I>::splat(T::Num::INFINITY);
    let mut kept = V::<T, I>::none();
    each_pair!(T, I, elements, T::Num::NAN, pair => {
        for x in pair {
            let x = if both { x.magnitude() } else { x };
            kept = x.count_below(infinity, kept);
        }
    });
    V::<T, I>::total(kept) < elements.len() as u64
}
