//! Tensors that are not on the CPU: reduced by candle's operations where they are.
//!
//! Rows of a few thousand elements are reduced on the device, in `f64` where it has it (Metal has
//! not: `f32`), and the rows' results are read back once and put together like the CPU's chunks.

use super::Statistics;
use super::bytes::{E4M3, E8M0};
use super::census::Counts;
use super::element::{Element, Num};
use super::kernel::{CHUNK, Chunk, Scale, Sums};
use super::moments::Gathered;
use super::scan::{self, Wanted};
use candle_core::{D, DType, Error, Result, Tensor};
use half::{bf16, f16};

/// Elements widened at once, which bounds the memory taken on the device.
const BLOCK: usize = 1024 * CHUNK;

/// What the statistics need to know of a dtype.
struct Format {
    float: bool,
    min_normal: f64,
    near_max: f64,
}

impl Format {
    fn of<T: Element>() -> Format {
        Format {
            float: T::FLOAT,
            min_normal: T::MIN_NORMAL.wide(),
            near_max: T::NEAR_MAX.wide(),
        }
    }

    fn of_dtype(dtype: DType) -> Result<Format> {
        Ok(match dtype {
            DType::U8 => Format::of::<u8>(),
            DType::U32 => Format::of::<u32>(),
            DType::I16 => Format::of::<i16>(),
            DType::I32 => Format::of::<i32>(),
            DType::I64 => Format::of::<i64>(),
            DType::BF16 => Format::of::<bf16>(),
            DType::F16 => Format::of::<f16>(),
            DType::F32 => Format::of::<f32>(),
            DType::F64 => Format::of::<f64>(),
            DType::F8E4M3 => Format::of::<E4M3>(),
            DType::F8E8M0 => Format::of::<E8M0>(),
            other => {
                let other = other.as_str();
                return Err(Error::Msg(format!(
                    "no statistics of dtype {other} on this device"
                )));
            }
        })
    }
}

/// The dtype that `tensor`'s device computes in.
fn working(tensor: &Tensor) -> DType {
    if tensor.device().is_metal() {
        DType::F32
    } else {
        DType::F64
    }
}

/// `tensor` in the dtype that its device computes in.
fn widened(tensor: &Tensor) -> Result<Tensor> {
    let working = working(tensor);
    if tensor.dtype() == DType::F8E4M3 {
        // On the CPU candle's direct conversion to f64 calls itself without end.
        return tensor.to_dtype(DType::F32)?.to_dtype(working);
    }
    tensor.to_dtype(working)
}

/// The tensor without its broadcast dimensions (kept with length 1), and how often it was repeated.
fn distinct(tensor: &Tensor) -> Result<(Tensor, u64)> {
    let mut distinct = tensor.detach();
    let mut copies = 1u64;
    for (dim, (&len, &stride)) in tensor.dims().iter().zip(tensor.stride()).enumerate() {
        if stride == 0 && len > 1 {
            distinct = distinct.narrow(dim, 0, 1)?;
            copies = copies.saturating_mul(len as u64);
        }
    }
    Ok((distinct, copies))
}

/// Statistics of all elements of `tensor`.
pub(super) fn statistics(tensor: &Tensor) -> Result<Statistics> {
    let format = Format::of_dtype(tensor.dtype())?;
    let elements = tensor
        .dims()
        .iter()
        .fold(1u64, |all, &len| all.saturating_mul(len as u64));
    if elements == 0 {
        return Ok(Gathered::new().finish(0, 1, format.float));
    }
    let (distinct, copies) = distinct(tensor)?;
    let mut order: Vec<usize> = (0..distinct.rank()).collect();
    order.sort_by_key(|&dim| std::cmp::Reverse(distinct.stride().get(dim).copied()));
    let cells = if order.is_empty() {
        distinct
    } else {
        distinct.permute(order)?
    }
    .flatten_all()?;
    let mut gathered = Gathered::new();
    for row in rows(&cells, &format)? {
        gathered.add(&row);
    }
    let mut statistics = gathered.finish(elements, copies, format.float);
    if statistics.non_finite > 0 {
        statistics.first_non_finite = first(tensor, Wanted::NonFinite)?
            .map(|(position, _)| scan::unravel(position, tensor.dims()));
    }
    Ok(statistics)
}

/// The reduced rows of a flat tensor that is not empty.
fn rows(cells: &Tensor, format: &Format) -> Result<Vec<Chunk>> {
    let (mut reduced, mut lengths) = (Vec::new(), Vec::new());
    let mut take = |start: usize, rows: usize, len: usize| -> Result<()> {
        let block = widened(&cells.narrow(0, start, rows * len)?)?;
        reduced.push(reduce(&block.reshape((rows, len))?, format)?);
        lengths.extend(std::iter::repeat_n(len, rows));
        Ok(())
    };
    let count = cells.elem_count();
    for start in (0..count).step_by(BLOCK) {
        let len = BLOCK.min(count - start);
        let (whole, rest) = (len / CHUNK, len % CHUNK);
        if whole > 0 {
            take(start, whole, CHUNK)?;
        }
        if rest > 0 {
            take(start + whole * CHUNK, 1, rest)?;
        }
    }
    // The one time that the device is waited for.
    let columns = Tensor::cat(&reduced, 0)?
        .to_dtype(DType::F64)
        .or_else(|_| {
            Tensor::cat(&reduced, 0)?
                .to_device(&candle_core::Device::Cpu)?
                .to_dtype(DType::F64)
        })?;
    let rows = columns.to_vec2::<f64>()?;
    Ok(rows
        .iter()
        .zip(lengths)
        .filter_map(|(row, len)| Row::of(row)?.chunk(len))
        .collect())
}

/// The reductions of each row of `x`, of shape (rows, 12), in the order of [`Row`]'s fields.
fn reduce(x: &Tensor, format: &Format) -> Result<Tensor> {
    let sum = |x: &Tensor| x.sum(D::Minus1);
    let count = |mask: &Tensor| sum(&mask.to_dtype(x.dtype())?);
    let zeros = x.zeros_like()?;
    let magnitude = x.abs()?;
    let finite = magnitude.lt(f64::INFINITY)?;
    let masked = |x: &Tensor, other: &Tensor| finite.where_cond(x, other);
    let infinity = zeros.affine(1.0, f64::INFINITY)?;

    let kept_magnitude = masked(&magnitude, &zeros)?;
    let largest = kept_magnitude.max_keepdim(D::Minus1)?;
    // In units of the row's largest magnitude nothing leaves the range of the float.
    let none = largest.eq(0.0)?.to_dtype(x.dtype())?;
    let unit = masked(x, &zeros)?.broadcast_div(&(&largest + &none)?)?;
    let finite_count = count(&finite)?;
    let at_least_one = finite_count.maximum(1.0)?;
    let total = sum(&unit)?;
    let mean = (&total / &at_least_one)?;
    let away = masked(&unit.broadcast_sub(&mean.unsqueeze(D::Minus1)?)?, &zeros)?;

    let near_max = masked(&magnitude, &zeros)?.gt(format.near_max)?;
    let columns = [
        finite_count,
        count(&x.eq(f64::INFINITY)?)?,
        count(&x.eq(f64::NEG_INFINITY)?)?,
        count(&x.eq(0.0)?)?,
        count(&magnitude.lt(format.min_normal)?)?,
        count(&near_max)?,
        masked(x, &infinity)?.min(D::Minus1)?,
        masked(x, &infinity.neg()?)?.max(D::Minus1)?,
        total,
        sum(&unit.sqr()?)?,
        sum(&away)?,
        sum(&away.sqr()?)?,
    ];
    Tensor::stack(&columns, 1)
}

/// One row's results as they come from the device.
struct Row {
    finite: f64,
    pos_inf: f64,
    neg_inf: f64,
    zeros: f64,
    below_normal: f64,
    near_max: f64,
    min: f64,
    max: f64,
    /// This and what follows in units of the row's largest magnitude.
    sum: f64,
    squares: f64,
    offset: f64,
    away: f64,
}

impl Row {
    fn of(row: &[f64]) -> Option<Row> {
        let &[
            finite,
            pos_inf,
            neg_inf,
            zeros,
            below_normal,
            near_max,
            min,
            max,
            sum,
            squares,
            offset,
            away,
        ] = row
        else {
            return None;
        };
        Some(Row {
            finite,
            pos_inf,
            neg_inf,
            zeros,
            below_normal,
            near_max,
            min,
            max,
            sum,
            squares,
            offset,
            away,
        })
    }

    /// The row as the chunk of `len` elements that it was.
    fn chunk(&self, len: usize) -> Option<Chunk> {
        let largest = if self.finite > 0.0 {
            self.max.max(-self.min)
        } else {
            0.0
        };
        let scale = Scale::of(largest);
        let unit = largest * scale.factor();
        let count = self.finite.max(1.0);
        let spread = (self.away - self.offset * self.offset / count).max(0.0);
        let whole = |x: f64| x as u64;
        let counts = Counts {
            nan: (len as u64).saturating_sub(whole(self.finite + self.pos_inf + self.neg_inf)),
            pos_inf: whole(self.pos_inf),
            neg_inf: whole(self.neg_inf),
            zeros: whole(self.zeros),
            subnormal: whole(self.below_normal - self.zeros),
            near_max: whole(self.near_max),
        };
        let sums = Sums {
            scale,
            count: self.finite,
            sum: (self.sum * unit, 0.0),
            squares: self.squares * unit * unit,
            center: self.sum / count * unit,
            offset: self.offset * unit,
            spread: spread * unit * unit,
        };
        Some(Chunk {
            sums,
            counts,
            min: self.min,
            max: self.max,
        })
    }
}

/// Row-major position and value of the first wanted element.
pub(super) fn first(tensor: &Tensor, wanted: Wanted) -> Result<Option<(usize, f64)>> {
    if !Format::of_dtype(tensor.dtype())?.float {
        return Ok(None);
    }
    let (distinct, _) = distinct(tensor)?;
    let cells = distinct.flatten_all()?;
    let count = cells.elem_count();
    if count == 0 {
        return Ok(None);
    }
    let none = u32::MAX;
    let mut nearest = Vec::new();
    for start in (0..count).step_by(BLOCK) {
        let len = BLOCK.min(count - start);
        let block = widened(&cells.narrow(0, start, len)?)?;
        let kept = match wanted {
            Wanted::Alarm => block.lt(f64::INFINITY)?,
            Wanted::NonFinite => block.abs()?.lt(f64::INFINITY)?,
        };
        let place = Tensor::arange(0u32, len as u32, tensor.device())?;
        let far = Tensor::full(none, len, tensor.device())?;
        nearest.push(kept.where_cond(&far, &place)?.min_keepdim(0)?);
    }
    let nearest = Tensor::cat(&nearest, 0)?.to_vec1::<u32>()?;
    let Some((block, place)) = nearest
        .iter()
        .enumerate()
        .find(|(_, place)| **place != none)
    else {
        return Ok(None);
    };
    let position = block * BLOCK + *place as usize;
    let value = cells
        .narrow(0, position, 1)?
        .to_dtype(DType::F32)?
        .to_vec1::<f32>()?;
    // Back to the position in the whole tensor, whose broadcast dimensions have index 0.
    let index = scan::unravel(position, distinct.dims());
    let position = index
        .iter()
        .zip(tensor.dims())
        .fold(0, |all, (at, len)| all * len + at);
    Ok(value.first().map(|value| (position, f64::from(*value))))
}
