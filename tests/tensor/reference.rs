//! What the statistics have to be: every element read through candle's own conversion, sums after
//! Neumaier, in units of the largest magnitude.

use candle_core::{DType, Tensor};
use candle_profiler::tensor::stats::{Statistics, statistics};
use half::{bf16, f16};

/// A compensated sum.
pub(crate) fn sum(values: impl IntoIterator<Item = f64>) -> f64 {
    let (mut sum, mut lost) = (0.0f64, 0.0f64);
    for x in values {
        let next = sum + x;
        lost += if sum.abs() >= x.abs() {
            (sum - next) + x
        } else {
            (x - next) + sum
        };
        sum = next;
    }
    sum + lost
}

/// The elements in row-major order.
pub(crate) fn elements(tensor: &Tensor) -> Vec<f64> {
    // An empty view may begin behind its storage, where candle's own reading panics.
    if tensor.elem_count() == 0 {
        return Vec::new();
    }
    // Candle's own conversion from f8e4m3 to f64 calls itself without end.
    let direct = if tensor.dtype() == DType::F8E4M3 {
        DType::F32
    } else {
        DType::F64
    };
    let wide = tensor
        .to_dtype(direct)
        .unwrap()
        .to_dtype(DType::F64)
        .unwrap();
    wide.flatten_all().unwrap().to_vec1().unwrap()
}

/// The largest finite and the smallest normal value of a float dtype.
fn range(dtype: DType) -> Option<(f64, f64)> {
    match dtype {
        DType::F64 => Some((f64::MAX, f64::MIN_POSITIVE)),
        DType::F32 => Some((f32::MAX.into(), f32::MIN_POSITIVE.into())),
        DType::BF16 => Some((bf16::MAX.into(), bf16::MIN_POSITIVE.into())),
        DType::F16 => Some((f16::MAX.into(), f16::MIN_POSITIVE.into())),
        DType::F8E4M3 => Some((448.0, 2f64.powi(-6))),
        _ => None,
    }
}

/// The expected statistics of elements of `dtype` in a shape.
pub(crate) fn expected(elements: &[f64], dims: &[usize], dtype: DType) -> Statistics {
    let finite: Vec<f64> = elements.iter().copied().filter(|x| x.is_finite()).collect();
    let abs_max = finite.iter().fold(0.0f64, |max, x| max.max(x.abs()));
    // A power of two, so that the division loses nothing.
    let unit = if abs_max == 0.0 {
        1.0
    } else {
        f64::powi(2.0, abs_max.log2() as i32 / 2)
    };
    let scaled = || finite.iter().map(|x| x / unit / unit);
    let count = finite.len().max(1) as f64;
    let mean = sum(scaled()) / count;
    let squares = sum(scaled().map(|x| x * x));
    let spread = sum(scaled().map(|x| (x - mean) * (x - mean)));
    let many = |is: &dyn Fn(f64) -> bool| elements.iter().filter(|x| is(**x)).count() as u64;
    let share = |count: u64| {
        if elements.is_empty() {
            0.0
        } else {
            count as f64 / elements.len() as f64
        }
    };
    let range = range(dtype);
    let first = elements.iter().position(|x| !x.is_finite());
    Statistics {
        elements: elements.len() as u64,
        non_finite: many(&|x| !x.is_finite()),
        rms: (squares / count).sqrt() * unit * unit,
        abs_max,
        mean: mean * unit * unit,
        min: finite.iter().copied().reduce(f64::min),
        max: finite.iter().copied().reduce(f64::max),
        std: (spread / count).sqrt() * unit * unit,
        l2: (squares.sqrt() * unit * unit).min(f64::MAX),
        zeros: many(&|x| x == 0.0),
        nan: many(&f64::is_nan),
        pos_inf: many(&|x| x == f64::INFINITY),
        neg_inf: many(&|x| x == f64::NEG_INFINITY),
        overflow_share: range
            .map(|(max, _)| share(many(&|x| x.is_finite() && x.abs() > 0.9 * max))),
        underflow_share: range.map(|(_, min)| share(many(&|x| x != 0.0 && x.abs() < min))),
        first_non_finite: first.map(|mut at| {
            let mut index = vec![0; dims.len()];
            for (index, len) in index.iter_mut().zip(dims).rev() {
                (*index, at) = (at % len, at / len);
            }
            index
        }),
    }
}

fn near(what: &str, found: f64, expected: f64, relative: f64, absolute: f64) {
    assert!(found.is_finite(), "{what} is {found}");
    let allowed = relative * expected.abs() + absolute;
    assert!(
        (found - expected).abs() <= allowed,
        "{what}: {found:e} instead of {expected:e}"
    );
}

/// Asserts that two statistics are the same but for rounding.
#[track_caller]
pub(crate) fn same(found: &Statistics, expected: &Statistics) {
    let least = f64::from_bits(1);
    let magnitude = expected.rms;
    near("rms", found.rms, expected.rms, 1e-12, least);
    near("l2", found.l2, expected.l2, 1e-12, least);
    // Where elements cancel, a mean is as good as their size allows.
    near("mean", found.mean, expected.mean, 1e-9, 1e-14 * magnitude);
    near("std", found.std, expected.std, 1e-9, 1e-14 * magnitude);
    let exact = Statistics {
        rms: expected.rms,
        l2: expected.l2,
        mean: expected.mean,
        std: expected.std,
        ..found.clone()
    };
    assert_eq!(&exact, expected);
}

/// Asserts that the statistics of `tensor` are those of its elements.
#[track_caller]
pub(crate) fn check(tensor: &Tensor) {
    let expected = expected(&elements(tensor), tensor.dims(), tensor.dtype());
    same(&statistics(tensor).unwrap(), &expected);
}

/// Numbers that look random, from -1 to 1.
pub(crate) fn noise(count: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    (0..count).map(|_| next()).collect()
}
