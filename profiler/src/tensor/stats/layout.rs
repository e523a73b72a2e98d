//! The walk over the storage cells of a view, nearest cells first.
//!
//! All statistics but the place of the first non-finite element are the same in any order, so a
//! transposed view is read as it lies in memory and a broadcast one is read once.

use super::kernel::CHUNK;
use candle_core::{Error, Result};

/// Runs of neighbouring cells from this length on are taken where they lie; shorter ones are
/// brought together first, so that no chunk is small.
const DIRECT: usize = 1024;

/// Below this length the nearest dimension alone makes too short a loop.
const SHORT: usize = 16;

/// Rows taken together where the nearest dimension is short: their cache lines stay near while
/// the loop passes over them once for each of its elements.
const ROWS: usize = 256;

/// One dimension of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Axis {
    pub(super) len: usize,
    /// Cells from one index to the next.
    pub(super) stride: usize,
    /// Elements in row-major order from one index to the next.
    pub(super) rank: usize,
}

/// Which cells of a storage a tensor shows.
#[derive(Clone, Debug)]
pub(super) struct View {
    /// Without those of length 1 and the broadcast ones, the nearest cells first.
    axes: Vec<Axis>,
    offset: usize,
    /// How often each cell is shown by broadcasting.
    pub(super) copies: u64,
    /// The product of the shape.
    pub(super) elements: u64,
}

impl View {
    /// A view of a storage of `cells` cells.
    ///
    /// # Errors
    /// Where the view would reach beyond the storage.
    pub(super) fn new(
        dims: &[usize],
        strides: &[usize],
        offset: usize,
        cells: usize,
    ) -> Result<View> {
        let wide = |x: usize| u64::try_from(x).unwrap_or(u64::MAX);
        let mut view = View {
            axes: Vec::with_capacity(dims.len()),
            offset,
            copies: 1,
            elements: 0,
        };
        if dims.contains(&0) {
            return Ok(view);
        }
        view.elements = 1;
        let mut rank = 1usize;
        let mut last = Some(offset);
        for (&len, &stride) in dims.iter().zip(strides).rev() {
            view.elements = view.elements.saturating_mul(wide(len));
            if stride == 0 {
                view.copies = view.copies.saturating_mul(wide(len));
            } else if len > 1 {
                view.axes.push(Axis { len, stride, rank });
                last = last.and_then(|last| last.checked_add((len - 1).checked_mul(stride)?));
            }
            rank = rank.saturating_mul(len);
        }
        if last.is_none_or(|last| last >= cells) || dims.len() != strides.len() {
            return Err(Error::Msg(format!(
                "a view of shape {dims:?} with strides {strides:?} from {offset} on does not fit \
                 a storage of {cells} elements"
            )));
        }
        view.axes.sort_by_key(|axis| axis.stride);
        Ok(view)
    }

    /// The same cells in fewer and longer dimensions. With `ranked` only those become one that
    /// are one in row-major order too.
    fn merged(&self, ranked: bool) -> Vec<Axis> {
        let mut merged: Vec<Axis> = Vec::with_capacity(self.axes.len());
        for axis in &self.axes {
            match merged.last_mut() {
                Some(inner)
                    if inner.len.checked_mul(inner.stride) == Some(axis.stride)
                        && (!ranked || inner.len.checked_mul(inner.rank) == Some(axis.rank)) =>
                {
                    inner.len *= axis.len;
                }
                _ => merged.push(*axis),
            }
        }
        merged
    }

    /// Whether the view shows each of the `cells` cells of its storage equally often.
    pub(super) fn covers(&self, cells: usize) -> bool {
        let merged = self.merged(false);
        let whole = match merged.as_slice() {
            [] => cells == 1,
            [axis] => axis.stride == 1 && axis.len == cells,
            _ => false,
        };
        self.elements > 0 && self.offset == 0 && whole
    }

    /// Gives `data`'s cells in the view to `take`, each once, in chunks of at most [`CHUNK`].
    pub(super) fn chunks<T: Copy>(&self, data: &[T], mut take: impl FnMut(&[T])) {
        if self.elements == 0 {
            return;
        }
        let axes = self.merged(false);
        let (inner, outer) = match axes.split_first() {
            Some((inner, outer)) => (*inner, outer),
            None => (
                Axis {
                    len: 1,
                    stride: 1,
                    rank: 1,
                },
                axes.as_slice(),
            ),
        };
        if inner.stride == 1 && (inner.len >= DIRECT || outer.is_empty()) {
            Odometer::new(outer, self.offset).each(|base, _| {
                // The constructor saw that every cell of the view is there.
                let run = data.get(base..base + inner.len).unwrap_or_default();
                run.chunks(CHUNK).for_each(&mut take);
                true
            });
            return;
        }
        let Some(first) = data.get(self.offset) else {
            return;
        };
        let mut buffer = Buffer {
            cells: [*first; CHUNK],
            filled: 0,
            take,
        };
        match outer.split_first() {
            Some((next, outer)) if inner.len < SHORT && next.len > inner.len => {
                Odometer::new(outer, self.offset).each(|base, _| {
                    buffer.table(data, base, inner, *next);
                    true
                });
            }
            _ => Odometer::new(outer, self.offset).each(|base, _| {
                buffer.row(data, base, inner.len, inner.stride);
                true
            }),
        }
        buffer.flush();
    }

    /// The runs of the view: start, rank of the start, and the axis along which to go on. `take`
    /// says whether to go on.
    pub(super) fn runs(&self, mut take: impl FnMut(usize, usize, Axis) -> bool) {
        if self.elements == 0 {
            return;
        }
        let axes = self.merged(true);
        let (inner, outer) = match axes.split_first() {
            Some((inner, outer)) => (*inner, outer),
            None => (
                Axis {
                    len: 1,
                    stride: 1,
                    rank: 1,
                },
                axes.as_slice(),
            ),
        };
        Odometer::new(outer, self.offset).each(|base, rank| take(base, rank, inner));
    }
}

/// Counts through the indices of some axes, the first fastest.
struct Odometer<'a> {
    axes: &'a [Axis],
    index: Vec<usize>,
    cell: usize,
    rank: usize,
}

impl<'a> Odometer<'a> {
    fn new(axes: &'a [Axis], offset: usize) -> Self {
        Odometer {
            axes,
            index: vec![0; axes.len()],
            cell: offset,
            rank: 0,
        }
    }

    /// Calls `take` with cell and rank of each position, until it says false.
    fn each(mut self, mut take: impl FnMut(usize, usize) -> bool) {
        while take(self.cell, self.rank) && self.advance() {}
    }

    fn advance(&mut self) -> bool {
        for (index, axis) in self.index.iter_mut().zip(self.axes) {
            *index += 1;
            self.cell += axis.stride;
            self.rank = self.rank.wrapping_add(axis.rank);
            if *index < axis.len {
                return true;
            }
            self.cell -= axis.len * axis.stride;
            self.rank = self.rank.wrapping_sub(axis.len.wrapping_mul(axis.rank));
            *index = 0;
        }
        false
    }
}

/// Scattered cells brought together.
struct Buffer<T, F> {
    cells: [T; CHUNK],
    filled: usize,
    take: F,
}

impl<T: Copy, F: FnMut(&[T])> Buffer<T, F> {
    fn flush(&mut self) {
        if self.filled > 0 {
            (self.take)(&self.cells[..self.filled]);
            self.filled = 0;
        }
    }

    /// Takes `len` cells from `base` on, `stride` apart.
    #[inline]
    fn row(&mut self, data: &[T], mut base: usize, mut len: usize, stride: usize) {
        while len > 0 {
            if self.filled == CHUNK {
                self.flush();
            }
            let free = &mut self.cells[self.filled..];
            let now = len.min(free.len());
            let from = data.get(base..).unwrap_or_default();
            if stride == 1
                && let Some(from) = from.get(..now)
            {
                free[..now].copy_from_slice(from);
            } else {
                let to = free[..now].iter_mut();
                to.zip(from.iter().step_by(stride))
                    .for_each(|(to, x)| *to = *x);
            }
            self.filled += now;
            base += now * stride;
            len -= now;
        }
    }

    /// Takes a table of few columns: column by column, some rows at a time.
    fn table(&mut self, data: &[T], base: usize, columns: Axis, rows: Axis) {
        let mut done = 0;
        while done < rows.len {
            let now = ROWS.min(rows.len - done);
            for column in 0..columns.len {
                let base = base + done * rows.stride + column * columns.stride;
                self.row(data, base, now, rows.stride);
            }
            done += now;
        }
    }
}
