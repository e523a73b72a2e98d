//! Chunks put together into the statistics of a tensor.

use super::Statistics;
use super::census::Counts;
use super::kernel::{Chunk, RESCALE, Scale, Sums};

/// A sum that carries what its additions lost (Neumaier).
#[derive(Clone, Copy, Default)]
struct Exact {
    sum: f64,
    lost: f64,
}

impl Exact {
    fn add(&mut self, x: f64) {
        let sum = self.sum + x;
        self.lost += if self.sum.abs() >= x.abs() {
            (self.sum - sum) + x
        } else {
            (x - sum) + self.sum
        };
        self.sum = sum;
    }

    fn value(self) -> f64 {
        self.sum + self.lost
    }
}

/// The sums of many chunks of one scale.
#[derive(Clone, Copy, Default)]
struct Moments {
    count: f64,
    sum: Exact,
    squares: Exact,
    /// The first chunk's centre; the others' means are taken relative to it, so that a spread much
    /// smaller than the mean survives.
    shift: f64,
    offset: Exact,
    /// Squared differences from `shift`.
    away: Exact,
}

impl Moments {
    fn add(&mut self, part: &Sums) {
        if part.count == 0.0 {
            return;
        }
        if self.count == 0.0 {
            self.shift = part.center;
        }
        self.count += part.count;
        self.sum.add(part.sum.0);
        self.sum.add(part.sum.1);
        self.squares.add(part.squares);
        let step = (part.center - self.shift) + part.offset / part.count;
        self.offset.add(step * part.count);
        self.away.add(part.spread);
        self.away.add(step * step * part.count);
    }

    fn spread(&self) -> f64 {
        if self.count == 0.0 {
            return 0.0;
        }
        let offset = self.offset.value();
        (self.away.value() - offset * (offset / self.count)).max(0.0)
    }

    /// These moments as one part, times `factor`.
    fn part(&self, scale: Scale, factor: f64) -> Sums {
        // Twice in a row: the square of the factor is not a number.
        let square = |x: f64| x * factor * factor;
        Sums {
            scale,
            count: self.count,
            sum: (self.sum.sum * factor, self.sum.lost * factor),
            squares: square(self.squares.value()),
            center: self.shift * factor,
            offset: self.offset.value() * factor,
            spread: square(self.spread()),
        }
    }
}

/// The statistics while chunks still come.
#[derive(Clone, Copy)]
pub(super) struct Gathered {
    up: Moments,
    one: Moments,
    down: Moments,
    counts: Counts,
    min: f64,
    max: f64,
}

impl Gathered {
    pub(super) fn new() -> Self {
        Gathered {
            up: Moments::default(),
            one: Moments::default(),
            down: Moments::default(),
            counts: Counts::default(),
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
        }
    }

    pub(super) fn add(&mut self, chunk: &Chunk) {
        match chunk.sums.scale {
            Scale::Up => self.up.add(&chunk.sums),
            Scale::One => self.one.add(&chunk.sums),
            Scale::Down => self.down.add(&chunk.sums),
        }
        self.counts.nan += chunk.counts.nan;
        self.counts.pos_inf += chunk.counts.pos_inf;
        self.counts.neg_inf += chunk.counts.neg_inf;
        self.counts.zeros += chunk.counts.zeros;
        self.counts.subnormal += chunk.counts.subnormal;
        self.counts.near_max += chunk.counts.near_max;
        self.min = self.min.min(chunk.min);
        self.max = self.max.max(chunk.max);
    }

    pub(super) fn non_finite(&self) -> u64 {
        self.counts.non_finite()
    }

    /// All moments in the scale of the largest values present. What is smaller by 2^600 and more
    /// vanishes beside them, as it would in any sum.
    fn moments(&self) -> (Moments, Scale) {
        let by_scale = [
            (Scale::Down, &self.down),
            (Scale::One, &self.one),
            (Scale::Up, &self.up),
        ];
        let mut all = Moments::default();
        let mut scale = None;
        let mut factor = 1.0;
        for (own, moments) in by_scale {
            if scale.is_some() {
                factor /= RESCALE;
            }
            if moments.count > 0.0 {
                let scale = *scale.get_or_insert(own);
                all.add(&moments.part(scale, factor));
            }
        }
        (all, scale.unwrap_or(Scale::One))
    }

    /// The statistics of a tensor that shows each element seen `copies` times.
    pub(super) fn finish(&self, elements: u64, copies: u64, float: bool) -> Statistics {
        let (moments, scale) = self.moments();
        let any = moments.count > 0.0;
        let times = |count: u64| count.saturating_mul(copies);
        let abs_max = if any { self.max.max(-self.min) } else { 0.0 };
        let count = moments.count.max(1.0);
        let squares = moments.squares.value().max(0.0);
        // The bounds hold for the true values; they keep rounding from leaving the numbers.
        let least = if abs_max > 0.0 {
            f64::from_bits(1)
        } else {
            0.0
        };
        let unscale = |x: f64| x / scale.factor();
        let rms = unscale((squares / count).sqrt()).clamp(least, abs_max);
        let l2 = unscale(squares.sqrt() * (copies as f64).sqrt()).clamp(abs_max, f64::MAX);
        let std = unscale((moments.spread() / count).sqrt()).clamp(0.0, abs_max);
        let mean = unscale(moments.sum.value() / count) + 0.0;
        let share = |count: u64| {
            let share = if elements == 0 {
                0.0
            } else {
                times(count) as f64 / elements as f64
            };
            float.then_some(share)
        };
        Statistics {
            elements,
            non_finite: times(self.non_finite()),
            rms,
            abs_max,
            mean: if any {
                mean.clamp(self.min, self.max)
            } else {
                0.0
            },
            min: any.then_some(self.min),
            max: any.then_some(self.max),
            std,
            l2,
            zeros: times(self.counts.zeros),
            nan: times(self.counts.nan),
            pos_inf: times(self.counts.pos_inf),
            neg_inf: times(self.counts.neg_inf),
            overflow_share: share(self.counts.near_max),
            underflow_share: share(self.counts.subnormal),
            first_non_finite: None,
        }
    }
}
