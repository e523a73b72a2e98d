//! Statistics of a tensor's elements: one pass over its storage, nothing copied.
//!
//! ```
//! use candle_core::{Device, Tensor};
//! use candle_profiler::tensor::stats::statistics;
//!
//! let tensor = Tensor::new(&[3f32, -4.0, f32::NAN, 0.0], &Device::Cpu)?;
//! let found = statistics(&tensor)?;
//! assert_eq!((found.elements, found.non_finite, found.zeros), (4, 1, 1));
//! assert_eq!((found.abs_max, found.l2, found.min), (4.0, 5.0, Some(-4.0)));
//! assert_eq!(found.first_non_finite, Some(vec![2]));
//! # Ok::<(), candle_core::Error>(())
//! ```

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod bytes;
mod census;
mod device;
mod element;
mod integers;
mod kernel;
mod layout;
mod moments;
#[cfg(target_arch = "x86_64")]
mod narrow;
#[cfg(target_arch = "aarch64")]
mod neon;
mod path;
mod portable;
mod scan;
mod storage;
#[cfg(test)]
mod tests;
mod vector;

use candle_core::{Result, Storage, Tensor};
pub(crate) use device::Pending;
use scan::Wanted;

/// What the elements of a tensor amount to.
///
/// Everything but the counts is over the finite elements, summed in `f64`. No field is ever NaN or
/// infinite: without any finite element the numbers are 0, and a norm beyond the range of `f64` is
/// `f64::MAX`. Shares are of all elements.
#[derive(Clone, Debug, PartialEq)]
pub struct Statistics {
    /// The product of the shape; 1 for a tensor without dimensions.
    pub elements: u64,
    /// Elements that are NaN or an infinity.
    pub non_finite: u64,
    /// Root of the mean square; 0 only if all are zero.
    pub rms: f64,
    /// The largest magnitude.
    pub abs_max: f64,
    /// The mean.
    pub mean: f64,
    /// The smallest element; `None` if none is finite.
    pub min: Option<f64>,
    /// The largest element; `None` if none is finite.
    pub max: Option<f64>,
    /// Standard deviation of the elements as a whole population.
    pub std: f64,
    /// Root of the sum of squares.
    pub l2: f64,
    /// Elements equal to zero, of either sign.
    pub zeros: u64,
    /// Elements that are NaN.
    pub nan: u64,
    /// Elements that are +inf.
    pub pos_inf: u64,
    /// Elements that are -inf.
    pub neg_inf: u64,
    /// Share of the elements whose magnitude is finite and above 90 % of the largest finite value of
    /// their dtype; `None` for integers.
    pub overflow_share: Option<f64>,
    /// Share of the elements that are not zero and smaller than the smallest normal value of their
    /// dtype; `None` for integers.
    pub underflow_share: Option<f64>,
    /// Index, one number a dimension, of the first element in row-major order that is not finite.
    pub first_non_finite: Option<Vec<usize>>,
}

/// Which values raise an alarm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AlarmOn {
    /// NaN and +inf. Masks are full of -inf, which is no fault there.
    #[default]
    NanOrPosInf,
    /// Both infinities and NaN.
    AnyNonFinite,
}

/// A value that is not finite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NonFinite {
    /// Not a number.
    Nan,
    /// Positive infinity.
    PosInf,
    /// Negative infinity.
    NegInf,
}

impl NonFinite {
    fn of(value: f64) -> Self {
        if value == f64::INFINITY {
            NonFinite::PosInf
        } else if value == f64::NEG_INFINITY {
            NonFinite::NegInf
        } else {
            NonFinite::Nan
        }
    }
}

/// The first value in row-major order that raises an alarm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alarm {
    /// Where it is, one number a dimension.
    pub index: Vec<usize>,
    /// What it is.
    pub value: NonFinite,
}

/// Statistics of all elements of `tensor`, whatever its dtype, layout and device.
///
/// On the CPU the storage is read once, in the order it lies in memory, and once more up to the
/// place looked for if some element is not finite. On other devices the tensor is reduced there.
///
/// # Errors
/// For `f6e2m3` and `f6e3m2`, whose packing candle leaves open, for an `f4` view that is not a whole
/// storage, and what a device reports.
pub fn statistics(tensor: &Tensor) -> Result<Statistics> {
    let (storage, layout) = tensor.storage_and_layout();
    match &*storage {
        Storage::Cpu(cpu) => storage::statistics(cpu, layout),
        Storage::Cuda(_) | Storage::Metal(_) => {
            // The operations of the device take the lock themselves.
            drop(storage);
            device::statistics(tensor)
        }
    }
}

/// Asks a device for statistics, without waiting for them.
pub(crate) fn begin(tensor: &Tensor) -> Result<Pending> {
    device::begin(tensor)
}

/// Waits, once, for all that devices were asked for.
pub(crate) fn read_back(all: Vec<Pending>) -> Vec<Result<Statistics>> {
    device::read_back(all)
}

/// The first value of `tensor` that raises an alarm, if any; faster than [`statistics`].
///
/// # Errors
/// As [`statistics`], but for dtypes without such values, which are never looked at.
pub fn has_alarm(tensor: &Tensor, on: AlarmOn) -> Result<Option<Alarm>> {
    let wanted = match on {
        AlarmOn::NanOrPosInf => Wanted::Alarm,
        AlarmOn::AnyNonFinite => Wanted::NonFinite,
    };
    let (storage, layout) = tensor.storage_and_layout();
    let found = match &*storage {
        Storage::Cpu(cpu) => storage::first(cpu, layout, wanted)?,
        Storage::Cuda(_) | Storage::Metal(_) => {
            drop(storage);
            device::first(tensor, wanted)?
        }
    };
    Ok(found.map(|(position, value)| Alarm {
        index: scan::unravel(position, tensor.dims()),
        value: NonFinite::of(value),
    }))
}
