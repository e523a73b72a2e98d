//! The search for the first value that is not finite, in the row-major order of the view.

use super::element::{Element, Num};
use super::kernel::CHUNK;
use super::layout::View;
use super::path::Path;

/// Shorter runs are looked through element by element.
const SHORT: usize = 64;

/// What is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// NaN and +inf; masks are full of -inf.
    Alarm,
    NonFinite,
}

#[inline(always)]
fn is_wanted<N: Num>(x: N, wanted: Wanted) -> bool {
    let kept = match wanted {
        Wanted::Alarm => x < N::INFINITY,
        Wanted::NonFinite => x.magnitude() < N::INFINITY,
    };
    !kept
}

/// As [`first`], for tensors that most likely hold nothing wanted: whole chunks are asked first.
pub(super) fn alarm<T: Element>(
    data: &[T],
    view: &View,
    path: Path,
    wanted: Wanted,
) -> Option<(usize, f64)> {
    if !T::FLOAT {
        return None;
    }
    let mut found = false;
    view.chunks(data, |chunk| {
        found = found || T::any_alarm(path, chunk, wanted == Wanted::NonFinite)
    });
    if found {
        first(data, view, path, wanted)
    } else {
        None
    }
}

/// The row-major position of the first wanted element, and its value.
///
/// The storage is walked as it lies; a run that starts behind the best place found cannot hold a
/// better one, since ranks only grow along it.
pub(super) fn first<T: Element>(
    data: &[T],
    view: &View,
    path: Path,
    wanted: Wanted,
) -> Option<(usize, f64)> {
    if !T::FLOAT {
        return None;
    }
    let mut best: Option<(usize, f64)> = None;
    view.runs(|start, rank, axis| {
        let nearer = |rank: usize| best.is_none_or(|(least, _)| rank < least);
        if !nearer(rank) {
            return true;
        }
        let found = if axis.stride == 1 && axis.len >= SHORT {
            let run = data.get(start..start + axis.len).unwrap_or_default();
            first_in_run(run, path, wanted)
        } else {
            let cells = data.get(start..).unwrap_or_default().iter();
            cells
                .step_by(axis.stride)
                .take(axis.len)
                .position(|x| is_wanted(x.num(), wanted))
        };
        if let Some(at) = found {
            let rank = rank + at * axis.rank;
            if nearer(rank) {
                let value = data.get(start + at * axis.stride).map(|x| x.num().wide());
                best = value.map(|value| (rank, value)).or(best);
            }
        }
        // Nothing precedes the very first element.
        best.is_none_or(|(least, _)| least > 0)
    });
    best
}

fn first_in_run<T: Element>(run: &[T], path: Path, wanted: Wanted) -> Option<usize> {
    run.chunks(CHUNK).enumerate().find_map(|(index, chunk)| {
        if !T::any_alarm(path, chunk, wanted == Wanted::NonFinite) {
            return None;
        }
        let at = chunk.iter().position(|x| is_wanted(x.num(), wanted))?;
        Some(index * CHUNK + at)
    })
}

/// The index along each dimension of the element at a row-major position.
pub(super) fn unravel(mut position: usize, dims: &[usize]) -> Vec<usize> {
    let mut index = vec![0; dims.len()];
    for (index, dim) in index.iter_mut().zip(dims).rev() {
        *index = position % dim;
        position /= dim;
    }
    index
}
