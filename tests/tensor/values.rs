//! Values that sums and comparisons go wrong on.

use crate::reference::{check, noise};
use candle_core::{DType, Device, Result, Tensor};

fn check_all(values: &[f64], dtypes: &[DType]) -> Result<()> {
    for dtype in dtypes {
        let tensor = Tensor::new(values, &Device::Cpu)?.to_dtype(*dtype)?;
        check(&tensor);
        check(&Tensor::cat(&[&tensor, &tensor.zeros_like()?], 0)?);
    }
    Ok(())
}

const FLOATS: [DType; 4] = [DType::F64, DType::F32, DType::BF16, DType::F16];

#[test]
fn sizes_over_the_whole_range() -> Result<()> {
    let noise = noise(10_000, 5);
    for power in [
        -310, -300, -250, -150, -45, -20, -3, 3, 20, 37, 150, 160, 290, 307,
    ] {
        let values: Vec<f64> = noise.iter().map(|x| x * f64::powi(10.0, power)).collect();
        check_all(&values, &[DType::F64])?;
        if (-45..38).contains(&power) {
            check_all(&values, &[DType::F32, DType::BF16])?;
        }
    }
    // All sizes at once, apart and mixed.
    let mixed = |step: usize| -> Vec<f64> {
        let power = |i: usize| ((i / step) % 600) as i32 - 300;
        noise
            .iter()
            .enumerate()
            .map(|(i, x)| x * f64::powi(10.0, power(i)))
            .collect()
    };
    check_all(&mixed(1), &[DType::F64])?;
    check_all(&mixed(4096), &[DType::F64])?;
    Ok(())
}

#[test]
fn chunks_of_different_scale() -> Result<()> {
    let mut values = Vec::new();
    for size in [1e-300, 1.0, 0.0, 1e300, 1e-200, 1e200] {
        values.extend(noise(5000, 9).iter().map(|x| x * size));
        check_all(&values, &[DType::F64])?;
    }
    values.reverse();
    check_all(&values, &[DType::F64])
}

#[test]
fn constants() -> Result<()> {
    for x in [0.0, -0.0, 0.1, -7.0, 1e-7, 60_000.0, 3e38] {
        check_all(&vec![x; 9000], &FLOATS)?;
    }
    Ok(())
}

#[test]
fn far_from_zero() -> Result<()> {
    for center in [10.0, 1e3, 1e6, -1e9, 1e12] {
        let values: Vec<f64> = noise(20_000, 2).iter().map(|x| center + x).collect();
        check_all(&values, &[DType::F64, DType::F32])?;
    }
    Ok(())
}

#[test]
fn an_outlier_at_each_end() -> Result<()> {
    let mut values = noise(9000, 4);
    values[0] = 1e20;
    values[8999] = -1e30;
    check_all(&values, &[DType::F64, DType::F32])
}

#[test]
fn not_finite_anywhere() -> Result<()> {
    for count in [1, 15, 16, 17, 4096, 4097, 9000] {
        for at in [0, count / 2, count - 1] {
            for x in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
                let mut values = noise(count, 6);
                values[at] = x;
                check_all(&values, &FLOATS)?;
                values[0] = f64::INFINITY;
                check_all(&values, &FLOATS)?;
            }
        }
    }
    Ok(())
}

#[test]
fn near_the_ends_of_f32() -> Result<()> {
    // The neighbours of 90 % of the largest value, and of the smallest normal one.
    let limit = (0.9 * f64::from(f32::MAX)) as f32;
    let smallest = f32::MIN_POSITIVE;
    let values = [
        limit.next_down(),
        limit,
        limit.next_up(),
        smallest.next_down(),
        smallest,
        -limit,
    ];
    check(&Tensor::new(&values, &Device::Cpu)?);
    check(&Tensor::new(
        &[0.9 * f64::MAX, (0.9 * f64::MAX).next_up(), 1.0],
        &Device::Cpu,
    )?);
    Ok(())
}
