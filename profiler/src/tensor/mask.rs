//! Tells masks from what a network computes, by their elements.

use candle_core::{CpuStorage, Storage, Tensor, WithDType};

/// So many elements are looked at.
const LOOKED_AT: usize = 4096;
/// Fewer tell nothing.
const FEW: usize = 16;

/// Whether all elements looked at are 0, 1 or infinite, or 0 and one other number. On a GPU nothing is looked at.
pub(super) fn is_mask(tensor: &Tensor) -> bool {
    let (storage, layout) = tensor.storage_and_layout();
    let from = layout.start_offset();
    match &*storage {
        Storage::Cpu(CpuStorage::F32(all)) => is_masklike(all.get(from..)),
        Storage::Cpu(CpuStorage::F64(all)) => is_masklike(all.get(from..)),
        Storage::Cpu(CpuStorage::F16(all)) => is_masklike(all.get(from..)),
        Storage::Cpu(CpuStorage::BF16(all)) => is_masklike(all.get(from..)),
        _ => false,
    }
}

fn is_masklike<T: WithDType>(elements: Option<&[T]>) -> bool {
    let elements = elements.unwrap_or_default();
    let numbers = || {
        elements
            .iter()
            .take(LOOKED_AT)
            .map(|element| element.to_f64())
    };
    let infinite = numbers().any(f64::is_infinite);
    // Few elements are often alike by chance.
    if elements.len() < FEW && !infinite {
        return false;
    }
    if numbers().all(|number| number == 0.0 || number == 1.0 || number.is_infinite()) {
        return true;
    }
    let mut others = numbers().filter(|number| *number != 0.0);
    let first = others.next();
    numbers().any(|number| number == 0.0) && others.all(|other| Some(other) == first)
}

#[cfg(test)]
mod tests {
    use candle_core::{DType, Device};

    use super::*;

    fn of(elements: &[f32]) -> bool {
        is_mask(&Tensor::new(elements, &Device::Cpu).unwrap())
    }

    #[test]
    fn masks_hold_two_numbers_one_of_them_zero() {
        let inf = f32::NEG_INFINITY;
        assert!(of(&[0.0, inf, 0.0, 0.0]));
        assert!(of(&[[0.0, 1.0]; 8].concat()));
        assert!(of(&[[0.0, 1.25]; 8].concat()), "of a dropout");
        assert!(of(&[[0.0, -1e9]; 8].concat()));
        assert!(!of(&[[1.0, 2.0]; 8].concat()));
        assert!(!of(&[[0.0, 1.0, 2.0, 0.5]; 8].concat()));
        assert!(!of(&[0.0, 2.0, 0.0]), "too few to tell");
        assert!(!of(&[0.5; 32]), "a softmax of nothing");
        assert!(!of(&[]));
        let half = Tensor::zeros(64, DType::BF16, &Device::Cpu).unwrap();
        assert!(is_mask(&half));
    }
}
