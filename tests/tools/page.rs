//! `view`: what must be in the page. How it looks in a browser is a script's to prove.

use serde_json::{Value, json};

use super::export::busy;
use super::sample::{self, Lines, STAMP, simple};
use super::{get, put, refused, well};

/// The data of a page.
pub(crate) fn data(page: &str) -> Value {
    let start = page.find("id=\"data\">").expect("the data") + "id=\"data\">".len();
    let end = start + page[start..].find("</script>").expect("its end");
    serde_json::from_str(&page[start..end]).expect("JSON")
}

#[test]
fn a_page_holds_all_spans_and_needs_no_network() {
    let folder = tests::folder();
    put(folder.path(), "busy.jsonl", &busy());
    assert_eq!(
        well(folder.path(), &["view", "busy.jsonl", "-o", "busy.html"]),
        ""
    );
    let page = get(folder.path(), "busy.html");
    assert!(page.contains("default-src 'none'"));
    for outside in [
        "<script src",
        "<link",
        "@import",
        "url(",
        "fetch(",
        "XMLHttpRequest",
    ] {
        assert!(!page.contains(outside), "{outside}");
    }
    let trace = &data(&page)["traces"][0];
    let spans = &trace["spans"];
    // Eight spans and two operations.
    for column in ["name", "start", "length", "track", "depth", "bad"] {
        assert_eq!(spans[column].as_array().map(Vec::len), Some(10), "{column}");
    }
    let measured = spans["measured"].as_u64().expect("the region") as usize;
    assert_eq!(
        (&spans["start"][measured], &spans["length"][measured]),
        (&1_001.into(), &88_999.into())
    );
    assert_eq!(trace["tracks"].as_array().map(Vec::len), Some(3));
    assert_eq!(trace["summary"]["schema"], "candle-profiler/summary/1");
    assert!(refused(folder.path(), &["view", "busy.jsonl", "-o", "busy.html"]).contains("--force"));
}

#[test]
fn what_is_not_finite_or_cut_is_marked_unless_it_is_meant() {
    let folder = tests::folder();
    let path = folder.path();
    let stats = |span: &str, label: &str, more: Value| {
        let mut line = json!({
            "kind": "tensor_stats", "span_id": span, "label": label, "shape": [2, 3], "dtype": "f32", "elements": 6,
            "non_finite": 3, "rms": 1.0, "abs_max": 1.0, "mean": 0.0,
        });
        for (key, value) in more.as_object().expect("keys") {
            line[key] = value.clone();
        }
        line
    };
    let text = Lines::new(2, 1_000, json!({}), STAMP)
        .measured("train_step", (10, 990), json!({}))
        .span("s3", Some("s2"), "mask", (20, 100), json!({}), json!({}))
        .span("s4", Some("s2"), "broken", (120, 200), json!({}), json!({}))
        .span("s5", Some("s2"), "meant", (220, 300), json!({}), json!({}))
        .span("s6", Some("s2"), "norm", (320, 400), json!({}), json!({}))
        .line(&stats("s3", "mask", json!({"nan": 0, "pos_inf": 0, "neg_inf": 3})))
        .line(&stats("s4", "logits", json!({"nan": 3, "pos_inf": 0, "neg_inf": 0})))
        .line(&stats("s5", "ratio", json!({"nan": 3, "pos_inf": 0, "neg_inf": 0, "alarm": false})))
        .line(&stats("s6", "hidden", json!({"non_finite": 0})))
        .line(&json!({
            "kind": "tensor", "span_id": "s6", "tensor_id": "t1", "label": "hidden", "shape": [2, 3], "dtype": "f32",
            "device": "cpu", "requires_grad": false, "category": "activation", "autograd": "cut", "twin": "rms_norm",
        }))
        .end();
    put(path, "a.jsonl", &text);
    let page = well(path, &["view", "a.jsonl"]);
    let trace = &data(&page)["traces"][0];
    let name = |at: &Value| trace["names"][at.as_u64().expect("a name") as usize].clone();
    let spans = &trace["spans"];
    let bad: Vec<Value> = (0..6)
        .filter(|at| spans["bad"][*at] == 1)
        .map(|at| name(&spans["name"][at]))
        .collect();
    assert_eq!(bad, ["broken"]);
    let marks: Vec<_> = trace["stats"]
        .as_array()
        .expect("records")
        .iter()
        .map(|record| {
            (
                record["label"].clone(),
                record["alarm"] == true,
                record["cut"] == true,
            )
        })
        .collect();
    assert_eq!(
        marks,
        [
            ("mask".into(), false, false),
            ("logits".into(), true, false),
            ("ratio".into(), false, false),
            ("hidden".into(), false, true),
        ]
    );
    let details = trace["details"].to_string();
    assert!(
        details.contains("graph cut at hidden; rms_norm keeps it"),
        "{details}"
    );
    assert_eq!(
        super::json(path, &["view", "a.jsonl", "-o", "a.html", "--json"]),
        json!({
            "schema": "candle-profiler/view/1", "traces": ["a.jsonl"], "paths": ["a.html"], "warnings": [],
        })
    );
    assert!(get(path, "a.html") == page, "the same at each run");
}

#[test]
fn no_name_ends_the_script_it_stands_in() {
    let folder = tests::folder();
    let evil = "</script><script>alert(1)</script>&<!--";
    put(
        folder.path(),
        "evil.jsonl",
        &busy().replace("worker", evil).replace("train_step", "<b>x"),
    );
    let page = well(folder.path(), &["view", "evil.jsonl"]);
    assert!(!page.contains("<script>alert"), "escaped");
    assert!(page.contains("<title>&lt;b>x step 4</title>"));
    let names = data(&page)["traces"][0]["names"].clone();
    assert!(names.as_array().expect("names").contains(&evil.into()));
}

#[test]
fn several_steps_stand_side_by_side() {
    let folder = tests::folder();
    for step in [2, 3, 10] {
        put(
            folder.path(),
            &format!("t-step{step}.jsonl"),
            &simple(step, 1_000 * step, 1.0),
        );
    }
    sample::step(&folder.path().join("hand.jsonl"), 11, 0.5);
    let page = well(folder.path(), &["view", "."]);
    let data = data(&page);
    let titles: Vec<_> = data["traces"]
        .as_array()
        .expect("traces")
        .iter()
        .map(|trace| trace["title"].clone())
        .collect();
    assert_eq!(
        titles,
        [
            "train_step step 11",
            "train_step step 2",
            "train_step step 3",
            "train_step step 10"
        ]
    );
    assert_eq!(
        data["trends"]["groups"][0]["steps"]
            .as_array()
            .map(Vec::len),
        Some(4)
    );
}
