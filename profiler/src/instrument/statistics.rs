//! A stand-in for the statistics of `crate::tensor::stats`, with the same shape and meaning: it
//! reads the whole tensor back. `evidence.rs` and `candle.rs` name it in one `use` each.

use anyhow::Result;
use candle_core::{DType, Device, Tensor};

/// Statistics over the finite elements of a tensor.
#[derive(Debug, Clone, Default)]
pub(super) struct Statistics {
    pub(super) elements: u64,
    pub(super) non_finite: u64,
    pub(super) rms: f64,
    pub(super) abs_max: f64,
    pub(super) mean: f64,
    pub(super) min: Option<f64>,
    pub(super) max: Option<f64>,
    pub(super) std: f64,
    pub(super) l2: f64,
    pub(super) zeros: u64,
    pub(super) nan: u64,
    pub(super) pos_inf: u64,
    pub(super) neg_inf: u64,
    pub(super) overflow_share: Option<f64>,
    pub(super) underflow_share: Option<f64>,
    pub(super) first_non_finite: Option<Vec<usize>>,
}

pub(super) fn statistics(tensor: &Tensor) -> Result<Statistics> {
    let values = tensor
        .detach()
        .to_device(&Device::Cpu)?
        .to_dtype(DType::F64)?
        .flatten_all()?
        .to_vec1::<f64>()?;
    let finite: Vec<f64> = values.iter().copied().filter(|x| x.is_finite()).collect();
    let count = finite.len().max(1) as f64;
    let abs_max = finite.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
    let scale = if abs_max > 0.0 { abs_max } else { 1.0 };
    let squares: f64 = finite.iter().map(|x| (x / scale).powi(2)).sum();
    let mean = finite.iter().map(|x| x / count).sum::<f64>();
    let spread: f64 = finite
        .iter()
        .map(|x| (x / scale - mean / scale).powi(2))
        .sum();
    let first = values.iter().position(|x| !x.is_finite());
    Ok(Statistics {
        elements: values.len() as u64,
        non_finite: (values.len() - finite.len()) as u64,
        rms: scale * (squares / count).sqrt(),
        abs_max,
        mean,
        min: finite.iter().copied().reduce(f64::min),
        max: finite.iter().copied().reduce(f64::max),
        std: scale * (spread / count).sqrt(),
        l2: scale * squares.sqrt(),
        zeros: finite.iter().filter(|x| **x == 0.0).count() as u64,
        nan: values.iter().filter(|x| x.is_nan()).count() as u64,
        pos_inf: values.iter().filter(|x| **x == f64::INFINITY).count() as u64,
        neg_inf: values.iter().filter(|x| **x == f64::NEG_INFINITY).count() as u64,
        overflow_share: None,
        underflow_share: None,
        first_non_finite: first.map(|place| index_of(place, tensor.dims())),
    })
}

fn index_of(mut place: usize, dims: &[usize]) -> Vec<usize> {
    let mut index = vec![0; dims.len()];
    for (slot, dim) in index.iter_mut().zip(dims).rev() {
        let dim = (*dim).max(1);
        *slot = place % dim;
        place /= dim;
    }
    index
}
