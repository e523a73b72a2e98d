//! What the session by hand promises, call by call.

use std::path::Path;
use std::time::{Duration, Instant};

use candle_core::{DType, Device, Tensor};
use candle_profiler::instrument::{DeviceIntervalRecord, DeviceMemoryRecord, OpRecord, SpanKind};
use candle_profiler::trace::{GradientState, RunOutcome, TraceEvent, analyze_health};
use candle_profiler::{CaptureContract, ProfileRun, TraceDocument, TraceSession, parse_trace};
use tests::{folder, judge};

pub(crate) const OP: OpRecord<'static> = OpRecord {
    op_name: "matmul",
    inputs: &[],
    output: Some("out"),
    shape: &[2, 2],
    dtype: "f32",
    device: "cpu",
    duration_ns: 100,
    timestamp_ns: 0,
    output_dense_bytes: None,
    input_dense_bytes: 0,
};

pub(crate) fn training() -> ProfileRun {
    ProfileRun::training("train::update", 1, "cpu")
}

/// Runs a session in a new folder and gives what it wrote.
pub(crate) fn written(run: ProfileRun, record: impl FnOnce(TraceSession)) -> String {
    let folder = folder();
    let path = folder.path().join("trace.jsonl");
    record(TraceSession::open(&path, run).unwrap());
    std::fs::read_to_string(path).unwrap()
}

fn document(run: ProfileRun, record: impl FnOnce(&TraceSession)) -> TraceDocument {
    let text = written(run, |session| {
        record(&session);
        session.finish().unwrap();
    });
    assert_ne!(judge(&text), tests::Verdict::Refused);
    candle_profiler::trace::parse_trace_reader(text.as_bytes()).unwrap()
}

#[test]
fn spans_nest_and_the_op_of_a_closed_span_is_kept() {
    let document = document(training(), |session| {
        let inner = {
            let _outer = session.begin_measurement("Model::forward");
            let inner = session.begin_span("matmul", SpanKind::Op);
            std::thread::sleep(Duration::from_micros(50));
            assert!(inner.elapsed_ns() >= 50_000);
            inner.id()
        };
        session.record_op(inner, OP).unwrap();
    });
    let parents: Vec<_> = document
        .spans
        .iter()
        .map(|span| (span.name.as_str(), span.parent_id.as_deref()))
        .collect();
    assert_eq!(
        parents,
        [
            ("train::update", None),
            ("Model::forward", Some("s1")),
            ("matmul", Some("s2"))
        ]
    );
    assert!(document.spans[2].duration_ns >= 50_000);
    assert_eq!(document.ops[0].output_dense_bytes, Some(16));
    assert!(document.memory.is_empty());
}

#[test]
fn a_scalar_is_a_statistic_of_one_element() {
    let document = document(training(), |session| {
        let span = session.begin_span("loss", SpanKind::Function);
        session
            .record_scalar(span.id(), "loss/total", -1.25)
            .unwrap();
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            session.record_scalar(span.id(), "loss/aux", value).unwrap();
        }
        let error = session.record_scalar(span.id(), "  ", 1.0).unwrap_err();
        assert!(error.to_string().contains("label is \"  \""), "{error}");
    });
    let total = &document.tensor_stats[0];
    assert_eq!((total.rms, total.abs_max, total.mean), (1.25, 1.25, -1.25));
    assert_eq!((total.elements, total.non_finite), (1, 0));
    for aux in &document.tensor_stats[1..] {
        assert_eq!((aux.rms, aux.mean, aux.non_finite), (0.0, 0.0, 1));
    }
}

#[test]
fn statistics_are_of_the_finite_elements() {
    let text = written(training(), |session| {
        let span = session.begin_measurement("forward");
        for (label, values) in [
            ("finite", vec![1.0f32, -2.0, 3.0, -4.0]),
            ("corrupt", vec![1.0, f32::NAN, f32::INFINITY]),
            ("empty", vec![]),
        ] {
            let tensor = Tensor::new(values, &Device::Cpu).unwrap();
            session
                .record_tensor_stats(span.id(), label, &tensor)
                .unwrap();
        }
        let scalar = Tensor::new(2f64, &Device::Cpu).unwrap();
        session
            .record_tensor_stats(span.id(), "scalar", &scalar)
            .unwrap();
        assert!(
            session
                .record_tensor_stats(span.id(), " ", &scalar)
                .is_err()
        );
        drop(span);
        session.finish().unwrap();
    });
    assert!(judge(&text).is_complete());
    let document = candle_profiler::trace::parse_trace_reader(text.as_bytes()).unwrap();
    let [finite, corrupt, empty, scalar] = document.tensor_stats.as_slice() else {
        panic!("four statistics");
    };
    assert!((finite.rms - 7.5f64.sqrt()).abs() < 1e-12);
    assert_eq!(
        (finite.abs_max, finite.mean, finite.non_finite),
        (4.0, -0.5, 0)
    );
    let extra = finite.extra.as_ref().unwrap();
    assert_eq!((extra.min, extra.max), (Some(-4.0), Some(3.0)));
    assert_eq!(corrupt.non_finite, 2);
    assert_eq!(corrupt.rms, 1.0);
    let extra = corrupt.extra.as_ref().unwrap();
    assert_eq!(
        (extra.nan, extra.pos_inf, extra.neg_inf),
        (Some(1), Some(1), Some(0))
    );
    assert_eq!(extra.first_non_finite, Some(vec![1]));
    assert_eq!((empty.elements, empty.rms), (0, 0.0));
    assert_eq!((scalar.shape.len(), scalar.mean), (0, 2.0));
}

#[test]
fn a_completed_span_hangs_on_the_root_and_leaves_the_stack_alone() {
    let document = document(training(), |session| {
        let _measured = session.begin_measurement("request");
        let _live = session.begin_span("main", SpanKind::Function);
        let start = session.elapsed_ns();
        std::thread::sleep(Duration::from_micros(10));
        let duration = session.elapsed_ns() - start;
        session
            .record_completed_host_span("background", SpanKind::Function, start, duration)
            .unwrap();
        drop(session.begin_span("next", SpanKind::Function));
    });
    let parent = |name: &str| {
        let span = document.spans.iter().find(|span| span.name == name);
        span.unwrap().parent_id.clone().unwrap()
    };
    assert_eq!(parent("background"), "s1");
    assert_eq!(parent("next"), "s3");
    assert!(analyze_health(&document).structurally_valid);
}

#[test]
fn wrong_values_are_refused_by_field_and_value() {
    document(training(), |session| {
        let completed = |start, duration| {
            session
                .record_completed_host_span("x", SpanKind::Function, start, duration)
                .unwrap_err()
                .to_string()
        };
        assert!(completed(0, 0).contains("duration_ns is 0"));
        assert!(completed(u64::MAX, 1).contains("overflow"));
        assert!(completed(60_000_000_000_000, 1).contains("future"));

        let before = Instant::now() - Duration::from_secs(3600);
        assert!(session.host_timestamp_ns(before).is_err());
        assert!(session.host_timestamp_ns(Instant::now()).unwrap() <= session.elapsed_ns());

        for (root, key, state, norm, word) in [
            (" ", "k", GradientState::Missing, None, "root is \" \""),
            ("r", "", GradientState::Missing, None, "key is \"\""),
            ("r", "k", GradientState::Present, None, "norm is None"),
            (
                "r",
                "k",
                GradientState::Present,
                Some(0.0),
                "norm is Some(0.0)",
            ),
            (
                "r",
                "k",
                GradientState::Present,
                Some(f64::NAN),
                "norm is Some(NaN)",
            ),
            (
                "r",
                "k",
                GradientState::Zero,
                Some(-0.0),
                "norm is Some(-0.0)",
            ),
            ("r", "k", GradientState::Missing, Some(1.0), "no norm"),
        ] {
            let error = session.record_gradient(root, key, state, norm).unwrap_err();
            assert!(error.to_string().contains(word), "{error} lacks {word}");
        }
        let empty = DeviceMemoryRecord {
            device: "cuda:0",
            used_bytes: None,
            free_bytes: None,
            reserved_bytes: None,
            capacity_bytes: None,
            timestamp_ns: None,
        };
        assert!(session.record_device_memory(empty).is_err());
        let span = session.begin_span("s", SpanKind::Function).id();
        let interval = DeviceIntervalRecord {
            device: "cuda:0",
            stream_id: "0",
            clock_id: "c",
            backend: "cuda",
            start_ns: 5,
            duration_ns: 0,
        };
        assert!(session.record_device_interval(span, interval).is_err());
        assert!(session.record_data_edge("", "t").is_err());
        assert!(session.record_data_edge("t", "").is_err());
    });
}

#[test]
fn a_wrong_run_is_refused_before_a_file_is_there() {
    let folder = folder();
    let path = folder.path().join("trace.jsonl");
    let refused = |run: ProfileRun| format!("{:#}", TraceSession::open(&path, run).err().unwrap());
    assert!(refused(ProfileRun::training("t", 0, "cpu")).contains("capture_step is 0"));
    let mut late = training();
    late.warmup_steps = 5;
    assert!(refused(late).contains("warmup_steps is 5"));
    assert!(refused(ProfileRun::training(" ", 1, "cpu")).contains("entrypoint"));
    assert!(refused(ProfileRun::training("t", 1, "")).contains("device"));
    assert!(refused(training().correlation_id("")).contains("correlation_id"));
    let blank = CaptureContract {
        required_semantic_labels: vec!["".into()],
        ..CaptureContract::default()
    };
    assert!(refused(training().capture_contract(blank)).contains("required_semantic_labels"));
    assert!(!path.exists());

    let unwritable = Path::new("/proc/no/such/place.jsonl");
    let error = TraceSession::open(unwritable, training()).err().unwrap();
    assert!(format!("{error:#}").contains("/proc/no/such"), "{error:#}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told_when_the_session_opens() {
    let error = TraceSession::open("/dev/full", training()).err().unwrap();
    assert!(format!("{error:#}").contains("No space left"), "{error:#}");
}

#[test]
fn closing_a_span_closes_what_is_above_it_and_late_guards_do_nothing() {
    let document = document(training(), |session| {
        let outer = session.begin_measurement("outer");
        let middle = session.begin_span("middle", SpanKind::Function);
        let inner = session.begin_span("inner", SpanKind::Function);
        drop(outer);
        let after = session.begin_span("after", SpanKind::Function);
        drop(middle);
        drop(inner);
        drop(after);
    });
    let ends: Vec<u64> = document.spans[1..4]
        .iter()
        .map(|span| span.end_ns())
        .collect();
    assert!(ends.iter().all(|end| *end == ends[0]), "{ends:?}");
    assert_eq!(document.spans[4].parent_id.as_deref(), Some("s1"));
    assert!(analyze_health(&document).structurally_valid);
}

#[test]
fn finish_refuses_while_this_thread_has_open_spans_and_the_trace_says_so() {
    let text = written(training(), |session| {
        std::mem::forget(session.begin_measurement("open"));
        let error = session.finish().unwrap_err();
        assert!(error.to_string().contains("1 spans"), "{error}");
    });
    let verdict = judge(&text);
    assert!(verdict.is_valid() && !verdict.is_complete(), "{verdict:?}");
}

#[test]
fn failing_needs_a_reason_and_leaves_open_what_is_open() {
    let text = written(training(), |session| {
        assert!(session.finish_failed(" ").is_err());
    });
    assert!(judge(&text).is_valid());

    let text = written(training(), |session| {
        std::mem::forget(session.begin_measurement("open"));
        session.finish_failed("boom").unwrap();
    });
    assert!(judge(&text).is_valid());
    assert!(!text.contains("span_end"));
    assert!(text.contains(r#""outcome":"failed""#) && text.contains(r#""reason":"boom""#));
}

#[test]
fn a_session_that_is_dropped_ends_as_failed() {
    let text = written(training(), |session| {
        drop(session.begin_measurement("step"));
    });
    let document = candle_profiler::trace::parse_trace_reader(text.as_bytes()).unwrap();
    assert_eq!(document.terminal.outcome, RunOutcome::Failed);
    assert!(document.terminal.reason.unwrap().contains("without finish"));
    assert!(judge(&text).is_valid());
}

#[test]
fn a_panic_in_a_span_leaves_a_trace() {
    let text = written(training(), |session| {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _step = session.begin_measurement("step");
            let _inner = session.begin_span("inner", SpanKind::Function);
            panic!("on purpose");
        }));
        assert!(result.is_err());
        session.finish().unwrap();
    });
    assert!(judge(&text).is_complete());
}

#[test]
fn evidence_of_the_future_does_not_break_the_trace() {
    let document = document(training(), |session| {
        let span = session.begin_measurement("step");
        let op = OpRecord {
            timestamp_ns: u64::MAX - 5,
            duration_ns: 100,
            ..OP
        };
        session.record_op(span.id(), op).unwrap();
        let sample = DeviceMemoryRecord {
            device: "cuda:0",
            used_bytes: Some(1),
            free_bytes: None,
            reserved_bytes: None,
            capacity_bytes: None,
            timestamp_ns: Some(u64::MAX - 1),
        };
        session.record_device_memory(sample).unwrap();
    });
    assert_eq!(document.terminal.timestamp_ns, u64::MAX);
}

#[test]
fn what_is_flushed_is_in_the_file() {
    let folder = folder();
    let path = folder.path().join("a/b/trace.jsonl");
    let session = TraceSession::open(&path, training()).unwrap();
    drop(session.begin_measurement("step"));
    session.flush().unwrap();
    let lines = std::fs::read_to_string(&path).unwrap();
    let events: Vec<TraceEvent> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(matches!(events[0], TraceEvent::Meta { .. }));
    assert!(matches!(events[3], TraceEvent::SpanEnd(_)));
    assert_eq!(session.finish().unwrap(), path);
    assert!(parse_trace(path).is_ok());
}

#[test]
fn half_numbers_have_statistics_too() {
    let document = document(training(), |session| {
        let span = session.begin_measurement("step");
        let tensor = Tensor::ones((2, 3), DType::BF16, &Device::Cpu).unwrap();
        session
            .record_tensor_stats(span.id(), "ones", &tensor.t().unwrap())
            .unwrap();
    });
    let stats = &document.tensor_stats[0];
    assert_eq!(
        (stats.dtype.as_str(), stats.shape.as_slice()),
        ("bf16", &[3, 2][..])
    );
    assert_eq!((stats.elements, stats.rms), (6, 1.0));
}
