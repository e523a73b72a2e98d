//! The quick look for values that raise an alarm.

use crate::reference::noise;
use candle_core::{DType, Device, Result, Tensor};
use candle_profiler::tensor::stats::{Alarm, AlarmOn, NonFinite, has_alarm};

#[test]
fn the_first_in_the_order_of_the_view() -> Result<()> {
    let mut values = noise(60 * 70, 8);
    values[17 * 70 + 30] = f64::INFINITY;
    values[40 * 70 + 5] = f64::NAN;
    values[3 * 70 + 60] = f64::NEG_INFINITY;
    for dtype in [DType::F64, DType::F32, DType::F16, DType::BF16] {
        let tensor = Tensor::from_vec(values.clone(), (60, 70), &Device::Cpu)?.to_dtype(dtype)?;
        let alarm = |index: &[usize], value| {
            Some(Alarm {
                index: index.to_vec(),
                value,
            })
        };
        let usual = AlarmOn::NanOrPosInf;
        assert_eq!(
            has_alarm(&tensor, usual)?,
            alarm(&[17, 30], NonFinite::PosInf)
        );
        assert_eq!(
            has_alarm(&tensor.t()?, usual)?,
            alarm(&[5, 40], NonFinite::Nan)
        );
        let all = AlarmOn::AnyNonFinite;
        assert_eq!(has_alarm(&tensor, all)?, alarm(&[3, 60], NonFinite::NegInf));
        let part = tensor.narrow(1, 20, 11)?;
        assert_eq!(
            has_alarm(&part, usual)?,
            alarm(&[17, 10], NonFinite::PosInf)
        );
        assert_eq!(has_alarm(&part.narrow(0, 18, 40)?, usual)?, None);
    }
    Ok(())
}

#[test]
fn masks_and_integers_are_silent() -> Result<()> {
    let mask = Tensor::full(f32::NEG_INFINITY, (100, 100), &Device::Cpu)?;
    assert_eq!(has_alarm(&mask, AlarmOn::NanOrPosInf)?, None);
    assert!(has_alarm(&mask, AlarmOn::AnyNonFinite)?.is_some());
    assert_eq!(
        has_alarm(
            &Tensor::full(u32::MAX, 9, &Device::Cpu)?,
            AlarmOn::AnyNonFinite
        )?,
        None
    );
    assert_eq!(
        has_alarm(
            &Tensor::zeros((0, 2), DType::F32, &Device::Cpu)?,
            AlarmOn::default()
        )?,
        None
    );
    Ok(())
}
