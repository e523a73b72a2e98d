//! The arithmetic over one chunk of elements, written once over arrays of lanes that the compiler
//! turns into vector registers; `path` compiles it for each instruction set.
//!
//! The first pass assumes the common case and costs little more than reading. What it finds tells
//! which of the rarer passes are needed; they read the chunk again from the nearest cache.

use super::element::{Element, Num};

/// Elements in a chunk: few enough to stay in the first cache for a second pass, many enough that
/// the work at its end does not count.
pub(super) const CHUNK: usize = 4096;

/// Independent sums, so that neither the latency of an addition nor the width of a register limits.
const LANES: usize = 16;

/// Values of f64 beyond these have squares that leave its range, or sums of them do.
const HUGE: f64 = f64::from_bits((1023 + 500) << 52);
const TINY: f64 = f64::from_bits((1023 - 480) << 52);
/// The factor that brings them back.
pub(super) const RESCALE: f64 = f64::from_bits((1023 + 600) << 52);

/// By what the sums of a chunk are multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scale {
    /// By 2^600: the chunk holds only values near zero.
    Up,
    One,
    /// By 2^-600.
    Down,
}

impl Scale {
    pub(super) fn factor(self) -> f64 {
        match self {
            Scale::Up => RESCALE,
            Scale::One => 1.0,
            Scale::Down => 1.0 / RESCALE,
        }
    }

    /// The scale for a chunk whose largest finite magnitude is `largest`.
    #[inline(always)]
    pub(super) fn of(largest: f64) -> Scale {
        if largest > HUGE {
            Scale::Down
        } else if largest < TINY {
            // Zeros join the small ones: they fit any scale, and must not choose it.
            Scale::Up
        } else {
            Scale::One
        }
    }
}

/// Sums of the finite elements, times the factor of `scale`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sums {
    pub(super) scale: Scale,
    /// How many, as a float because all uses are.
    pub(super) count: f64,
    /// Their sum in two parts, the second what the first lost by rounding.
    pub(super) sum: (f64, f64),
    pub(super) squares: f64,
    /// A value near the mean, and the sums of the differences from it: `offset` of themselves,
    /// `spread` of their squares about their own mean.
    pub(super) center: f64,
    pub(super) offset: f64,
    pub(super) spread: f64,
}

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

/// What one chunk gives.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunk {
    pub(super) sums: Sums,
    pub(super) counts: Counts,
    /// Infinite the other way round where nothing is finite.
    pub(super) min: f64,
    pub(super) max: f64,
}

#[inline(always)]
fn multiply_add<const FMA: bool>(a: f64, b: f64, c: f64) -> f64 {
    // Without the instruction `mul_add` is a library call.
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

#[inline(always)]
fn less<N: Num>(a: N, b: N) -> N {
    if a < b { a } else { b }
}

#[inline(always)]
fn more<N: Num>(a: N, b: N) -> N {
    if a > b { a } else { b }
}

/// Adds up pairs, the same way whatever the width of the registers.
#[inline(always)]
fn total(mut lanes: [f64; LANES]) -> f64 {
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            lanes[lane] += lanes[lane + width];
        }
        width /= 2;
    }
    lanes[0]
}

/// The running values of the first pass.
struct Lanes<N> {
    sum: [f64; LANES],
    squares: [f64; LANES],
    min: [N; LANES],
    max: [N; LANES],
    nearest_zero: [N; LANES],
}

impl<N: Num> Lanes<N> {
    #[inline(always)]
    fn new() -> Self {
        Lanes {
            sum: [0.0; LANES],
            squares: [0.0; LANES],
            min: [N::INFINITY; LANES],
            max: [N::NEG_INFINITY; LANES],
            nearest_zero: [N::INFINITY; LANES],
        }
    }

    /// Takes `x` into `lane`. `MASKED` leaves out what is not finite.
    #[inline(always)]
    fn take<const FMA: bool, const MASKED: bool>(&mut self, lane: usize, x: N, factor: f64) {
        let finite = !MASKED || x.magnitude() < N::INFINITY;
        let value = if finite { x } else { N::ZERO };
        // An infinity of the harmless sign replaces nothing.
        let low = if finite { x } else { N::INFINITY };
        let high = if finite { x } else { N::NEG_INFINITY };
        self.min[lane] = less(low, self.min[lane]);
        self.max[lane] = more(high, self.max[lane]);
        self.nearest_zero[lane] = less(x.magnitude(), self.nearest_zero[lane]);
        let wide = if MASKED {
            value.wide() * factor
        } else {
            value.wide()
        };
        self.sum[lane] += wide;
        self.squares[lane] = multiply_add::<FMA>(wide, wide, self.squares[lane]);
    }
}

struct First {
    sum: f64,
    squares: f64,
    min: f64,
    max: f64,
    nearest_zero: f64,
}

#[inline(always)]
fn first_pass<T: Element, const FMA: bool, const MASKED: bool>(
    elements: &[T],
    factor: f64,
) -> First {
    let mut lanes = Lanes::<T::Num>::new();
    let (blocks, rest) = elements.as_chunks::<LANES>();
    for block in blocks {
        for lane in 0..LANES {
            lanes.take::<FMA, MASKED>(lane, block[lane].num(), factor);
        }
    }
    for (lane, x) in rest.iter().enumerate() {
        lanes.take::<FMA, MASKED>(lane, x.num(), factor);
    }
    let fold = |lanes: [T::Num; LANES], pick: fn(T::Num, T::Num) -> T::Num| {
        // Adding zero turns the negative zero into the positive one.
        lanes.into_iter().reduce(pick).map_or(0.0, Num::wide) + 0.0
    };
    First {
        sum: total(lanes.sum),
        squares: total(lanes.squares),
        min: fold(lanes.min, less),
        max: fold(lanes.max, more),
        nearest_zero: fold(lanes.nearest_zero, less),
    }
}

/// Sums of the finite elements' differences from `center`, and of their squares.
#[inline(always)]
fn centered<T: Element, const FMA: bool>(elements: &[T], factor: f64, center: f64) -> (f64, f64) {
    let (mut sum, mut squares) = ([0.0; LANES], [0.0; LANES]);
    let mut take = |lane: usize, x: T| {
        let x = x.num();
        let finite = x.magnitude() < T::Num::INFINITY;
        let away = x.wide() * factor - center;
        let away = if finite { away } else { 0.0 };
        sum[lane] += away;
        squares[lane] = multiply_add::<FMA>(away, away, squares[lane]);
    };
    let (blocks, rest) = elements.as_chunks::<LANES>();
    for block in blocks {
        for lane in 0..LANES {
            take(lane, block[lane]);
        }
    }
    for (lane, x) in rest.iter().enumerate() {
        take(lane, *x);
    }
    (total(sum), total(squares))
}

/// How many elements satisfy `is`.
#[inline(always)]
fn count<T: Element>(elements: &[T], is: impl Fn(T::Num) -> bool) -> u64 {
    let mut lanes = [0u32; LANES];
    let (blocks, rest) = elements.as_chunks::<LANES>();
    for block in blocks {
        for lane in 0..LANES {
            lanes[lane] += u32::from(is(block[lane].num()));
        }
    }
    let rest = rest.iter().filter(|x| is(x.num())).count() as u64;
    lanes.into_iter().map(u64::from).sum::<u64>() + rest
}

/// Everything about one chunk of at most [`CHUNK`] elements.
#[inline(always)]
pub(super) fn chunk<T: Element, const FMA: bool>(elements: &[T]) -> Chunk {
    let mut counts = Counts::default();
    let mut scale = Scale::One;
    let mut first = first_pass::<T, FMA, false>(elements, 1.0);
    // The square of anything that is not finite is not, and only f64 gets there otherwise.
    if !first.squares.is_finite() {
        counts.nan = count(elements, |x: T::Num| x.partial_cmp(&x).is_none());
        counts.pos_inf = count(elements, |x| x == T::Num::INFINITY);
        counts.neg_inf = count(elements, |x| x == T::Num::NEG_INFINITY);
        first = first_pass::<T, FMA, true>(elements, 1.0);
    }
    let largest = first.max.max(-first.min);
    if T::WIDE {
        scale = Scale::of(largest);
        if scale != Scale::One && largest > 0.0 {
            let scaled = first_pass::<T, FMA, true>(elements, scale.factor());
            first.sum = scaled.sum;
            first.squares = scaled.squares;
        }
    }
    if first.nearest_zero < T::MIN_NORMAL.wide() {
        counts.zeros = count(elements, |x| x == T::Num::ZERO);
        let below = count(elements, |x| x.magnitude() < T::MIN_NORMAL);
        counts.subnormal = below - counts.zeros;
    }
    if largest > T::NEAR_MAX.wide() {
        counts.near_max = count(elements, |x| {
            let magnitude = x.magnitude();
            magnitude > T::NEAR_MAX && magnitude < T::Num::INFINITY
        });
    }
    let finite = elements.len() as u64 - counts.nan - counts.pos_inf - counts.neg_inf;
    let sums = spread::<T, FMA>(elements, scale, finite as f64, &first);
    Chunk {
        sums,
        counts,
        min: first.min,
        max: first.max,
    }
}

/// Completes the sums of a chunk by its spread, by a pass of its own where the plain difference of
/// the sums would lose more than two digits.
#[inline(always)]
fn spread<T: Element, const FMA: bool>(
    elements: &[T],
    scale: Scale,
    count: f64,
    first: &First,
) -> Sums {
    let sum = match T::exact_sum(elements) {
        // Both parts are exact: a chunk's sum has fewer than twice 53 bits.
        Some(exact) => (exact as f64, (exact - exact as f64 as i128) as f64),
        None => (first.sum, 0.0),
    };
    let mut sums = Sums {
        scale,
        count,
        sum,
        squares: first.squares,
        center: first.min * scale.factor(),
        offset: 0.0,
        spread: 0.0,
    };
    if first.min >= first.max {
        // All equal, or nothing finite at all.
        sums.center = if count > 0.0 { sums.center } else { 0.0 };
        return sums;
    }
    sums.center = sum.0 / count;
    sums.spread = first.squares - sum.0 * sums.center;
    if sums.spread < first.squares / 64.0 {
        let (offset, squares) = centered::<T, FMA>(elements, scale.factor(), sums.center);
        sums.offset = offset;
        sums.spread = (squares - offset * offset / count).max(0.0);
    }
    sums
}
