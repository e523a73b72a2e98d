//! What only the health check would object to: said by `finish`, refused by a strict session, whose
//! traces are valid however they end.

use candle_core::{DType, Device, Tensor};
use candle_profiler::instrument::candle::tensor_id;
use candle_profiler::instrument::{MemoryRecord, SpanKind, TensorRecord};
use candle_profiler::trace::{GradientState, MemoryCategory};
use candle_profiler::{
    CaptureContract, CoverageLevel, ExpectedGradient, GradientContract, GradientFamilyContract,
    ProfileRun, TraceSession,
};
use proptest::prelude::*;
use tests::{Verdict, folder, judge};

use crate::session::{OP, training, written};

fn storage(id: &str) -> MemoryRecord<'_> {
    MemoryRecord {
        storage_id: id,
        tensor_id: "t",
        device: "cpu",
        bytes: 4,
        dtype: "f32",
        category: MemoryCategory::Other,
        timestamp_ns: None,
        op_name: None,
        shape: &[1],
    }
}

fn tensor(id: &str) -> TensorRecord<'_> {
    TensorRecord {
        tensor_id: id,
        label: None,
        shape: &[1],
        dtype: "f32",
        device: "cpu",
        requires_grad: false,
        dense_bytes: None,
        category: MemoryCategory::Other,
    }
}

fn with_gradients() -> ProfileRun {
    let contract = GradientContract::new(
        vec![
            ExpectedGradient::new("p", "a", "active"),
            ExpectedGradient::new("p", "b", "active"),
            ExpectedGradient::new("p", "c", "frozen"),
            ExpectedGradient::new("p", "d", "maybe"),
            ExpectedGradient::new("p", "e", "maybe"),
        ],
        vec![
            GradientFamilyContract::active("active", 1),
            GradientFamilyContract::inactive("frozen"),
            GradientFamilyContract::data_conditional("maybe", 2),
        ],
    )
    .unwrap();
    training().capture_contract(CaptureContract {
        gradients: CoverageLevel::Complete,
        gradient_contract: Some(contract),
        required_semantic_labels: vec!["step".into()],
        ..CaptureContract::default()
    })
}

/// Every way to break a rule that a session lets through, with the rule.
type Break = (&'static str, fn(&TraceSession) -> anyhow::Result<()>);

const BREAKS: &[Break] = &[
    ("operation_outside_span", |session| {
        let span = session.begin_span("s", SpanKind::Function);
        let early = candle_profiler::OpRecord {
            timestamp_ns: 1,
            duration_ns: 1,
            ..OP
        };
        session.record_op(span.id(), early)
    }),
    ("operation_outside_span", |session| {
        let span = session.begin_span("s", SpanKind::Function).id();
        session.record_op(span, OP)
    }),
    ("operation_outside_span", |session| {
        let span = session.begin_span("s", SpanKind::Function);
        let late = candle_profiler::OpRecord {
            timestamp_ns: session.elapsed_ns(),
            duration_ns: 60_000_000_000_000,
            ..OP
        };
        session.record_op(span.id(), late)
    }),
    ("memory_outside_span", |session| {
        let span = session.begin_span("s", SpanKind::Function);
        let early = MemoryRecord {
            timestamp_ns: Some(1),
            ..storage("early")
        };
        session.record_memory_alloc(span.id(), early)
    }),
    ("memory_outside_span", |session| {
        let span = session.begin_span("s", SpanKind::Function);
        let late = MemoryRecord {
            timestamp_ns: Some(60_000_000_000_000),
            ..storage("late")
        };
        session.record_memory_alloc(span.id(), late)
    }),
    ("unpaired_free", |session| {
        let span = session.begin_span("s", SpanKind::Function);
        session.record_memory_free(span.id(), storage("never"))
    }),
    ("allocation_size_mismatch", |session| {
        let span = session.begin_span("s", SpanKind::Function);
        session.record_memory_alloc(span.id(), storage("sized"))?;
        session.record_memory_free(
            span.id(),
            MemoryRecord {
                bytes: 5,
                ..storage("sized")
            },
        )
    }),
    ("duplicate_allocation", |session| {
        let span = session.begin_span("s", SpanKind::Function);
        session.record_memory_alloc(span.id(), storage("again"))?;
        session.record_memory_alloc(span.id(), storage("again"))
    }),
    ("call_edge_hierarchy_mismatch", |session| {
        let one = session.begin_span("one", SpanKind::Function).id();
        let two = session.begin_span("two", SpanKind::Function).id();
        session.record_call_edge(one, two, 1)
    }),
    ("call_edge_duration_mismatch", |session| {
        let one = session.begin_span("one", SpanKind::Function);
        let two = session.begin_span("two", SpanKind::Function).id();
        session.record_call_edge(one.id(), two, u64::MAX)
    }),
    ("call_edge_duration_mismatch", |session| {
        let one = session.begin_span("one", SpanKind::Function);
        let two = session.begin_span("two", SpanKind::Function);
        session.record_call_edge(one.id(), two.id(), u64::MAX)
    }),
    ("unknown_span", |session| {
        session.record_tensor(foreign_span(), tensor("x"))
    }),
    ("unknown_call_edge_span", |session| {
        session.record_call_edge(foreign_span(), foreign_span(), 1)
    }),
    ("unknown_data_edge_tensor", |session| {
        session.record_tensor(session.begin_span("s", SpanKind::Op).id(), tensor("known"))?;
        session.record_data_edge("known", "unknown")
    }),
    ("measurement_count", |session| {
        drop(session.begin_measurement("step two"));
        Ok(())
    }),
    ("required_semantic_label_cardinality", |session| {
        drop(session.begin_span("step", SpanKind::Function));
        Ok(())
    }),
    ("gradient_manifest_undeclared_key", |session| {
        session.record_gradient("p", "z", GradientState::Missing, None)
    }),
    ("gradient_manifest_duplicate_key", |session| {
        session.record_gradient("p", "a", GradientState::Present, Some(1.0))
    }),
];

/// The id of a span that only another, longer session has.
fn foreign_span() -> candle_profiler::SpanId {
    let folder = folder();
    let session = TraceSession::open(folder.path().join("other.jsonl"), training()).unwrap();
    for _ in 0..1000 {
        drop(session.begin_span("s", SpanKind::Function));
    }
    session.begin_span("last", SpanKind::Function).id()
}

fn sound_gradients(session: &TraceSession) {
    for (key, state, norm) in [
        ("a", GradientState::Present, Some(1.0)),
        ("b", GradientState::Zero, Some(0.0)),
        ("c", GradientState::Missing, None),
        ("d", GradientState::Missing, None),
        ("e", GradientState::Zero, Some(0.0)),
    ] {
        session.record_gradient("p", key, state, norm).unwrap();
    }
}

#[test]
fn a_plain_session_accepts_what_the_judge_objects_to() {
    for (code, record) in BREAKS {
        let text = written(with_gradients(), |session| {
            drop(session.begin_measurement("step"));
            sound_gradients(&session);
            record(&session).unwrap();
            session.finish().unwrap();
        });
        let verdict = judge(&text);
        assert!(verdict.codes().contains(*code), "{code}: {verdict:?}");
        assert!(!verdict.is_valid(), "{code}");
    }
}

#[test]
fn a_strict_session_refuses_it_and_stays_valid() {
    for (code, record) in BREAKS {
        let text = written(with_gradients().strict(), |session| {
            drop(session.begin_measurement("step"));
            sound_gradients(&session);
            match record(&session) {
                Err(error) => {
                    assert!(error.to_string().contains(code), "{code}: {error}");
                    session.finish().unwrap();
                }
                Ok(()) => {
                    let error = session.finish().unwrap_err();
                    assert!(error.to_string().contains(code), "{code}: {error}");
                }
            }
        });
        assert!(judge(&text).is_valid(), "{code}: {:?}", judge(&text));
    }
}

#[test]
fn a_strict_session_keeps_the_gradient_contract() {
    use GradientState::{Missing, NonFinite, Present, Zero};
    for (code, first, last) in [
        (
            "gradient_family_non_finite",
            ("a", Present, Some(1.0)),
            ("b", NonFinite, None),
        ),
        (
            "gradient_inactive_family_leakage",
            ("a", Present, Some(1.0)),
            ("c", Zero, Some(0.0)),
        ),
        (
            "gradient_active_family_below_minimum",
            ("a", Missing, None),
            ("b", Missing, None),
        ),
        (
            "gradient_conditional_family_below_minimum",
            ("d", Present, Some(1.0)),
            ("e", Missing, None),
        ),
    ] {
        let text = written(with_gradients().strict(), |session| {
            drop(session.begin_measurement("step"));
            session
                .record_gradient("p", first.0, first.1, first.2)
                .unwrap();
            let error = session
                .record_gradient("p", last.0, last.1, last.2)
                .unwrap_err();
            assert!(error.to_string().contains(code), "{error}");
            let error = session.finish().unwrap_err();
            assert!(
                error.to_string().contains("gradient_manifest_missing_key"),
                "{error}"
            );
        });
        let verdict = judge(&text);
        assert!(
            verdict.is_valid() && !verdict.is_complete(),
            "{code}: {verdict:?}"
        );
        // A plain session takes them, and the judge objects.
        let text = written(with_gradients(), |session| {
            drop(session.begin_measurement("step"));
            for (key, state, norm) in [first, last] {
                session.record_gradient("p", key, state, norm).unwrap();
            }
            session.finish().unwrap();
        });
        assert!(judge(&text).codes().contains(code), "{code}");
    }
}

#[test]
fn a_strict_session_finishes_what_is_right() {
    let text = written(with_gradients().strict(), |session| {
        let step = session.begin_measurement("step");
        let inner = session.begin_span("inner", SpanKind::Op);
        let inner_id = inner.id();
        // The second tensor is named later.
        session.record_tensor(inner_id, tensor("x")).unwrap();
        session.record_data_edge("x", "y").unwrap();
        session.record_tensor(inner_id, tensor("y")).unwrap();
        session
            .record_memory_alloc(inner_id, storage("one"))
            .unwrap();
        session
            .record_memory_alloc(
                inner_id,
                MemoryRecord {
                    tensor_id: "view",
                    ..storage("one")
                },
            )
            .unwrap();
        session
            .record_memory_free(inner_id, storage("one"))
            .unwrap();
        drop(inner);
        sound_gradients(&session);
        drop(step);
        session.finish().unwrap();
    });
    let verdict = judge(&text);
    assert!(verdict.is_complete(), "{verdict:?}");
    assert!(text.contains(r#""from_tensor":"x","to_tensor":"y""#));
}

/// What attributes record in the session counts like what is recorded by hand.
#[test]
fn a_strict_session_knows_the_tensors_that_attributes_recorded() {
    #[candle_profiler::profile_span(ops)]
    #[candle_profiler::record_stats("y")]
    fn annotated(x: &Tensor) -> candle_core::Result<Tensor> {
        x.exp()
    }
    let x = Tensor::ones(3, DType::F32, &Device::Cpu).unwrap();
    let text = written(training().strict(), |session| {
        let entered = session.enter();
        let step = session.begin_measurement("step");
        candle_profiler::record_stats("x", &x);
        let y = annotated(&x).unwrap();
        session
            .record_data_edge(&tensor_id(&x), &tensor_id(&y))
            .unwrap();
        drop(step);
        drop(entered);
        session.finish().unwrap();
    });
    let verdict = judge(&text);
    assert!(verdict.is_complete(), "{verdict:?}");
    assert!(text.contains(r#""edge_kind":"data""#));
    assert!(text.contains(r#""op_name":"exp""#));
}

#[test]
fn without_a_measured_region_a_strict_session_fails() {
    let text = written(training().strict(), |session| {
        let error = session.finish().unwrap_err();
        assert!(error.to_string().contains("measurement_count"), "{error}");
    });
    let verdict = judge(&text);
    assert!(verdict.is_valid() && !verdict.is_complete());
}

/// One call on a session.
#[derive(Debug, Clone)]
enum Call {
    Begin(u8),
    End(u8),
    Op {
        span: u8,
        start: u64,
        duration: u64,
    },
    Memory {
        span: u8,
        storage: u8,
        bytes: u8,
        free: bool,
        at: Option<u64>,
    },
    Data(u8, u8),
    Edge {
        from: u8,
        to: u8,
        duration: u64,
    },
    Gradient {
        key: u8,
        state: u8,
    },
}

fn call() -> impl Strategy<Value = Call> {
    let time = || prop_oneof![Just(0u64), 0u64..200_000, Just(u64::MAX)];
    prop_oneof![
        4 => (0u8..4).prop_map(Call::Begin),
        3 => any::<u8>().prop_map(Call::End),
        2 => (any::<u8>(), time(), time())
            .prop_map(|(span, start, duration)| Call::Op { span, start, duration }),
        3 => (any::<u8>(), 0u8..3, 0u8..2, any::<bool>(), prop::option::of(time())).prop_map(
            |(span, storage, bytes, free, at)| Call::Memory { span, storage, bytes, free, at }
        ),
        1 => (0u8..4, 0u8..4).prop_map(|(from, to)| Call::Data(from, to)),
        1 => (any::<u8>(), any::<u8>(), time())
            .prop_map(|(from, to, duration)| Call::Edge { from, to, duration }),
        2 => (0u8..6, 0u8..4).prop_map(|(key, state)| Call::Gradient { key, state }),
    ]
}

/// Makes the calls; what is refused is refused. `forget`: spans that are open stay so.
fn make(session: &TraceSession, calls: &[Call], forget: bool) {
    let mut ids = vec![session.begin_span("first", SpanKind::Function).id()];
    let mut guards = Vec::new();
    for call in calls {
        let id = |which: u8| ids[usize::from(which) % ids.len()];
        let _ = match call {
            Call::Begin(kind) => {
                let guard = match kind {
                    0 => session.begin_measurement("step"),
                    _ => session.begin_span("span", SpanKind::Function),
                };
                ids.push(guard.id());
                guards.push(guard);
                Ok(())
            }
            Call::End(which) => {
                if !guards.is_empty() {
                    drop(guards.remove(usize::from(*which) % guards.len()));
                }
                Ok(())
            }
            Call::Op {
                span,
                start,
                duration,
            } => session.record_op(
                id(*span),
                candle_profiler::OpRecord {
                    timestamp_ns: *start,
                    duration_ns: *duration,
                    output: Some("t0"),
                    ..OP
                },
            ),
            Call::Memory {
                span,
                storage: name,
                bytes,
                free,
                at,
            } => {
                let name = format!("storage {name}");
                let record = MemoryRecord {
                    bytes: u64::from(*bytes),
                    timestamp_ns: *at,
                    ..storage(&name)
                };
                match free {
                    true => session.record_memory_free(id(*span), record),
                    false => session.record_memory_alloc(id(*span), record),
                }
            }
            Call::Data(from, to) => {
                session.record_data_edge(&format!("t{from}"), &format!("t{to}"))
            }
            Call::Edge { from, to, duration } => {
                session.record_call_edge(id(*from), id(*to), *duration)
            }
            Call::Gradient { key, state } => {
                let key = ["a", "b", "c", "d", "e", "z"][usize::from(*key)];
                let (state, norm) = [
                    (GradientState::Present, Some(1.0)),
                    (GradientState::Missing, None),
                    (GradientState::Zero, Some(0.0)),
                    (GradientState::NonFinite, None),
                ][usize::from(*state)];
                session.record_gradient("p", key, state, norm)
            }
        };
    }
    if forget {
        guards.into_iter().for_each(std::mem::forget);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_calls_on_any_threads_give_a_trace_that_parses_and_a_strict_one_that_is_valid(
        calls in prop::collection::vec(call(), 0..40),
        strict in any::<bool>(),
        gradients in any::<bool>(),
        threads in 1usize..4,
        forget in any::<bool>(),
    ) {
        let run = if gradients { with_gradients() } else { training() };
        let run = if strict { run.strict() } else { run };
        let mut finished = false;
        let text = written(run, |session| {
            let share = calls.len().div_ceil(threads).max(1);
            std::thread::scope(|scope| {
                for calls in calls.chunks(share) {
                    let session = &session;
                    scope.spawn(move || make(session, calls, forget));
                }
            });
            finished = session.finish().is_ok();
        });
        let verdict = judge(&text);
        prop_assert_ne!(&verdict, &Verdict::Refused);
        let complete = matches!(&verdict, Verdict::Judged { complete: true, .. });
        prop_assert_eq!(complete, finished);
        prop_assert!(!strict || verdict.is_valid(), "{:?}\n{}", verdict, text);
    }
}
