//! The arithmetic over one chunk of elements, written once in the operations of [`Isa`]; `path`
//! compiles it for each instruction set.
//!
//! The first pass assumes the common case and costs little more than reading. What it finds tells
//! which of the rarer passes are needed (`census` counts what is rare, `spread` is for values far
//! from zero); they read the chunk again from the nearest cache.

use super::census::{Counts, Limits, census};
use super::element::{Element, Native, Num};
use super::vector::{Isa, Vector, WIDTH, WideVector};

/// Elements in a chunk: few enough to stay in the first cache for a second pass, many enough that
/// the work at its end does not count.
pub(super) const CHUNK: usize = 4096;

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

/// What one chunk gives.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunk {
    pub(super) sums: Sums,
    pub(super) counts: Counts,
    /// Infinite the other way round where nothing is finite.
    pub(super) min: f64,
    pub(super) max: f64,
}

/// Two vectors at a time, so that the latency of an addition does not limit.
const BLOCK: usize = 2 * WIDTH;

pub(super) type V<T, I> = <<T as Element>::Num as Num>::Vector<I>;

/// The elements left over as a pair of vectors filled up with `pad`.
#[inline(always)]
pub(super) fn last<T: Native, I: Isa>(rest: &[T], pad: T::Num) -> [V<T, I>; 2] {
    let mut numbers = [[pad; WIDTH]; 2];
    for (to, x) in numbers.as_flattened_mut().iter_mut().zip(rest) {
        *to = x.num();
    }
    [V::<T, I>::load(&numbers[0]), V::<T, I>::load(&numbers[1])]
}

/// The pairs of vectors of whole blocks, and the elements left over.
#[inline(always)]
pub(super) fn blocks<T>(elements: &[T]) -> (&[[[T; WIDTH]; 2]], &[T]) {
    let (whole, rest) = elements.split_at(elements.len() - elements.len() % BLOCK);
    (whole.as_chunks::<WIDTH>().0.as_chunks::<2>().0, rest)
}

#[inline(always)]
pub(super) fn pair<T: Native, I: Isa>([first, second]: &[[T; WIDTH]; 2]) -> [V<T, I>; 2] {
    [T::vector::<I>(first), T::vector::<I>(second)]
}

/// Runs `$body` with each pair of vectors of the elements, the last filled up with `$pad`. A macro,
/// since a closure would not be compiled for the instruction set.
macro_rules! each_pair {
    ($T:ty, $I:ty, $elements:expr, $pad:expr, $pair:ident => $body:expr) => {
        let (blocks, rest) = $crate::tensor::stats::kernel::blocks($elements);
        for block in blocks {
            let $pair = $crate::tensor::stats::kernel::pair::<$T, $I>(block);
            $body
        }
        if !rest.is_empty() {
            let $pair = $crate::tensor::stats::kernel::last::<$T, $I>(rest, $pad);
            $body
        }
    };
}
pub(super) use each_pair;

/// Adds up pairs, the same way whatever the instruction set.
#[inline(always)]
fn total<W: WideVector>([first, second]: [W; 2]) -> f64 {
    let mut lanes = first.plus(second).store();
    let mut width = WIDTH / 2;
    while width > 0 {
        for lane in 0..width {
            lanes[lane] += lanes[lane + width];
        }
        width /= 2;
    }
    lanes[0]
}

#[inline(always)]
fn zeros<W: WideVector>() -> [W; 2] {
    [W::splat(0.0); 2]
}

/// With `MASKED`, `vectors` with what is not finite replaced.
#[inline(always)]
fn finite_or<V: Vector, const MASKED: bool>(vectors: [V; 2], other: V::Num) -> [V; 2] {
    if !MASKED {
        return vectors;
    }
    let (limit, other) = (V::splat(V::Num::INFINITY), V::splat(other));
    let [first, second] = vectors;
    [
        first.magnitude().if_below(limit, first, other),
        second.magnitude().if_below(limit, second, other),
    ]
}

/// The running values of the first pass.
struct Running<V: Vector> {
    sum: [V::Wide; 2],
    squares: [V::Wide; 2],
    min: V,
    max: V,
    nearest_zero: V,
}

impl<V: Vector> Running<V> {
    #[inline(always)]
    fn new() -> Self {
        Running {
            sum: zeros(),
            squares: zeros(),
            min: V::splat(V::Num::INFINITY),
            max: V::splat(V::Num::NEG_INFINITY),
            nearest_zero: V::splat(V::Num::INFINITY),
        }
    }

    /// Takes two vectors, which come three times because what fills the last ones up differs: for
    /// the minimum, the maximum and the sums. `MASKED` leaves out what is not finite and multiplies
    /// the sums by `factor`.
    #[inline(always)]
    fn take<const MASKED: bool>(
        &mut self,
        low: [V; 2],
        high: [V; 2],
        value: [V; 2],
        factor: V::Wide,
    ) {
        // An infinity of the harmless sign replaces nothing.
        let low = finite_or::<V, MASKED>(low, V::Num::INFINITY);
        let high = finite_or::<V, MASKED>(high, V::Num::NEG_INFINITY);
        let value = finite_or::<V, MASKED>(value, V::Num::ZERO);
        self.min = low[0].less(low[1]).less(self.min);
        self.max = high[0].more(high[1]).more(self.max);
        let near = low[0].magnitude().less(low[1].magnitude());
        self.nearest_zero = near.less(self.nearest_zero);
        for (half, x) in value.iter().enumerate() {
            let wide = x.widen();
            let wide = if MASKED { wide.times(factor) } else { wide };
            self.sum[half] = self.sum[half].plus(wide);
            self.squares[half] = wide.times_plus(wide, self.squares[half]);
        }
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
fn first_pass<T: Native, I: Isa, const MASKED: bool>(elements: &[T], factor: f64) -> First {
    let factor = <V<T, I> as Vector>::Wide::splat(factor);
    let mut running = Running::<V<T, I>>::new();
    let (blocks, rest) = blocks(elements);
    for block in blocks {
        let pair = pair::<T, I>(block);
        running.take::<MASKED>(pair, pair, pair, factor);
    }
    if !rest.is_empty() {
        let low = last::<T, I>(rest, T::Num::INFINITY);
        let high = last::<T, I>(rest, T::Num::NEG_INFINITY);
        running.take::<MASKED>(low, high, last::<T, I>(rest, T::Num::ZERO), factor);
    }
    // Adding zero turns the negative zero into the positive one.
    let fold = |vector: V<T, I>, pick: fn(f64, f64) -> f64| {
        vector
            .store()
            .into_iter()
            .map(Num::wide)
            .reduce(pick)
            .unwrap_or(0.0)
            + 0.0
    };
    First {
        sum: total(running.sum),
        squares: total(running.squares),
        min: fold(running.min, f64::min),
        max: fold(running.max, f64::max),
        nearest_zero: fold(running.nearest_zero, f64::min),
    }
}

/// Sums of the finite elements' differences from `center`, and of their squares.
#[inline(always)]
fn centered<T: Native, I: Isa>(elements: &[T], factor: f64, center: f64) -> (f64, f64) {
    let (factor, center) = (I::Wide::splat(factor), I::Wide::splat(center));
    let (limit, zero) = (I::Wide::splat(f64::INFINITY), I::Wide::splat(0.0));
    let (mut sum, mut squares) = (zeros::<I::Wide>(), zeros::<I::Wide>());
    each_pair!(T, I, elements, T::Num::NAN, pair => {
        for half in 0..2 {
            let wide = pair[half].widen();
            let away = wide.times(factor).minus(center);
            let away = wide.magnitude().if_below(limit, away, zero);
            sum[half] = sum[half].plus(away);
            squares[half] = away.times_plus(away, squares[half]);
        }
    });
    (total(sum), total(squares))
}

/// Everything about one chunk of at most [`CHUNK`] elements. With `holes` it most likely has some that are not finite,
/// which a first pass that leaves them out spares a second one.
#[inline(always)]
pub(super) fn chunk<T: Native, I: Isa>(
    elements: &[T],
    limits: Limits<T::Num>,
    mut holes: bool,
) -> Chunk {
    let mut first = if holes {
        first_pass::<T, I, true>(elements, 1.0)
    } else {
        first_pass::<T, I, false>(elements, 1.0)
    };
    // The square of anything that is not finite is not, and only f64 gets there otherwise.
    if !holes && !first.squares.is_finite() {
        holes = true;
        first = first_pass::<T, I, true>(elements, 1.0);
    }
    let largest = first.max.max(-first.min);
    let mut scale = Scale::One;
    // Only numbers of f64 can have squares beyond it.
    if size_of::<T::Num>() == size_of::<f64>() {
        scale = Scale::of(largest);
        if scale != Scale::One && largest > 0.0 {
            let scaled = first_pass::<T, I, true>(elements, scale.factor());
            first.sum = scaled.sum;
            first.squares = scaled.squares;
        }
    }
    let mut counts = Counts::default();
    if holes {
        counts = census::<T, I, true>(elements, limits);
    } else if first.nearest_zero < limits.min_normal.wide() || largest > limits.near_max.wide() {
        counts = census::<T, I, false>(elements, limits);
    }
    let finite = elements.len() as u64 - counts.non_finite();
    let sums = spread::<T, I>(elements, scale, finite as f64, &first);
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
fn spread<T: Native, I: Isa>(elements: &[T], scale: Scale, count: f64, first: &First) -> Sums {
    let mut sums = Sums {
        scale,
        count,
        sum: (first.sum, 0.0),
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
    sums.center = first.sum / count;
    sums.spread = first.squares - first.sum * sums.center;
    if sums.spread < first.squares / 64.0 {
        let (offset, squares) = centered::<T, I>(elements, scale.factor(), sums.center);
        sums.offset = offset;
        sums.spread = (squares - offset * offset / count).max(0.0);
    }
    sums
}
