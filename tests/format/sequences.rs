//! The same calls, made to our session and to the reference's. One macro makes both, which also
//! proves that the names and signatures are the same.

use std::path::{Path, PathBuf};

macro_rules! sequences {
    ($library:ident, $all_events:ident, $failed:ident, $defaults:ident) => {
        pub(crate) fn $all_events(path: &Path) -> PathBuf {
            use $library::instrument::{
                DeviceIntervalRecord, DeviceMemoryRecord, MemoryRecord, OpRecord, SpanKind,
                TensorRecord,
            };
            use $library::phase::ExecutionStep;
            use $library::trace::{GradientState, MemoryCategory};

            let contract = $library::CaptureContract {
                measurement_scope: $library::MeasurementScope::ProfiledWork,
                operations: $library::CoverageLevel::Partial,
                activations: $library::CoverageLevel::Partial,
                tensors: $library::CoverageLevel::Partial,
                gradients: $library::CoverageLevel::Complete,
                gradient_contract: Some(
                    $library::GradientContract::new(
                        vec![
                            $library::ExpectedGradient::new("parameters", "fc1.bias", "trainable"),
                            $library::ExpectedGradient::new(
                                "parameters",
                                "fc1.weight",
                                "trainable",
                            ),
                            $library::ExpectedGradient::new(
                                "parameters",
                                "frozen.weight",
                                "frozen",
                            ),
                        ],
                        vec![
                            $library::GradientFamilyContract::active("trainable", 1),
                            $library::GradientFamilyContract::inactive("frozen"),
                        ],
                    )
                    .unwrap(),
                ),
                logical_memory: $library::CoverageLevel::Partial,
                physical_memory: $library::CoverageLevel::Partial,
                device_timing: $library::CoverageLevel::Partial,
                required_semantic_labels: vec![
                    "train::step/forward".into(),
                    "train::step/backward".into(),
                ],
                gpu_expected_semantic_labels: vec!["train::step/forward".into()],
                cpu_only_semantic_labels: vec!["train::step/backward".into()],
            };
            let identity = $library::ComparisonIdentity {
                implementation_id: Some("git:abc123".into()),
                workload_id: "digits".into(),
                model_id: "mlp".into(),
                config_id: "default".into(),
                data_id: "digits-1797".into(),
                seed_policy: "fixed-42".into(),
                physical_batch: 64,
                accumulation_steps: 1,
                precision: "f32".into(),
                device_state: "exclusive".into(),
                pair_id: Some("pair-1".into()),
            };
            let run = $library::ProfileRun::training("train::step", 3, "cuda:0")
                .measured_region_device_synchronized()
                .capture_contract(contract)
                .comparison_identity(identity)
                .tag("batch", "64")
                .tag("quote\"and\\slash", "tab\there 🕯 \u{7} end");
            let session = $library::TraceSession::open(path, run).unwrap();
            let loader_start = session.elapsed_ns().max(1);

            let measured = session.begin_measurement("train::step");
            let forward = session.begin_step_span(
                "train::step/forward",
                ExecutionStep::Forward,
                SpanKind::Function,
            );
            let layer = session.begin_span("fc1", SpanKind::Module);
            let matmul = session.begin_span("matmul", SpanKind::Op);
            session
                .record_op(
                    matmul.id(),
                    OpRecord {
                        op_name: "matmul",
                        inputs: &["t1".into(), "t2".into()],
                        output: Some("t3"),
                        shape: &[64, 128],
                        dtype: "f32",
                        device: "cuda:0",
                        duration_ns: 1,
                        timestamp_ns: session.elapsed_ns(),
                        output_dense_bytes: None,
                        input_dense_bytes: 49_152,
                    },
                )
                .unwrap();
            session
                .record_tensor(
                    matmul.id(),
                    TensorRecord {
                        tensor_id: "t3",
                        label: Some("fc1/out"),
                        shape: &[64, 128],
                        dtype: "f32",
                        device: "cuda:0",
                        requires_grad: false,
                        dense_bytes: None,
                        category: MemoryCategory::Activation,
                    },
                )
                .unwrap();
            let storage = MemoryRecord {
                storage_id: "storage:0x1",
                tensor_id: "t3",
                device: "cuda:0",
                bytes: 32_768,
                dtype: "f32",
                category: MemoryCategory::Activation,
                timestamp_ns: None,
                op_name: Some("matmul"),
                shape: &[64, 128],
            };
            session.record_memory_alloc(matmul.id(), storage).unwrap();
            session
                .record_device_interval(
                    matmul.id(),
                    DeviceIntervalRecord {
                        device: "cuda:0",
                        stream_id: "0",
                        clock_id: "cuda-event",
                        backend: "cuda",
                        start_ns: 1000,
                        duration_ns: 5000,
                    },
                )
                .unwrap();
            session
                .record_memory_free(
                    matmul.id(),
                    MemoryRecord {
                        op_name: None,
                        ..storage
                    },
                )
                .unwrap();
            drop(matmul);
            drop(layer);
            session.record_data_edge("t1", "t3").unwrap();
            session
                .record_scalar(forward.id(), "loss/total", 10f64.ln())
                .unwrap();
            session
                .record_scalar(forward.id(), "loss/aux", f64::NAN)
                .unwrap();
            drop(forward);
            let backward = session.begin_step_span(
                "train::step/backward",
                ExecutionStep::Backward,
                SpanKind::Function,
            );
            for (key, state, norm) in [
                ("fc1.bias", GradientState::Zero, Some(0.0)),
                ("fc1.weight", GradientState::Present, Some(0.1 + 0.2)),
                ("frozen.weight", GradientState::Missing, None),
            ] {
                session
                    .record_gradient("parameters", key, state, norm)
                    .unwrap();
            }
            drop(backward);
            drop(session.begin_step_span(
                "train::step/optimizer",
                ExecutionStep::Optimizer,
                SpanKind::Function,
            ));
            session
                .record_device_memory(DeviceMemoryRecord {
                    device: "cuda:0",
                    used_bytes: Some(1 << 30),
                    free_bytes: Some(8 << 30),
                    reserved_bytes: None,
                    capacity_bytes: Some(9 << 30),
                    timestamp_ns: None,
                })
                .unwrap();
            drop(measured);
            let loader_end = session.elapsed_ns();
            session
                .record_completed_host_span(
                    "data-loader",
                    SpanKind::Function,
                    loader_start,
                    loader_end - loader_start,
                )
                .unwrap();
            session.finish().unwrap()
        }

        pub(crate) fn $failed(path: &Path) -> PathBuf {
            let run =
                $library::ProfileRun::inference("serve::request", 1, "cpu").device_synchronized();
            let session = $library::TraceSession::open(path, run).unwrap();
            let measured = session.begin_measurement("serve::request");
            // What a guard that is never dropped leaves behind.
            std::mem::forget(measured);
            session
                .finish_failed("shape mismatch in matmul, lhs: [2, 3], rhs: [4, 5]")
                .unwrap()
        }

        pub(crate) fn $defaults(path: &Path) -> PathBuf {
            use $library::trace::MemoryCategory;

            let run = $library::ProfileRun::training("train::step", 1, "cpu")
                .correlation_id("mine")
                .tag("a", "b");
            let session = $library::TraceSession::open(path, run).unwrap();
            let outer = session.begin_measurement("step");
            let inner = session.begin_span("relu", $library::SpanKind::Op);
            let inner_id = inner.id();
            for (id, dtype, requires_grad, dense_bytes, category) in [
                ("a", "f32", true, None, MemoryCategory::Parameter),
                ("b", "BF16", false, Some(7), MemoryCategory::Gradient),
                ("c", "unknown", false, None, MemoryCategory::Optimizer),
                ("", "u8", false, None, MemoryCategory::Other),
            ] {
                session
                    .record_tensor(
                        inner_id,
                        $library::TensorRecord {
                            tensor_id: id,
                            label: None,
                            shape: &[2, 0, 3],
                            dtype,
                            device: "cpu",
                            requires_grad,
                            dense_bytes,
                            category,
                        },
                    )
                    .unwrap();
            }
            session
                .record_op(
                    inner_id,
                    $library::OpRecord {
                        op_name: "relu",
                        inputs: &[],
                        output: None,
                        shape: &[],
                        dtype: "unknown",
                        device: "",
                        duration_ns: 1,
                        timestamp_ns: 0,
                        output_dense_bytes: None,
                        input_dense_bytes: 0,
                    },
                )
                .unwrap();
            let elapsed = inner.elapsed_ns();
            drop(inner);
            session
                .record_call_edge(outer.id(), inner_id, elapsed)
                .unwrap();
            assert_eq!(inner_id.raw(), 3);
            drop(outer);
            session.flush().unwrap();
            session.finish().unwrap()
        }
    };
}

sequences!(candle_profiler, all_events_ours, failed_ours, defaults_ours);
sequences!(
    candle_graph,
    all_events_reference,
    failed_reference,
    defaults_reference
);
