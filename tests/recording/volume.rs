//! The large promises: nothing changes what is computed, and the judge rejects nothing.

use std::path::Path;

use candle_graph::artifact::{publish_bundle, verify_bundle};
use candle_graph::trace::{analyze_health, parse_trace};
use tests::program::{files, run, traces};

fn train(folder: &Path, mode: &str, steps: &str) -> String {
    let arguments: Vec<&str> = mode.split(' ').collect();
    let variables = [
        ("CANDLE_PROFILE", "traces"),
        ("CANDLE_PROFILE_STEPS", steps),
        ("CANDLE_PROFILE_SUMMARY", "off"),
    ];
    let variables = if steps.is_empty() {
        &[][..]
    } else {
        &variables
    };
    let ran = run(env!("CARGO_BIN_EXE_train"), folder, &arguments, variables);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    ran.stdout
}

#[test]
fn weights_after_twenty_steps_are_the_same_bits_with_every_step_captured() {
    let folder = tempfile::tempdir().expect("a folder");
    let off = train(folder.path(), "plain 20", "");
    assert_eq!(files(folder.path()), [] as [String; 0]);
    let on = train(folder.path(), "plain 20", "1..=20");
    assert_eq!(traces(folder.path()).len(), 20);
    // 8 × 16 + 16 + 16 × 2 + 2 numbers of 8 digits, and a line end.
    assert_eq!(off.len(), 178 * 8 + 1);
    assert_eq!(on, off);
    let untrained = train(folder.path(), "plain 0", "");
    assert_ne!(untrained, off, "the training moves the weights");
}

#[test]
fn a_bundle_of_our_trace_passes_the_judges_verification() {
    let folder = tempfile::tempdir().expect("a folder");
    train(folder.path(), "plain 3", "2");
    let trace = folder
        .path()
        .join("traces/train-model-train_step-step2.jsonl");
    let bundle = folder.path().join("bundle");
    let manifest = publish_bundle(&bundle, &trace, None).expect("a bundle");
    let receipt = verify_bundle(&bundle).expect("a verified bundle");
    let traces = traces(folder.path());
    let run_id = traces[0].meta()["run_id"].as_str();
    assert_eq!(Some(receipt.run_id.as_str()), run_id);
    assert_eq!(receipt.run_id, manifest.run_id);
    assert!(receipt.files_verified >= 3, "trace, evidence, report");
    let evidence = std::fs::read_to_string(bundle.join("evidence.json")).expect("the evidence");
    let evidence: serde_json::Value = serde_json::from_str(&evidence).expect("JSON");
    assert_eq!(evidence["health"]["structurally_valid"], true);
    assert_eq!(evidence["health"]["capture_complete"], true);
}

#[test]
fn none_of_two_thousand_captures_is_rejected() {
    let folder = tempfile::tempdir().expect("a folder");
    train(folder.path(), "burst 2000", "1..=2000");
    let files = files(folder.path());
    assert_eq!(files.len(), 2000);
    for file in files {
        let document = parse_trace(folder.path().join(&file)).expect("a trace");
        let health = analyze_health(&document);
        assert!(
            health.structurally_valid && health.capture_complete,
            "{file}: {:?}",
            health.issues
        );
        // 150 spans, the measured one and the root.
        assert_eq!(health.coverage.closed_spans, 152, "{file}");
    }
}
