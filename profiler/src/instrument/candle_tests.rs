use super::*;
use crate::instrument::{ProfileRun, SpanKind};
use crate::trace::GradientState;
use crate::{CaptureContract, CoverageLevel, parse_trace};

fn zero_var() -> Var {
    Var::zeros((2,), DType::F32, &Device::Cpu).unwrap()
}

fn plan(names: &[&str]) -> Result<GradientCapturePlan> {
    GradientCapturePlan::from_named_vars(
        "varmap",
        names.iter().map(|name| (name.to_string(), zero_var())),
        |_| "params".to_owned(),
        vec![GradientFamilyContract::data_conditional("params", 1)],
    )
}

#[test]
fn a_tensor_is_captured_with_its_bytes_and_purpose() {
    let tensor = Tensor::zeros((4, 8), DType::BF16, &Device::Cpu).unwrap();
    assert_eq!(tensor_dense_bytes(&tensor), 64);
    assert_eq!(inputs_dense_bytes(&[&tensor, &tensor]), 128);
    let capture = CandleCapture::from_tensor(&tensor, Some(ExecutionStep::Backward));
    assert_eq!(capture.shape, [4, 8]);
    assert_eq!(
        (capture.dtype.as_str(), capture.device.as_str()),
        ("bf16", "cpu")
    );
    assert_eq!(capture.category, MemoryCategory::Gradient);
    assert_eq!(capture.with_label("x").label.as_deref(), Some("x"));

    let var = zero_var();
    let capture = CandleCapture::from_tensor(var.as_tensor(), Some(ExecutionStep::Forward));
    assert!(capture.requires_grad);
    assert_eq!(capture.category, MemoryCategory::Parameter);
}

#[test]
fn views_share_a_storage_and_have_their_own_ids() {
    let tensor = Tensor::zeros((4, 8), DType::F32, &Device::Cpu).unwrap();
    let view = tensor.t().unwrap();
    assert_eq!(storage_id(&tensor), storage_id(&view));
    assert_ne!(tensor_id(&tensor), tensor_id(&view));
}

#[test]
fn an_op_is_linked_to_its_output() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.jsonl");
    let session = TraceSession::open(&path, ProfileRun::inference("m", 1, "cpu")).unwrap();
    let output = Tensor::zeros((2, 3), DType::F32, &Device::Cpu).unwrap();
    let capture = CandleOpCapture::new("relu", vec![], &output, 0, 1, 0, None);
    {
        let measured = session.begin_measurement("forward");
        record_op(&session, measured.id(), &capture).unwrap();
        record_tensor_with_label(&session, measured.id(), "out", &output, None).unwrap();
    }
    session.finish().unwrap();
    let document = parse_trace(&path).unwrap();
    let out = document.ops[0].output.clone().unwrap();
    assert_eq!(document.tensors[0].tensor_id, out);
    assert_eq!(document.tensors[1].tensor_id, out);
    assert_eq!(document.tensors[1].label.as_deref(), Some("out"));
}

#[test]
fn a_plan_sorts_names_and_refuses_none_and_doubles() {
    let sorted = plan(&["decoder.weight", "encoder.weight", "encoder.bias"]).unwrap();
    assert_eq!(sorted.root(), "varmap");
    let keys: Vec<&str> = sorted
        .contract()
        .expected
        .iter()
        .map(|entry| entry.key.as_str())
        .collect();
    assert_eq!(keys, ["decoder.weight", "encoder.bias", "encoder.weight"]);
    let error = format!("{:#}", plan(&["w", "w"]).unwrap_err());
    assert!(error.contains("more than once"), "{error}");
    let error = format!("{:#}", plan(&[]).unwrap_err());
    assert!(error.contains("must not be empty"), "{error}");
}

#[test]
fn a_plan_records_each_variable_once() {
    let used = Var::new(&[1.0f32, 2.0, 3.0], &Device::Cpu).unwrap();
    let plan = GradientCapturePlan::from_named_vars(
        "varmap",
        [
            ("used".to_owned(), used.clone()),
            ("frozen".to_owned(), zero_var()),
        ],
        |_| "params".to_owned(),
        vec![GradientFamilyContract::data_conditional("params", 1)],
    )
    .unwrap();
    let loss = (used.as_tensor() * 2.0).unwrap().sum_all().unwrap();
    let grads = loss.backward().unwrap();

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.jsonl");
    let contract = CaptureContract {
        gradients: CoverageLevel::Complete,
        gradient_contract: Some(plan.contract().clone()),
        ..CaptureContract::default()
    };
    let run = ProfileRun::training("train", 1, "cpu").capture_contract(contract);
    let session = TraceSession::open(&path, run.strict()).unwrap();
    drop(session.begin_span("backward", SpanKind::Function));
    drop(session.begin_measurement("step"));
    plan.record(&session, &grads).unwrap();
    session.finish().unwrap();

    let document = candle_graph::parse_trace(&path).unwrap();
    assert!(candle_graph::trace::analyze_health(&document).structurally_valid);
    let [frozen, used] = document.gradients.as_slice() else {
        panic!("two gradients");
    };
    assert_eq!((frozen.key.as_str(), frozen.norm), ("frozen", None));
    assert_eq!(used.key, "used");
    assert!((used.norm.unwrap() - 12f64.sqrt()).abs() < 1e-12);
}

#[test]
fn a_norm_is_never_a_false_zero_and_never_infinite() {
    let norm_of = |values: Vec<f64>| {
        let tensor = Tensor::new(values, &Device::Cpu).unwrap();
        gradient_state(Some(&tensor)).unwrap()
    };
    for (values, norm) in [
        (vec![3.0, 4.0], 5.0),
        (vec![3e-200, 4e-200], 5e-200),
        (vec![3e200, -4e200], 5e200),
        (vec![5e-324, 0.0], 5e-324),
    ] {
        let (state, found) = norm_of(values);
        assert_eq!(state, GradientState::Present);
        let found = found.unwrap();
        assert!(
            (found - norm).abs() <= norm * 1e-12,
            "{found} is not {norm}"
        );
    }
    assert_eq!(
        norm_of(vec![f64::MAX; 4]),
        (GradientState::Present, Some(f64::MAX))
    );
    assert_eq!(norm_of(vec![0.0, -0.0]), (GradientState::Zero, Some(0.0)));
    assert_eq!(norm_of(vec![]), (GradientState::Zero, Some(0.0)));
    assert_eq!(
        norm_of(vec![1.0, f64::NAN]),
        (GradientState::NonFinite, None)
    );
    assert_eq!(
        gradient_state(None).unwrap(),
        (GradientState::Missing, None)
    );
    // Squares of these are zero in f32 and infinite in f32.
    for value in [1e-30f32, 1e30] {
        let tensor = Tensor::new(&[value], &Device::Cpu).unwrap();
        assert_eq!(
            gradient_state(Some(&tensor)).unwrap(),
            (GradientState::Present, Some(f64::from(value)))
        );
    }
}
