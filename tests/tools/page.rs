//! `view`: what must be in the page. How it looks in a browser is a script's to prove.

use serde_json::Value;

use super::export::busy;
use super::sample::{self, simple};
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
