//! Steps with several backward passes: what each view makes of their gradients.

use serde_json::{Value, json};

use super::sample::{Lines, STAMP};
use super::{get, json, put, well};

/// A gradient of a pass; the first is not numbered.
fn gradient(number: usize, key: &str, pass: u64, state: &str, norm: Option<f64>) -> Value {
    let mut line = json!({
        "kind": "gradient", "event_id": format!("gradient-{number}"), "root": "loss", "key": key, "state": state,
    });
    if let Some(norm) = norm {
        line["norm"] = json!(norm);
    }
    if pass > 1 {
        line["pass"] = json!(pass);
    }
    line
}

/// Three passes, two of them mixed: norms 5, 13 and, where `c` is not finite, none.
fn step(number: u64) -> String {
    let events = [
        ("a", 1, "present", Some(3.0)),
        ("b", 1, "present", Some(4.0)),
        ("a", 2, "present", Some(12.0)),
        ("c", 3, "non_finite", None),
        ("b", 2, "present", Some(5.0)),
        ("a", 3, "present", Some(100.0)),
        ("d", 2, "zero", Some(0.0)),
        ("d", 3, "missing", None),
        ("e", 3, "missing", None),
        ("b", 3, "zero", Some(0.0)),
        ("a", 4, "present", Some(8.0)),
        ("b", 4, "present", Some(6.0)),
    ];
    let mut lines =
        Lines::new(number, 100, json!({}), STAMP).measured("train_step", (10, 60), json!({}));
    for (at, (key, pass, state, norm)) in events.into_iter().enumerate() {
        lines = lines.line(&gradient(at + 1, key, pass, state, norm));
    }
    lines.end()
}

#[test]
fn each_variable_is_told_once_and_passes_are_a_range() {
    let folder = tests::folder();
    put(folder.path(), "step.jsonl", &step(3));
    assert!(well(folder.path(), &["check", "step.jsonl"]).contains(": valid, complete"));
    let text = well(folder.path(), &["summary", "step.jsonl"]);
    for line in [
        "  gradients of loss that are not finite: c; no optimizer ran, so the step was\n",
        " 5 … 13 (4 passes, 1 of them not finite, 1 of 5 missing)\n",
        "  loss: 5 variables, 2 present, 1 missing, 1 zero, 1 not finite, 4 passes, 1\n    of them not finite, norms 5 … 13\n",
        "    missing: e\n",
        "    zero: d\n",
        "    not finite: c\n",
    ] {
        assert!(text.contains(line), "{line} in\n{text}");
    }
    let value = json(folder.path(), &["summary", "--json", "step.jsonl"]);
    let loss = &value["gradients"][0];
    assert_eq!(loss["variables"], 5);
    assert_eq!(loss["passes"], 4);
    assert_eq!(loss["global_norm"], Value::Null);
    assert_eq!(
        loss["pass_norms"],
        json!({"first": 5.0, "last": 10.0, "least": 5.0, "most": 13.0})
    );
}

#[test]
fn trends_and_exports_take_the_last_pass() {
    let folder = tests::folder();
    put(folder.path(), "a.jsonl", &step(3));
    put(folder.path(), "b.jsonl", &step(4));
    let text = well(folder.path(), &["summary", "a.jsonl", "b.jsonl"]);
    let row = text.lines().find(|line| line.contains("gradient norm"));
    let words: Vec<&str> = row.unwrap_or_default().split_whitespace().collect();
    assert_eq!(
        words.join(" "),
        "gradient norm (last pass) ▁▁ 10 10 10 10",
        "{text}"
    );

    well(
        folder.path(),
        &["export", "a.jsonl", "--to", "chrome", "-o", "a.json"],
    );
    let events: Vec<Value> = serde_json::from_str(&get(folder.path(), "a.json")).expect("JSON");
    let norms: Vec<&Value> = events
        .iter()
        .filter(|event| event["name"] == "gradient norm of loss")
        .map(|event| &event["args"]["value"])
        .collect();
    assert_eq!(norms, [&json!(10.0)]);

    let said = well(
        folder.path(),
        &["export", "a.jsonl", "--to", "tensorboard", "-o", "board"],
    );
    let bytes = std::fs::read(folder.path().join(said.trim())).expect("the file");
    for (tag, number) in [
        ("gradient_norm/loss", 10f32),
        ("gradients/loss/a", 8.0),
        ("gradients/loss/b", 6.0),
    ] {
        let mut value = tag.as_bytes().to_vec();
        value.push(0x15);
        value.extend(number.to_le_bytes());
        let is_in = bytes.windows(value.len()).any(|part| part == value);
        assert!(is_in, "{tag} {number}");
    }
}

#[test]
fn the_page_shows_each_variable_once() {
    let folder = tests::folder();
    put(folder.path(), "a.jsonl", &step(3));
    well(folder.path(), &["view", "a.jsonl", "-o", "a.html"]);
    let data = super::page::data(&get(folder.path(), "a.html"));
    assert_eq!(
        data["traces"][0]["gradients"],
        json!([
            {"root": "loss", "key": "a", "state": "present", "passes": 4, "least": 3.0, "most": 100.0, "reason": null},
            {"root": "loss", "key": "b", "state": "present", "passes": 4, "least": 0.0, "most": 6.0, "reason": null},
            {"root": "loss", "key": "c", "state": "non_finite", "passes": 1, "least": null, "most": null, "reason": null},
            {"root": "loss", "key": "d", "state": "zero", "passes": 2, "least": 0.0, "most": 0.0, "reason": null},
            {"root": "loss", "key": "e", "state": "missing", "passes": 1, "least": null, "most": null, "reason": null},
        ])
    );
}

/// A trace of another writer has no numbers: what comes again is of the next pass.
#[test]
fn passes_that_nobody_numbered_are_told_by_what_comes_again() {
    let folder = tests::folder();
    let mut lines =
        Lines::new(3, 100, json!({}), STAMP).measured("train_step", (10, 60), json!({}));
    let norms = [("a", 3.0), ("b", 4.0), ("a", 6.0), ("c", 8.0)];
    for (at, (key, norm)) in norms.into_iter().enumerate() {
        lines = lines.line(&gradient(at + 1, key, 1, "present", Some(norm)));
    }
    put(folder.path(), "a.jsonl", &lines.end());
    let text = well(folder.path(), &["summary", "a.jsonl"]);
    let line = "  loss: 3 variables, 3 present, 2 passes, norms 5 … 10\n";
    assert!(text.contains(line), "{text}");
}
