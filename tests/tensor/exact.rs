//! Small tensors whose statistics were worked out by hand.

use candle_core::{DType, Device, Result, Tensor};
use candle_profiler::tensor::stats::{Statistics, statistics};

#[test]
fn every_field_of_a_small_tensor() -> Result<()> {
    let values = [[1f32, -2.0, f32::NAN], [0.0, f32::NEG_INFINITY, 5.0]];
    let found = statistics(&Tensor::new(&values, &Device::Cpu)?)?;
    let expected = Statistics {
        elements: 6,
        non_finite: 2,
        rms: 7.5f64.sqrt(),
        abs_max: 5.0,
        mean: 1.0,
        min: Some(-2.0),
        max: Some(5.0),
        std: 6.5f64.sqrt(),
        l2: 30f64.sqrt(),
        zeros: 1,
        nan: 1,
        pos_inf: 0,
        neg_inf: 1,
        overflow_share: Some(0.0),
        underflow_share: Some(0.0),
        first_non_finite: Some(vec![0, 2]),
    };
    assert_eq!(found, expected);
    Ok(())
}

#[test]
fn without_elements() -> Result<()> {
    let found = statistics(&Tensor::zeros((3, 0), DType::F32, &Device::Cpu)?)?;
    assert_eq!(
        (found.elements, found.rms, found.abs_max, found.mean),
        (0, 0.0, 0.0, 0.0)
    );
    assert_eq!(
        (found.std, found.l2, found.min, found.max),
        (0.0, 0.0, None, None)
    );
    assert_eq!(found.overflow_share, Some(0.0));
    Ok(())
}

#[test]
fn without_dimensions() -> Result<()> {
    let found = statistics(&Tensor::new(-3f64, &Device::Cpu)?)?;
    assert_eq!(
        (found.elements, found.rms, found.mean, found.std),
        (1, 3.0, -3.0, 0.0)
    );
    let found = statistics(&Tensor::new(f64::NAN, &Device::Cpu)?)?;
    assert_eq!((found.nan, found.first_non_finite), (1, Some(vec![])));
    Ok(())
}

#[test]
fn nothing_finite() -> Result<()> {
    let values = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
    let found = statistics(&Tensor::new(&values, &Device::Cpu)?)?;
    assert_eq!(
        (found.nan, found.pos_inf, found.neg_inf, found.non_finite),
        (1, 1, 1, 3)
    );
    assert_eq!(
        (found.rms, found.abs_max, found.mean, found.std, found.l2),
        (0.0, 0.0, 0.0, 0.0, 0.0)
    );
    assert_eq!((found.min, found.max), (None, None));
    Ok(())
}

#[test]
fn zeros_of_both_signs_are_zero() -> Result<()> {
    let found = statistics(&Tensor::new(&[0f32, -0.0, -0.0], &Device::Cpu)?)?;
    assert_eq!((found.zeros, found.underflow_share), (3, Some(0.0)));
    let signs = [found.min, found.max, Some(found.mean)].map(|x| x.map(f64::to_bits));
    assert_eq!(signs, [Some(0); 3]);
    Ok(())
}

#[test]
fn a_broadcast_counts_each_repetition() -> Result<()> {
    let row = Tensor::new(&[3f32, 0.0, f32::INFINITY], &Device::Cpu)?;
    let found = statistics(&row.broadcast_as((4, 3))?)?;
    assert_eq!((found.elements, found.zeros, found.pos_inf), (12, 4, 4));
    assert_eq!((found.rms, found.l2, found.mean), (4.5f64.sqrt(), 6.0, 1.5));
    assert_eq!(found.first_non_finite, Some(vec![0, 2]));
    Ok(())
}

#[test]
fn a_small_spread_about_a_large_mean() -> Result<()> {
    // 2^40 and the next ones: their squares need 80 bits.
    let base = f64::powi(2.0, 40);
    let values: Vec<f64> = (0..10_000).map(|i| base + f64::from(i % 2)).collect();
    let found = statistics(&Tensor::new(values, &Device::Cpu)?)?;
    assert_eq!((found.mean, found.std), (base + 0.5, 0.5));
    Ok(())
}

#[test]
fn values_whose_squares_leave_f64() -> Result<()> {
    let huge = statistics(&Tensor::new(&[3e300, -4e300], &Device::Cpu)?)?;
    assert!((huge.rms / (12.5f64.sqrt() * 1e300) - 1.0).abs() < 1e-15);
    assert!((huge.l2 / 5e300 - 1.0).abs() < 1e-15 && (huge.mean / -0.5e300 - 1.0).abs() < 1e-15);
    let tiny = statistics(&Tensor::new(&[3e-300, -4e-300], &Device::Cpu)?)?;
    assert!((tiny.rms / (12.5f64.sqrt() * 1e-300) - 1.0).abs() < 1e-15);
    assert!((tiny.std / 3.5e-300 - 1.0).abs() < 1e-15);
    let most = statistics(&Tensor::full(f64::MAX, 10, &Device::Cpu)?)?;
    assert_eq!((most.mean, most.l2, most.std), (f64::MAX, f64::MAX, 0.0));
    assert!((most.rms / f64::MAX - 1.0).abs() < 1e-15);
    assert_eq!(most.overflow_share, Some(1.0));
    Ok(())
}

#[test]
fn the_smallest_value_is_not_zero() -> Result<()> {
    let mut values = vec![0f64; 100_000];
    values[77_777] = f64::from_bits(1);
    let found = statistics(&Tensor::new(values, &Device::Cpu)?)?;
    assert!(found.rms > 0.0 && found.l2 > 0.0);
    assert_eq!((found.zeros, found.underflow_share), (99_999, Some(1e-5)));
    Ok(())
}

#[test]
fn a_sum_of_integers_is_exact() -> Result<()> {
    let mut values: Vec<i64> = (0..9_000)
        .map(|i| if i % 2 == 0 { i64::MAX } else { -i64::MAX })
        .collect();
    values.push(9_001);
    let found = statistics(&Tensor::new(values, &Device::Cpu)?)?;
    assert_eq!(found.mean, 1.0);
    Ok(())
}

#[test]
fn a_mask_of_negative_infinities() -> Result<()> {
    let lower = Tensor::tril2(64, DType::U8, &Device::Cpu)?;
    let hidden = Tensor::full(f32::NEG_INFINITY, (64, 64), &Device::Cpu)?;
    let mask = lower.where_cond(&hidden.ones_like()?, &hidden)?;
    let found = statistics(&mask)?;
    assert_eq!(
        (found.neg_inf, found.non_finite, found.mean, found.std),
        (2016, 2016, 1.0, 0.0)
    );
    assert_eq!(found.first_non_finite, Some(vec![0, 1]));
    Ok(())
}
