//! Golden traces broken by hand, at least one for each rule.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tests::{Verdict, golden, judge, judge_document, our_document, ours};

/// Every rule of the health check.
const CODES: &[&str] = &[
    "allocation_size_mismatch",
    "backward_absent",
    "call_edge_duration_mismatch",
    "call_edge_hierarchy_mismatch",
    "capture_failed",
    "child_outside_parent",
    "complete_with_failure_reason",
    "device_timing_absent",
    "duplicate_allocation",
    "duplicate_gradient_event_id",
    "duplicate_required_semantic_label",
    "duplicate_semantic_label_classification",
    "duplicate_span_id",
    "empty_data_edge_endpoint",
    "empty_device_interval",
    "empty_device_memory_sample",
    "empty_gradient_event_id",
    "empty_gradient_parameter_key",
    "empty_required_semantic_label",
    "empty_semantic_label_classification",
    "failed_without_reason",
    "forward_absent",
    "gradient_active_family_below_minimum",
    "gradient_conditional_family_below_minimum",
    "gradient_contract_invalid",
    "gradient_contract_missing",
    "gradient_contract_without_complete_coverage",
    "gradient_family_non_finite",
    "gradient_inactive_family_leakage",
    "gradient_manifest_duplicate_key",
    "gradient_manifest_missing_key",
    "gradient_manifest_undeclared_key",
    "gradient_state_norm_inconsistent",
    "gradients_absent",
    "incomplete_semantic_label_partition",
    "logical_memory_absent",
    "measurement_count",
    "memory_outside_span",
    "open_span",
    "operation_outside_span",
    "operations_absent",
    "optimizer_absent",
    "overlapping_semantic_label_classification",
    "physical_memory_absent",
    "required_semantic_label_cardinality",
    "retained_allocations",
    "root_count",
    "run_provenance_invalid",
    "span_cycle",
    "tensors_absent",
    "terminal_precedes_evidence",
    "unknown_call_edge_span",
    "unknown_data_edge_tensor",
    "unknown_parent",
    "unknown_span",
    "unpaired_free",
    "unrequired_semantic_label_classification",
];

/// (rule that must be hit, text in the golden trace, what stands there instead).
const EDITS: &[(&str, &str, &str)] = &[
    (
        "run_provenance_invalid",
        r#""capture_step":3"#,
        r#""capture_step":0"#,
    ),
    (
        "run_provenance_invalid",
        r#""warmup_steps":2"#,
        r#""warmup_steps":3"#,
    ),
    (
        "run_provenance_invalid",
        r#""entrypoint":"train::step""#,
        r#""entrypoint":" ""#,
    ),
    (
        "run_provenance_invalid",
        r#""device":"cuda:0","measured"#,
        r#""device":"","measured"#,
    ),
    (
        "run_provenance_invalid",
        r#""physical_batch":64"#,
        r#""physical_batch":0"#,
    ),
    (
        "run_provenance_invalid",
        r#""pair_id":"pair-1""#,
        r#""pair_id":" ""#,
    ),
    (
        "root_count",
        r#""id":"s8","parent_id":"s1","#,
        r#""id":"s8","#,
    ),
    (
        "measurement_count",
        r#""measured":true}"#,
        r#""measured":false}"#,
    ),
    (
        "measurement_count",
        "\"name\":\"data-loader\",\"start_ns\":501,\"span_kind\":\"function\",\"measured\":false",
        "\"name\":\"data-loader\",\"start_ns\":501,\"span_kind\":\"function\",\"measured\":true",
    ),
    (
        "open_span",
        "{\"kind\":\"span_end\",\"id\":\"s7\",\"duration_ns\":11637}\n",
        "",
    ),
    (
        "unknown_parent",
        r#""id":"s7","parent_id":"s2""#,
        r#""id":"s7","parent_id":"s77""#,
    ),
    (
        "child_outside_parent",
        r#""duration_ns":82612}"#,
        r#""duration_ns":120000}"#,
    ),
    (
        "child_outside_parent",
        r#""start_ns":9144"#,
        r#""start_ns":144"#,
    ),
    (
        "span_cycle",
        r#""id":"s4","parent_id":"s3""#,
        r#""id":"s4","parent_id":"s5""#,
    ),
    (
        "span_cycle",
        r#""id":"s4","parent_id":"s3""#,
        r#""id":"s4","parent_id":"s4""#,
    ),
    (
        "unknown_span",
        r#""op","span_id":"s5""#,
        r#""op","span_id":"s55""#,
    ),
    (
        "unknown_span",
        r#""tensor","span_id":"s5""#,
        r#""tensor","span_id":"s55""#,
    ),
    (
        "unknown_span",
        r#""tensor_stats","span_id":"s3""#,
        r#""tensor_stats","span_id":"""#,
    ),
    (
        "unknown_span",
        r#""tensor_id":"t3","span_id":"s5","op_name""#,
        r#""tensor_id":"t3","span_id":"s55","op_name""#,
    ),
    (
        "unknown_span",
        r#""device_interval","span_id":"s5""#,
        r#""device_interval","span_id":"s05""#,
    ),
    (
        "operation_outside_span",
        r#""timestamp_ns":26069"#,
        r#""timestamp_ns":21131"#,
    ),
    (
        "operation_outside_span",
        r#""duration_ns":20250"#,
        r#""duration_ns":70250"#,
    ),
    ("operation_outside_span", r#""timestamp_ns":26069,"#, ""),
    (
        "memory_outside_span",
        r#""timestamp_ns":69563"#,
        r#""timestamp_ns":100"#,
    ),
    (
        "memory_outside_span",
        r#""timestamp_ns":86999"#,
        r#""timestamp_ns":96999"#,
    ),
    (
        "empty_device_interval",
        r#""duration_ns":5000"#,
        r#""duration_ns":0"#,
    ),
    (
        "empty_device_memory_sample",
        r#","used_bytes":1073741824,"free_bytes":8589934592,"capacity_bytes":9663676416"#,
        "",
    ),
    (
        "unknown_call_edge_span",
        r#""edge_kind":"data","from_tensor":"t1","to_tensor":"t3""#,
        r#""edge_kind":"call","from_span":"s4","to_span":"s9","host_duration_ns":1"#,
    ),
    (
        "unknown_call_edge_span",
        r#""edge_kind":"data","from_tensor":"t1","to_tensor":"t3""#,
        r#""edge_kind":"call","from_span":"s9","to_span":"s5","host_duration_ns":74520"#,
    ),
    (
        "call_edge_hierarchy_mismatch",
        r#""edge_kind":"data","from_tensor":"t1","to_tensor":"t3""#,
        r#""edge_kind":"call","from_span":"s3","to_span":"s5","host_duration_ns":74520"#,
    ),
    (
        "call_edge_duration_mismatch",
        r#""edge_kind":"data","from_tensor":"t1","to_tensor":"t3""#,
        r#""edge_kind":"call","from_span":"s4","to_span":"s5","host_duration_ns":74521"#,
    ),
    (
        "",
        r#""edge_kind":"data","from_tensor":"t1","to_tensor":"t3""#,
        r#""edge_kind":"call","from_span":"s4","to_span":"s5","host_duration_ns":74520"#,
    ),
    (
        "empty_data_edge_endpoint",
        r#""from_tensor":"t1""#,
        r#""from_tensor":"""#,
    ),
    (
        "unknown_data_edge_tensor",
        r#""from_tensor":"t1""#,
        r#""from_tensor":"t9""#,
    ),
    (
        "allocation_size_mismatch",
        "\"bytes\":32768,\"action\":\"free\"",
        "\"bytes\":32769,\"action\":\"free\"",
    ),
    (
        "duplicate_allocation",
        r#""action":"free""#,
        r#""action":"alloc""#,
    ),
    (
        "retained_allocations",
        r#""action":"free""#,
        r#""action":"alloc""#,
    ),
    ("unpaired_free", r#""action":"alloc""#, r#""action":"free""#),
    (
        "unpaired_free",
        r#""timestamp_ns":69563"#,
        r#""timestamp_ns":87000"#,
    ),
    (
        "unpaired_free",
        "\"op_name\":\"matmul\",\"device\":\"cuda:0\"",
        "\"op_name\":\"matmul\",\"device\":\"cuda:1\"",
    ),
    (
        "empty_gradient_event_id",
        r#""event_id":"gradient-1""#,
        r#""event_id":" ""#,
    ),
    (
        "empty_gradient_parameter_key",
        r#""gradient-1","root":"parameters""#,
        r#""gradient-1","root":" ""#,
    ),
    (
        "duplicate_gradient_event_id",
        r#""event_id":"gradient-2""#,
        r#""event_id":"gradient-1""#,
    ),
    (
        "gradient_state_norm_inconsistent",
        r#""norm":0.0}"#,
        r#""norm":-0.0}"#,
    ),
    (
        "gradient_state_norm_inconsistent",
        r#""norm":0.30000000000000004"#,
        r#""norm":0"#,
    ),
    (
        "gradient_state_norm_inconsistent",
        r#""state":"missing""#,
        r#""state":"missing","norm":1.0"#,
    ),
    (
        "gradient_contract_missing",
        r#""gradient_contract":{"#,
        r#""ignored":{"#,
    ),
    (
        "gradient_contract_without_complete_coverage",
        r#""gradients":"complete""#,
        r#""gradients":"partial""#,
    ),
    ("gradient_contract_invalid", "3369a44d", "3369a44e"),
    (
        "gradient_contract_invalid",
        r#""key":"fc1.bias","family":"trainable""#,
        r#""key":"fc1.bias","family":"other""#,
    ),
    (
        "gradient_manifest_duplicate_key",
        r#""gradient-1","root":"parameters","key":"fc1.bias""#,
        r#""gradient-1","root":"parameters","key":"fc1.weight""#,
    ),
    (
        "gradient_manifest_undeclared_key",
        r#""gradient-1","root":"parameters","key":"fc1.bias""#,
        r#""gradient-1","root":"parameters","key":"fc2.bias""#,
    ),
    (
        "gradient_manifest_missing_key",
        r#""gradient-1","root":"parameters","key":"fc1.bias""#,
        r#""gradient-1","root":"parameters","key":"fc1.weight""#,
    ),
    (
        "gradient_family_non_finite",
        r#""state":"zero","norm":0.0"#,
        r#""state":"non_finite""#,
    ),
    (
        "gradient_active_family_below_minimum",
        r#""state":"present","norm":0.30000000000000004"#,
        r#""state":"missing""#,
    ),
    (
        "gradient_inactive_family_leakage",
        r#""state":"missing""#,
        r#""state":"zero","norm":0.0"#,
    ),
    (
        "gradient_conditional_family_below_minimum",
        r#""expectation":"active","min_present":1"#,
        r#""expectation":"data_conditional","min_present":2"#,
    ),
    (
        "duplicate_required_semantic_label",
        r#""required_semantic_labels":["#,
        r#""required_semantic_labels":["train::step/forward","#,
    ),
    (
        "empty_required_semantic_label",
        r#""required_semantic_labels":["#,
        r#""required_semantic_labels":[" ","#,
    ),
    (
        "required_semantic_label_cardinality",
        r#""name":"train::step/optimizer""#,
        r#""name":"train::step/forward""#,
    ),
    (
        "empty_semantic_label_classification",
        r#""cpu_only_semantic_labels":["#,
        r#""cpu_only_semantic_labels":["","#,
    ),
    (
        "duplicate_semantic_label_classification",
        r#""cpu_only_semantic_labels":["#,
        r#""cpu_only_semantic_labels":["train::step/backward","#,
    ),
    (
        "unrequired_semantic_label_classification",
        r#""cpu_only_semantic_labels":["#,
        r#""cpu_only_semantic_labels":["other","#,
    ),
    (
        "overlapping_semantic_label_classification",
        r#""cpu_only_semantic_labels":["#,
        r#""cpu_only_semantic_labels":["train::step/forward","#,
    ),
    (
        "incomplete_semantic_label_partition",
        r#""cpu_only_semantic_labels":["train::step/backward"]"#,
        r#""cpu_only_semantic_labels":[]"#,
    ),
    ("forward_absent", r#","step":"forward""#, ""),
    ("backward_absent", r#","step":"backward""#, ""),
    ("optimizer_absent", r#","step":"optimizer""#, ""),
    (
        "capture_failed",
        r#""outcome":"complete","timestamp_ns":189491"#,
        r#""outcome":"failed","timestamp_ns":189491,"reason":"x""#,
    ),
    // Accepted in spite of what it looks like.
    (
        "",
        r#""span_kind":"op","measured":false"#,
        r#""span_kind":"op""#,
    ),
    ("", r#","requires_grad":false,"#, ","),
    (
        "",
        r#""kind":"span_end","id":"s4","duration_ns":82612"#,
        r#""id":"s4","duration_ns":82612,"kind":"span_end""#,
    ),
    (
        "",
        r#""kind":"span_end","id":"s4""#,
        r#""kind":"span_end","other":[1,{"a":null}],"id":"s4""#,
    ),
    (
        "",
        r#"{"kind":"span_end","id":"s4","#,
        "\n  \u{a0}\n\t{ \"kind\" : \"span\\u005fend\" ,\"id\":\"s\\u0034\",",
    ),
    (
        "",
        "{\"kind\":\"span_end\",\"id\":\"s4\",\"duration_ns\":82612}\n",
        "{\"kind\":\"span_end\",\"id\":\"s4\",\"duration_ns\":82612}\r\n",
    ),
    (
        "",
        r#""schema":"candle-graph/trace/10","run_id""#,
        r#""run_id""#,
    ),
];

/// What must not parse.
const REFUSED: &[(&str, &str)] = &[
    ("trace/10", "trace/6"),
    ("trace/10", "trace/9"),
    (
        r#"{"kind":"meta","#,
        "{\"kind\":\"gradient\",\"event_id\":\"g\",\"root\":\"r\",\"key\":\"k\",\"state\":\"missing\"}\n{\"kind\":\"meta\",",
    ),
    (r#""correlation_id":"train::step/update-3","#, ""),
    (r#""phase":"train""#, r#""phase":"eval""#),
    (r#""tags":{"#, r#""tags":{"a":1,"#),
    (
        r#""kind":"span_start","id":"s4""#,
        r#""kind":"span","id":"s4""#,
    ),
    (r#""kind":"span_start","id":"s4""#, r#""id":"s4""#),
    (
        r#""kind":"span_start","id":"s4""#,
        r#""kind":"span_start","kind":"span_start","id":"s4""#,
    ),
    (
        r#""kind":"span_start","id":"s4""#,
        r#""kind":"span_start","id":"s4","id":"s4""#,
    ),
    (
        r#""kind":"span_start","id":"s4""#,
        r#""kind":"span_start","id":"s3""#,
    ),
    (
        r#""kind":"span_start","id":"s4""#,
        r#""kind":"span_start","id":4"#,
    ),
    (r#""name":"fc1","#, ""),
    (r#""start_ns":16014"#, r#""start_ns":-1"#),
    (r#""start_ns":16014"#, r#""start_ns":16014.0"#),
    (r#""start_ns":16014"#, r#""start_ns":18446744073709551616"#),
    (r#""start_ns":16014"#, r#""start_ns":null"#),
    (r#""start_ns":16014"#, r#""start_ns":16014,"other":1e999"#),
    (
        r#""start_ns":16014"#,
        r#""start_ns":16014,"other":"\ud800""#,
    ),
    (r#""span_kind":"module""#, r#""span_kind":"layer""#),
    (r#""step":"forward""#, r#""step":"sideways""#),
    (
        r#""kind":"span_end","id":"s5""#,
        r#""kind":"span_end","id":"s9""#,
    ),
    (
        r#""kind":"span_end","id":"s5""#,
        r#""kind":"span_end","id":"s4""#,
    ),
    (r#""duration_ns":82612}"#, r#""duration_ns":99999999999}"#),
    (r#""duration_ns":82612}"#, r#""duration_ns":82612"#),
    (r#""duration_ns":82612}"#, r#""duration_ns":82612}}"#),
    (r#""inputs":["t1","t2"]"#, r#""inputs":["t1",2]"#),
    (
        r#""duration_ns":20250"#,
        r#""duration_ns":18446744073709551615"#,
    ),
    (r#""timestamp_ns":86999"#, r#""timestamp_ns":386999"#),
    (r#""timestamp_ns":172896"#, r#""timestamp_ns":189492"#),
    (r#""action":"free""#, r#""action":"realloc""#),
    (r#""label":"loss/total""#, r#""label":" ""#),
    (
        r#""shape":[],"dtype":"f64","elements":1"#,
        r#""shape":[],"dtype":"f64","elements":0"#,
    ),
    (
        r#""shape":[],"dtype":"f64","elements":1"#,
        r#""shape":[4294967296,4294967296,0],"dtype":"f64","elements":0"#,
    ),
    (r#""non_finite":1"#, r#""non_finite":2"#),
    (r#""rms":0.0"#, r#""rms":-0.1"#),
    (r#""abs_max":0.0"#, r#""abs_max":-1"#),
    (r#""mean":0.0"#, r#""mean":null"#),
    (r#""mean":0.0"#, r#""mean":1e999"#),
    (r#""edge_kind":"data","#, ""),
    (r#""edge_kind":"data""#, r#""edge_kind":"call""#),
    (r#""state":"missing""#, r#""state":"lost""#),
    (r#""outcome":"complete""#, r#""outcome":"failed""#),
    (
        r#""outcome":"complete","timestamp_ns":189491"#,
        r#""outcome":"failed","timestamp_ns":189491,"reason":"  ""#,
    ),
    (
        r#""outcome":"complete","timestamp_ns":189491"#,
        r#""outcome":"complete","timestamp_ns":189491,"reason":"x""#,
    ),
    (
        r#""outcome":"complete","timestamp_ns":189491"#,
        r#""outcome":"complete","timestamp_ns":189490"#,
    ),
    (
        r#""outcome":"complete","timestamp_ns":189491}"#,
        "\"outcome\":\"complete\",\"timestamp_ns\":189491}\n{\"kind\":\"terminal\",\"outcome\":\"complete\",\"timestamp_ns\":189491}",
    ),
    (
        r#"{"kind":"terminal","outcome":"complete","timestamp_ns":189491}"#,
        "",
    ),
];

fn edited(from: &str, to: &str) -> String {
    let golden = golden("all-events.trace10.jsonl");
    assert!(golden.contains(from), "{from:?} is in the golden trace");
    golden.replacen(from, to, 1)
}

/// Both verdicts, which must be one.
fn agreed(text: &str) -> Verdict {
    let verdict = judge(text);
    assert_eq!(ours(text), verdict, "on the trace\n{text}");
    verdict
}

#[test]
fn golden_traces_are_judged_alike() {
    assert!(agreed(&golden("all-events.trace10.jsonl")).is_complete());
    let failed = agreed(&golden("failed.trace10.jsonl"));
    assert!(failed.is_valid() && !failed.is_complete());
    // The schema before had no statistics.
    let old: String = golden("all-events.trace10.jsonl")
        .replace("trace/10", "trace/9")
        .split_inclusive('\n')
        .filter(|line| !line.contains("tensor_stats"))
        .collect();
    assert!(agreed(&old).is_complete());
}

#[test]
fn every_rule_of_the_parser_is_the_judges() {
    for (from, to) in REFUSED {
        let verdict = agreed(&edited(from, to));
        assert_eq!(verdict, Verdict::Refused, "{from} -> {to}");
    }
    assert_eq!(agreed(""), Verdict::Refused);
}

#[test]
fn every_rule_of_the_health_check_is_the_judges() {
    let mut hit = BTreeSet::new();
    for (code, from, to) in EDITS {
        if from.starts_with(r#""schema""#) {
            assert_eq!(agreed(&edited(from, to)), Verdict::Refused);
            continue;
        }
        let codes = agreed(&edited(from, to)).codes();
        assert!(
            code.is_empty() || codes.contains(*code),
            "{from} -> {to} gives {codes:?}, not {code}"
        );
        hit.extend(codes);
    }
    hit.extend(agreed(&without("op")).codes());
    hit.extend(agreed(&without("tensor")).codes());
    hit.extend(agreed(&without("memory")).codes());
    hit.extend(agreed(&without("device_memory")).codes());
    hit.extend(agreed(&without("device_interval")).codes());
    hit.extend(agreed(&without("gradient")).codes());
    for document in documents() {
        let verdict = judge_document(&document);
        assert_eq!(our_document(&document), verdict, "{document}");
        hit.extend(verdict.codes());
    }
    let all: BTreeSet<String> = CODES.iter().map(|code| code.to_string()).collect();
    assert_eq!(all.len(), CODES.len());
    assert_eq!(hit, all);
}

fn without(kind: &str) -> String {
    let start = format!(r#"{{"kind":"{kind}","#);
    golden("all-events.trace10.jsonl")
        .split_inclusive('\n')
        .filter(|line| !line.starts_with(&start))
        .collect()
}

/// Documents that no text can give.
fn documents() -> Vec<Value> {
    let text = golden("all-events.trace10.jsonl");
    let document = candle_profiler::trace::parse_trace_reader(text.as_bytes()).unwrap();
    let edit = |change: fn(&mut Value)| {
        let mut value = serde_json::to_value(&document).unwrap();
        change(&mut value);
        value
    };
    vec![
        edit(|document| document["terminal"]["reason"] = json!("but")),
        edit(|document| document["terminal"]["outcome"] = json!("failed")),
        edit(|document| {
            document["terminal"] =
                json!({"outcome": "failed", "timestamp_ns": 189_491, "reason": " "})
        }),
        edit(|document| document["terminal"]["timestamp_ns"] = json!(1)),
        edit(|document| document["spans"][3]["id"] = json!("s3")),
        edit(|document| document["spans"] = json!([])),
    ]
}

#[test]
fn a_failed_capture_is_judged_more_mildly_and_alike() {
    let failing = (
        r#""outcome":"complete","timestamp_ns":189491"#,
        r#""outcome":"failed","timestamp_ns":189491,"reason":"x""#,
    );
    for (_, from, to) in EDITS {
        let text = edited(from, to);
        if text.contains(failing.0) {
            agreed(&text.replacen(failing.0, failing.1, 1));
        }
    }
}
