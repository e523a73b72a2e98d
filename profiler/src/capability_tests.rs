use super::*;

fn digits_manifest() -> Vec<ExpectedGradient> {
    vec![
        ExpectedGradient::new("parameters", "fc1.bias", "trainable"),
        ExpectedGradient::new("parameters", "fc1.weight", "trainable"),
        ExpectedGradient::new("parameters", "frozen.weight", "frozen"),
    ]
}

fn digits_families() -> Vec<GradientFamilyContract> {
    vec![
        GradientFamilyContract::active("trainable", 1),
        GradientFamilyContract::inactive("frozen"),
    ]
}

#[test]
fn the_digest_is_the_one_of_the_format() {
    let ours = GradientContract::new(digits_manifest(), digits_families()).unwrap();
    assert_eq!(
        ours.manifest_sha256,
        "sha256:3369a44d1a23664906a11911da1a3ff4a654018fd633b1dabdfade4bfea4f513"
    );
}

#[test]
fn every_broken_gradient_contract_is_refused() {
    let entry = |key: &str, family: &str| ExpectedGradient::new("p", key, family);
    let active = GradientFamilyContract::active;
    for (expected, families, word) in [
        (vec![], vec![active("f", 1)], "must not be empty"),
        (vec![entry("w", "f")], vec![], "must not be empty"),
        (vec![entry(" ", "f")], vec![active("f", 1)], "key"),
        (
            vec![entry("w", "f"), entry("w", "f")],
            vec![active("f", 1)],
            "more than once",
        ),
        (
            vec![entry("w", "f")],
            vec![active("f", 1), active("f", 1)],
            "more than one rule",
        ),
        (
            vec![entry("w", "f")],
            vec![active("f", 1), active("g", 1)],
            "no parameter",
        ),
        (
            vec![entry("w", "f")],
            vec![active("f", 2)],
            "allowed are 1 to 1",
        ),
        (
            vec![entry("w", "f")],
            vec![active("f", 0)],
            "allowed are 1 to 1",
        ),
        (
            vec![entry("w", "f"), entry("v", "g")],
            vec![active("f", 1)],
            "no rule",
        ),
    ] {
        let error = GradientContract::new(expected, families).unwrap_err();
        assert!(error.to_string().contains(word), "{error} lacks {word:?}");
    }
    let mut moved = GradientContract::new(digits_manifest(), digits_families()).unwrap();
    moved.expected.swap(0, 1);
    assert!(moved.validate().unwrap_err().to_string().contains("digest"));
}

#[test]
fn labels_are_divided_or_refused() {
    let contract = |required: &[&str], gpu: &[&str], cpu: &[&str]| {
        let own = |labels: &[&str]| labels.iter().map(|label| label.to_string()).collect();
        CaptureContract {
            required_semantic_labels: own(required),
            gpu_expected_semantic_labels: own(gpu),
            cpu_only_semantic_labels: own(cpu),
            ..CaptureContract::default()
        }
    };
    assert!(contract(&["a", "b"], &["a"], &["b"]).validate().is_ok());
    assert!(contract(&["a"], &[], &[]).validate().is_ok());
    for broken in [
        contract(&[" "], &[], &[]),
        contract(&["a", "a"], &[], &[]),
        contract(&["a"], &["b"], &[]),
        contract(&["a"], &["a"], &["a"]),
        contract(&["a", "b"], &["a"], &[]),
    ] {
        assert!(broken.validate().is_err(), "{broken:?}");
    }
    assert_eq!(
        contract(&["a"], &[], &[]).resolved_gpu_expected_semantic_labels(),
        ["a"]
    );
    assert!(
        contract(&["a"], &[], &["a"])
            .resolved_gpu_expected_semantic_labels()
            .is_empty()
    );
}

#[test]
fn complete_evidence_needs_what_proves_it() {
    let complete = CoverageLevel::Complete;
    let activations = CaptureContract {
        activations: complete,
        ..CaptureContract::default()
    };
    assert!(activations.validate().is_err());
    let with_operations = CaptureContract {
        operations: complete,
        ..activations
    };
    assert!(with_operations.validate().is_err());
    let with_tensors = CaptureContract {
        tensors: CoverageLevel::Partial,
        ..with_operations
    };
    assert!(with_tensors.validate().is_ok());

    let bare = CaptureContract {
        gradients: complete,
        ..CaptureContract::default()
    };
    assert!(bare.validate().is_err());
    let contract = GradientContract::new(digits_manifest(), digits_families()).unwrap();
    let undeclared = CaptureContract {
        gradient_contract: Some(contract.clone()),
        ..CaptureContract::default()
    };
    assert!(undeclared.validate().is_err());
    let both = CaptureContract {
        gradient_contract: Some(contract),
        ..bare
    };
    assert!(both.validate().is_ok());
}
