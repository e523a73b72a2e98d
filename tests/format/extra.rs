//! Our own keys: written after the standard ones, read back, and harmless where foreign.

use candle_profiler::trace::{
    GradientExtra, SpanEndExtra, SpanStartExtra, TensorExtra, TensorStatsExtra, TerminalExtra,
    TraceDocument, TraceEvent, parse_trace_reader,
};
use tests::{golden, judge};

fn with_extra() -> Vec<TraceEvent> {
    let document = parse_trace_reader(golden("all-events.trace10.jsonl").as_bytes()).unwrap();
    let mut events = document.to_events();
    for event in &mut events {
        match event {
            TraceEvent::SpanStart(start) => {
                start.extra = Some(Box::new(SpanStartExtra {
                    file: Some("src/main.rs".into()),
                    line: Some(7),
                    thread: Some(2),
                    thread_name: Some("a \"name\"".into()),
                    since_previous_ns: Some(9),
                }));
            }
            TraceEvent::SpanEnd(end) => {
                end.extra = Some(Box::new(SpanEndExtra {
                    busy_ns: Some(1),
                    polls: Some(2),
                    overhead_ns: Some(3),
                    mem_net: Some(-4),
                    mem_peak: Some(5),
                    cut: true,
                    cancelled: true,
                    panicked: true,
                    open_at_end: true,
                }));
            }
            TraceEvent::Tensor(tensor) => {
                tensor.extra = Some(Box::new(TensorExtra {
                    tracked: Some(false),
                    autograd: Some("cut".into()),
                    twin: Some("softmax".into()),
                }));
            }
            TraceEvent::TensorStats(stats) => {
                stats.extra = Some(Box::new(TensorStatsExtra {
                    min: Some(-1.5),
                    std: Some(f64::INFINITY),
                    zeros: Some(0),
                    first_non_finite: Some(vec![]),
                    alarm: Some(false),
                    ..TensorStatsExtra::default()
                }));
            }
            TraceEvent::Gradient(gradient) => {
                gradient.extra = Some(Box::new(GradientExtra {
                    reason: Some("frozen".into()),
                    family: None,
                    zero_before: true,
                    pass: Some(2),
                }));
            }
            TraceEvent::Terminal(terminal) => {
                terminal.extra = Some(Box::new(TerminalExtra {
                    dropped: Some([("main.rs:7".to_owned(), 3)].into()),
                    late: Some(1),
                    waited_ns: Some(2),
                    graph_nodes: Some(23),
                    graph_bytes: Some(4044),
                    graph_carried: Some(1),
                    graph_constant_bytes: Some(80),
                    unused_graph_nodes: Some(5),
                    unused_graph_bytes: Some(96),
                    cuts: Some(vec!["norm cuts the graph".to_owned()]),
                    notes: Some(vec!["the loss depends on no variable".to_owned()]),
                    growth: Some("resident memory grew".to_owned()),
                }));
            }
            _ => {}
        }
    }
    events
}

fn text(events: &[TraceEvent]) -> String {
    let line = |event| serde_json::to_string(event).unwrap() + "\n";
    events.iter().map(line).collect()
}

#[test]
fn they_stand_last_and_read_back() {
    let events = with_extra();
    let text = text(&events);
    assert!(text.contains(
        r#""name":"fc1","start_ns":16014,"span_kind":"module","measured":false,"file":"src/main.rs","line":7,"thread":2,"thread_name":"a \"name\"","since_previous_ns":9}"#
    ));
    assert!(text.contains(
        r#""duration_ns":82612,"busy_ns":1,"polls":2,"overhead_ns":3,"mem_net":-4,"mem_peak":5,"cut":true,"cancelled":true,"panicked":true,"open_at_end":true}"#
    ));
    // An infinite number has no place in JSON and is left out.
    assert!(text.contains(r#""min":-1.5,"zeros":0,"first_non_finite":[],"alarm":false}"#));
    let read = parse_trace_reader(text.as_bytes()).unwrap();
    let mut expected = TraceDocument::from_events(events).unwrap();
    for stats in &mut expected.tensor_stats {
        stats.extra.as_mut().unwrap().std = None;
    }
    assert_eq!(read, expected);
    // The other way through serde keeps them too.
    for line in text.lines() {
        let event: TraceEvent = serde_json::from_str(line).unwrap();
        assert_eq!(serde_json::to_string(&event).unwrap(), line);
    }
}

#[test]
fn the_judge_does_not_mind_them() {
    assert_eq!(
        judge(&text(&with_extra())),
        judge(&golden("all-events.trace10.jsonl"))
    );
}

#[test]
fn foreign_values_under_our_keys_are_passed_over() {
    let text = golden("all-events.trace10.jsonl").replace(
        r#""duration_ns":82612}"#,
        r#""duration_ns":82612,"cut":"no","polls":-1,"polls":{"a":[1,null]},"busy_ns":4,"foreign":[{}]}"#,
    );
    let document = parse_trace_reader(text.as_bytes()).unwrap();
    let span = document.spans.iter().find(|span| span.id == "s4").unwrap();
    let extra = span.end_extra.as_ref().unwrap();
    assert!(!extra.cut);
    assert_eq!((extra.polls, extra.busy_ns), (None, Some(4)));
}
