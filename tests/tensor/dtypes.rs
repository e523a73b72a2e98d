//! Each dtype that candle knows.

use crate::reference::{check, elements, expected, noise, same};
use candle_core::{DType, Device, Result, Tensor};
use candle_profiler::tensor::stats::statistics;

const NUMBERS: [DType; 10] = [
    DType::U8,
    DType::U32,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::BF16,
    DType::F16,
    DType::F32,
    DType::F64,
    DType::F8E4M3,
];

#[test]
fn all_lengths_about_the_sizes_of_vectors_and_chunks() -> Result<()> {
    for dtype in NUMBERS {
        for count in (0..70).chain([4095, 4096, 4097, 12_289]) {
            let values = noise(count, count as u64 + 1)
                .into_iter()
                .map(|x| x * 100.0)
                .collect::<Vec<_>>();
            let tensor = Tensor::new(values, &Device::Cpu)?;
            let tensor = if dtype == DType::U8 || dtype == DType::U32 {
                tensor.abs()?
            } else {
                tensor
            };
            check(&tensor.to_dtype(dtype)?);
        }
    }
    Ok(())
}

#[test]
fn every_bit_pattern_of_the_short_floats() -> Result<()> {
    let bytes: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
    for dtype in [DType::BF16, DType::F16] {
        check(&Tensor::from_raw_buffer(
            &bytes,
            dtype,
            &[256, 256],
            &Device::Cpu,
        )?);
        for pattern in bytes.chunks(2) {
            let tensor = Tensor::from_raw_buffer(pattern, dtype, &[1], &Device::Cpu)?;
            let expected = expected(&elements(&tensor), &[1], dtype);
            same(&statistics(&tensor)?, &expected);
        }
    }
    let bytes: Vec<u8> = (0..=u8::MAX).collect();
    check(&Tensor::from_raw_buffer(
        &bytes,
        DType::F8E4M3,
        &[256],
        &Device::Cpu,
    )?);
    for pattern in bytes.chunks(1) {
        check(&Tensor::from_raw_buffer(
            pattern,
            DType::F8E4M3,
            &[],
            &Device::Cpu,
        )?);
    }
    Ok(())
}

#[test]
fn the_ends_of_the_integers() -> Result<()> {
    check(&Tensor::new(&[u8::MAX, 0, 1], &Device::Cpu)?);
    check(&Tensor::new(&[u32::MAX, 0, u32::MAX - 1], &Device::Cpu)?);
    check(&Tensor::new(&[i16::MAX, i16::MIN, 0], &Device::Cpu)?);
    check(&Tensor::new(&[i32::MAX, i32::MIN, 0], &Device::Cpu)?);
    check(&Tensor::new(&[i64::MAX, i64::MIN, 0], &Device::Cpu)?);
    check(&Tensor::full(u32::MAX, 10_000, &Device::Cpu)?);
    check(&Tensor::full(i64::MIN, 10_000, &Device::Cpu)?);
    Ok(())
}

#[test]
fn means_of_i64_against_i128() -> Result<()> {
    let values: Vec<i64> = noise(50_000, 3)
        .iter()
        .map(|x| (x * 9.2e18) as i64)
        .collect();
    let exact: i128 = values.iter().map(|x| i128::from(*x)).sum();
    let mean = exact as f64 / values.len() as f64;
    let found = statistics(&Tensor::new(values, &Device::Cpu)?)?;
    assert!(
        (found.mean / mean - 1.0).abs() < 1e-9,
        "{} instead of {mean}",
        found.mean
    );
    Ok(())
}

#[test]
fn powers_of_two_in_bytes() -> Result<()> {
    // 2^-127, 1, 2, NaN.
    let bytes = [0, 127, 128, 255];
    let tensor = Tensor::from_raw_buffer(&bytes, DType::F8E8M0, &[2, 2], &Device::Cpu)?;
    for (tensor, place) in [(tensor.clone(), vec![1, 1]), (tensor.t()?, vec![1, 1])] {
        let found = statistics(&tensor)?;
        assert_eq!(
            (found.min, found.max),
            (Some(f64::powi(2.0, -127)), Some(2.0))
        );
        assert_eq!((found.nan, found.first_non_finite), (1, Some(place)));
        assert_eq!(
            (found.mean, found.zeros, found.underflow_share),
            (1.0, 0, Some(0.0))
        );
    }
    Ok(())
}

#[test]
fn four_bits() -> Result<()> {
    // 0 0.5 | 1 1.5 | 2 3 | 4 6 and their negatives, low half first.
    let bytes = [0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe];
    let tensor = Tensor::from_raw_buffer(&bytes, DType::F4, &[4, 4], &Device::Cpu)?;
    for tensor in [tensor.clone(), tensor.t()?] {
        let found = statistics(&tensor)?;
        assert_eq!((found.elements, found.zeros, found.mean), (16, 2, 0.0));
        assert_eq!((found.min, found.max), (Some(-6.0), Some(6.0)));
        assert_eq!(
            found.l2,
            (2.0f64 * (0.25 + 1.0 + 2.25 + 4.0 + 9.0 + 16.0 + 36.0)).sqrt()
        );
        assert_eq!(
            (found.overflow_share, found.underflow_share),
            (Some(0.125), Some(0.125))
        );
    }
    let part = statistics(&tensor.narrow(0, 0, 2)?)
        .unwrap_err()
        .to_string();
    assert!(part.contains("f4") && part.contains("[2, 4]"), "{part}");
    Ok(())
}

#[test]
fn six_bits_are_refused_by_name() -> Result<()> {
    for (dtype, name) in [(DType::F6E2M3, "f6e2m3"), (DType::F6E3M2, "f6e3m2")] {
        let tensor = Tensor::from_raw_buffer(&[1, 2, 3], dtype, &[4], &Device::Cpu)?;
        let refused = statistics(&tensor).unwrap_err().to_string();
        assert!(refused.contains(name), "{refused}");
    }
    Ok(())
}

#[test]
fn a_storage_too_short_for_its_shape_is_refused() -> Result<()> {
    let tensor = Tensor::from_raw_buffer(&[1, 2], DType::F8E8M0, &[4], &Device::Cpu)?;
    assert!(statistics(&tensor).is_err());
    Ok(())
}
