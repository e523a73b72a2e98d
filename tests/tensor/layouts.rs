//! Every way in which candle shows the same storage.

use crate::reference::{check, noise};
use candle_core::{DType, Device, Result, Tensor};

fn tensor(shape: &[usize], dtype: DType) -> Result<Tensor> {
    let mut values = noise(shape.iter().product(), 11);
    let count = values.len();
    for (at, x) in [
        (count / 3, f64::NAN),
        (count / 2, f64::INFINITY),
        (count - 1, f64::NEG_INFINITY),
    ] {
        values[at] = x;
    }
    values[count / 5] = 0.0;
    Tensor::from_vec(values, shape, &Device::Cpu)?.to_dtype(dtype)
}

#[test]
fn views_of_two_dimensions() -> Result<()> {
    for dtype in [DType::F32, DType::BF16, DType::F64, DType::F16] {
        // Rows shorter and longer than what is taken in place, and than a chunk.
        for shape in [
            [5, 7],
            [300, 20],
            [20, 300],
            [6, 1500],
            [3, 5000],
            [5000, 3],
            [1, 9],
            [9, 1],
        ] {
            let whole = tensor(&shape, dtype)?;
            check(&whole);
            check(&whole.t()?);
            let [rows, columns] = shape;
            check(&whole.narrow(0, rows / 3, rows - rows / 3)?);
            let part = whole.narrow(1, columns / 4, columns.div_ceil(2))?;
            check(&part);
            check(&part.t()?);
            check(&whole.narrow(1, columns - 1, 1)?);
            check(&whole.narrow(1, columns - 1, 1)?.broadcast_as((rows, 4))?);
            check(&whole.narrow(1, 0, columns - 1)?.t()?.unsqueeze(1)?);
        }
    }
    Ok(())
}

#[test]
fn views_of_more_dimensions() -> Result<()> {
    let whole = tensor(&[4, 3, 50, 8], DType::F32)?;
    check(&whole.permute((3, 1, 0, 2))?);
    check(&whole.transpose(1, 2)?.narrow(3, 2, 5)?);
    check(
        &whole
            .permute((2, 3, 1, 0))?
            .narrow(0, 7, 30)?
            .narrow(2, 1, 2)?,
    );
    let strided = whole
        .reshape((4, 3, 25, 2, 8))?
        .narrow(3, 1, 1)?
        .squeeze(3)?;
    check(&strided);
    check(&strided.t()?);
    let spread = whole
        .narrow(1, 2, 1)?
        .narrow(3, 0, 1)?
        .broadcast_as((4, 6, 50, 5))?;
    check(&spread);
    check(&spread.permute((2, 0, 3, 1))?);
    Ok(())
}

#[test]
fn scalars_spread_out() -> Result<()> {
    for value in [2f32, f32::NAN, 0.0] {
        check(&Tensor::new(value, &Device::Cpu)?.broadcast_as((3, 4, 5))?);
    }
    Ok(())
}
