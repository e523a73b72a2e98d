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

/// A tensor whose reduction has been asked for.
pub(crate) struct Pending {
    float: bool,
    elements: u64,
    copies: u64,
    dims: Vec<usize>,
    /// Those of the tensor without its broadcast dimensions.
    distinct: Vec<usize>,
    /// The lengths of the rows.
    lengths: Vec<usize>,
    /// The rows' reductions, twelve each, then of each block the place of its first value that is not finite.
    /// `None`: there are no elements.
    numbers: Option<Tensor>,
}

/// Asks the device for the statistics of all elements of `tensor`; nothing is waited for.
pub(super) fn begin(tensor: &Tensor) -> Result<Pending> {
    let format = Format::of_dtype(tensor.dtype())?;
    let elements = tensor
        .dims()
        .iter()
        .fold(1u64, |all, &len| all.saturating_mul(len as u64));
    let (distinct, copies) = distinct(tensor)?;
    let mut pending = Pending {
        float: format.float,
        elements,
        copies,
        dims: tensor.dims().to_vec(),
        distinct: distinct.dims().to_vec(),
        lengths: Vec::new(),
        numbers: None,
    };
    if elements == 0 {
        return Ok(pending);
    }
    let mut order: Vec<usize> = (0..distinct.rank()).collect();
    order.sort_by_key(|&dim| std::cmp::Reverse(distinct.stride().get(dim).copied()));
    let cells = if order.is_empty() {
        distinct.clone()
    } else {
        distinct.permute(order)?
    }
    .flatten_all()?;
    let mut numbers = rows(&cells, &format, &mut pending.lengths)?;
    if format.float {
        for place in nearest(&distinct.flatten_all()?, Wanted::NonFinite)? {
            numbers.push(place.to_dtype(working(tensor))?);
        }
    }
    pending.numbers = Some(Tensor::cat(&numbers, 0)?);
    Ok(pending)
}

/// Waits for what was asked for, once for each device and type that it computes in.
pub(super) fn read_back(all: Vec<Pending>) -> Vec<Result<Statistics>> {
    let kind = |tensor: &Tensor| (tensor.device().location(), tensor.dtype());
    let mut read: Vec<Option<Result<Vec<f64>>>> = all.iter().map(|_| None).collect();
    while let Some(first) =
        (0..all.len()).find(|&at| read[at].is_none() && all[at].numbers.is_some())
    {
        let Some(like) = all[first].numbers.as_ref().map(kind) else {
            break;
        };
        let same: Vec<(usize, &Tensor)> = all
            .iter()
            .enumerate()
            .filter(|(at, _)| read[*at].is_none())
            .filter_map(|(at, pending)| Some((at, pending.numbers.as_ref()?)))
            .filter(|(_, numbers)| kind(numbers) == like)
            .collect();
        let tensors: Vec<&Tensor> = same.iter().map(|(_, numbers)| *numbers).collect();
        match together(&tensors) {
            Ok(numbers) => {
                let mut from = 0;
                for (at, tensor) in same {
                    let to = from + tensor.elem_count();
                    read[at] = Some(Ok(numbers.get(from..to).unwrap_or_default().to_vec()));
                    from = to;
                }
            }
            Err(error) => {
                let text = error.to_string();
                for (at, _) in same {
                    read[at] = Some(Err(Error::Msg(text.clone())));
                }
            }
        }
    }
    let finish = |(pending, numbers): (Pending, Option<Result<Vec<f64>>>)| {
        Ok(pending.finish(&numbers.unwrap_or_else(|| Ok(Vec::new()))?))
    };
    all.into_iter().zip(read).map(finish).collect()
}

/// The numbers of all, one after another.
fn together(tensors: &[&Tensor]) -> Result<Vec<f64>> {
    let all = Tensor::cat(tensors, 0)?;
    let wide = all.to_dtype(DType::F64).or_else(|_| {
        // Metal has no f64.
        all.to_device(&candle_core::Device::Cpu)?
            .to_dtype(DType::F64)
    })?;
    wide.to_vec1::<f64>()
}

impl Pending {
    fn finish(self, numbers: &[f64]) -> Statistics {
        let mut gathered = Gathered::new();
        let of_rows = numbers.len().min(self.lengths.len() * COLUMNS);
        let (rows, places) = numbers.split_at(of_rows);
        for (row, len) in rows.chunks(COLUMNS).zip(&self.lengths) {
            if let Some(chunk) = Row::of(row).and_then(|row| row.chunk(*len)) {
                gathered.add(&chunk);
            }
        }
        let mut statistics = gathered.finish(self.elements, self.copies, self.float);
        if statistics.non_finite > 0 {
            let place = first_place(places);
            statistics.first_non_finite = place.map(|place| {
                scan::unravel(
                    whole_position(place, &self.distinct, &self.dims),
                    &self.dims,
                )
            });
        }
        statistics
    }
}

/// Statistics of all elements of `tensor`.
pub(super) fn statistics(tensor: &Tensor) -> Result<Statistics> {
    let mut all = read_back(vec![begin(tensor)?]);
    all.pop()
        .unwrap_or_else(|| Err(Error::Msg("the device gave nothing back".to_owned())))
}

/// Numbers of a row.
const COLUMNS: usize = 12;

/// The reduced rows of a flat tensor that is not empty, each block's flat; their lengths go to `lengths`.
fn rows(cells: &Tensor, format: &Format, lengths: &mut Vec<usize>) -> Result<Vec<Tensor>> {
    let mut reduced = Vec::new();
    let mut take = |start: usize, rows: usize, len: usize| -> Result<()> {
        let block = widened(&cells.narrow(0, start, rows * len)?)?;
        reduced.push(reduce(&block.reshape((rows, len))?, format)?.flatten_all()?);
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
    Ok(reduced)
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

/// Of each block of a flat tensor, the place of the first wanted value in it, or [`NONE`].
fn nearest(cells: &Tensor, wanted: Wanted) -> Result<Vec<Tensor>> {
    let count = cells.elem_count();
    let mut nearest = Vec::new();
    for start in (0..count).step_by(BLOCK) {
        let len = BLOCK.min(count - start);
        let block = widened(&cells.narrow(0, start, len)?)?;
        let kept = match wanted {
            Wanted::Alarm => block.lt(f64::INFINITY)?,
            Wanted::NonFinite => block.abs()?.lt(f64::INFINITY)?,
        };
        let place = Tensor::arange(0u32, len as u32, cells.device())?;
        let far = Tensor::full(NONE, len, cells.device())?;
        nearest.push(kept.where_cond(&far, &place)?.min_keepdim(0)?);
    }
    Ok(nearest)
}

/// No place: beyond every block, and exact in every float.
const NONE: u32 = 1 << 31;

/// The first place in the whole, from the places in each block.
fn first_place(places: &[f64]) -> Option<usize> {
    let mut blocks = places.iter().enumerate();
    let (block, place) = blocks.find(|(_, place)| **place < f64::from(NONE))?;
    Some(block * BLOCK + *place as usize)
}

/// The position in the whole tensor, whose broadcast dimensions have index 0.
fn whole_position(place: usize, distinct: &[usize], dims: &[usize]) -> usize {
    let index = scan::unravel(place, distinct);
    index
        .iter()
        .zip(dims)
        .fold(0, |all, (at, len)| all * len + at)
}

/// Row-major position and value of the first wanted element.
pub(super) fn first(tensor: &Tensor, wanted: Wanted) -> Result<Option<(usize, f64)>> {
    if !Format::of_dtype(tensor.dtype())?.float {
        return Ok(None);
    }
    let (distinct, _) = distinct(tensor)?;
    let cells = distinct.flatten_all()?;
    if cells.elem_count() == 0 {
        return Ok(None);
    }
    let places = Tensor::cat(&nearest(&cells, wanted)?, 0)?.to_vec1::<u32>()?;
    let places: Vec<f64> = places.into_iter().map(f64::from).collect();
    let Some(place) = first_place(&places) else {
        return Ok(None);
    };
    let value = cells
        .narrow(0, place, 1)?
        .to_dtype(DType::F32)?
        .to_vec1::<f32>()?;
    let position = whole_position(place, distinct.dims(), tensor.dims());
    Ok(value.first().map(|value| (position, f64::from(*value))))
}
