//! Any shape, any view, any values.

use crate::reference::{check, elements};
use candle_core::{DType, Device, Result, Tensor};
use candle_profiler::tensor::stats::{AlarmOn, has_alarm};
use proptest::prelude::*;

fn value() -> impl Strategy<Value = f64> {
    prop_oneof![
        8 => -1e3..1e3f64,
        2 => any::<f64>(),
        2 => any::<f32>().prop_map(f64::from),
        1 => prop::sample::select(vec![
            0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN_POSITIVE,
            5e-324, 1e-40, 3e38, 65_504.0, 1e-7,
        ]),
    ]
}

#[derive(Clone, Debug)]
enum Step {
    Transpose(usize, usize),
    Narrow(usize, usize, usize),
    Broadcast(usize),
    Lead(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..4usize, 0..4usize).prop_map(|(a, b)| Step::Transpose(a, b)),
        (0..4usize, 0..5usize, 1..9usize).prop_map(|(dim, from, len)| Step::Narrow(dim, from, len)),
        (0..4usize).prop_map(Step::Broadcast),
        (1..4usize).prop_map(Step::Lead),
    ]
}

fn apply(tensor: Tensor, step: &Step) -> Result<Tensor> {
    let rank = tensor.rank();
    match *step {
        Step::Transpose(a, b) if rank > 0 => tensor.transpose(a % rank, b % rank),
        Step::Narrow(dim, from, len) if rank > 0 => {
            let dim = dim % rank;
            let size = tensor.dims()[dim];
            let from = from.min(size);
            tensor.narrow(dim, from, len.min(size - from))
        }
        Step::Broadcast(dim) if rank > 0 && tensor.dims()[dim % rank] > 0 => {
            let dim = dim % rank;
            let mut shape = tensor.dims().to_vec();
            shape[dim] = 3;
            tensor.narrow(dim, 0, 1)?.broadcast_as(shape)
        }
        Step::Lead(len) if rank < 5 => {
            let mut shape = tensor.dims().to_vec();
            shape.insert(0, len);
            tensor.broadcast_as(shape)
        }
        _ => Ok(tensor),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn any_view_of_any_values(
        shape in prop::collection::vec(0..9usize, 0..5),
        values in prop::collection::vec(value(), 1..40),
        steps in prop::collection::vec(step(), 0..5),
        dtype in prop::sample::select(vec![DType::F64, DType::F32, DType::BF16, DType::F16]),
    ) {
        let count = shape.iter().product();
        let values: Vec<f64> = values.into_iter().cycle().take(count).collect();
        let tensor = Tensor::from_vec(values, shape, &Device::Cpu).unwrap();
        let mut view = tensor.to_dtype(dtype).unwrap();
        for step in &steps {
            view = apply(view, step).unwrap();
        }
        check(&view);
        let alarm = has_alarm(&view, AlarmOn::NanOrPosInf).unwrap();
        let first = elements(&view).iter().position(|x| x.is_nan() || *x == f64::INFINITY);
        let found = alarm.map(|alarm| {
            alarm.index.iter().zip(view.dims()).fold(0, |all, (at, len)| all * len + at)
        });
        prop_assert_eq!(found, first);
    }
}
