//! Random trees of calls on several threads: the judge accepts each trace, and each parent is as the rules say.
//!
//! Each tree follows from its number alone. `PROPERTY_TREES` is how many are tried (2,000), `PROPERTY_FIRST` the
//! number of the first (0): a failure names the one to look at.

mod model;
mod play;
mod tree;

use std::collections::BTreeMap;

use serde_json::Value;
use tests::capturing::{captures, folder};
use tests::program::files;
use tests::trace::{Span, Trace};

use model::{Expected, Is, Mark};
use play::Planned;
use tree::Maker;

#[test]
fn every_tree_leaves_a_valid_trace_with_the_right_parents() {
    keep_quiet();
    let first = number("PROPERTY_FIRST", 0);
    for seed in first..first + number("PROPERTY_TREES", 2_000) {
        let tree = Maker::tree(seed);
        let expected = Expected::of(&tree);
        let (late, traces) = captures(|| play::tree(&tree));
        if let Some(late) = late {
            late.release();
        }
        let [trace] = traces.as_slice() else {
            panic!("tree {seed}: {} traces\n{tree:#?}", traces.len());
        };
        let found = found(trace, &expected);
        assert!(
            found == expected,
            "tree {seed}: {tree:#?}\n{}\nfound: {found:#?}\nexpected: {expected:#?}",
            trace.tree()
        );
        for file in files(folder()) {
            std::fs::remove_file(folder().join(file)).expect("the trace");
        }
    }
}

fn number(variable: &str, default: u64) -> u64 {
    let set = std::env::var(variable).ok();
    set.map_or(default, |text| text.parse().expect("a number"))
}

/// Panics that a tree asks for are not worth a word.
fn keep_quiet() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !info.payload().is::<Planned>() {
            before(info);
        }
    }));
}

/// What the trace holds, in the terms of the model.
fn found(trace: &Trace, expected: &Expected) -> Expected {
    let names: BTreeMap<&str, u32> = trace.spans[1..]
        .iter()
        .map(|span| (span.id.as_str(), span.name.parse().expect("a number")))
        .collect();
    let of = |id: Option<&str>| names.get(id.expect("an id")).copied();
    let mut spans = BTreeMap::new();
    for span in &trace.spans[1..] {
        let id = names[span.id.as_str()];
        let mut parent = of(span.parent.as_deref());
        if let Some(allowed) = expected.races.get(&id)
            && parent.is_some_and(|parent| allowed.contains(&parent))
        {
            parent = allowed.first().copied();
        }
        let is = Is {
            parent,
            mark: mark(span),
            polls: span.end["polls"].as_u64().map(|polls| polls as usize),
        };
        assert_eq!(spans.insert(id, is), None, "{id} twice");
    }
    let stats = trace.kind("tensor_stats").into_iter();
    let records = stats.map(|line| {
        let label: u32 = line["label"]
            .as_str()
            .expect("a label")
            .parse()
            .expect("a number");
        assert_eq!(line["mean"].as_f64(), Some(f64::from(label)));
        (label, of(line["span_id"].as_str()))
    });
    assert_eq!(trace.meta()["kind"], Value::from("meta"));
    let reason = trace.reason();
    let as_expected = expected
        .failed
        .filter(|begin| reason.is_some_and(|reason| reason.starts_with(begin)));
    Expected {
        spans,
        records: records.collect(),
        races: expected.races.clone(),
        failed: as_expected.or(reason.map(|_| "something else")),
    }
}

/// A span that was cut by a panic is one that was cut.
fn mark(span: &Span) -> Mark {
    let marks = [
        ("cancelled", Mark::Cancelled),
        ("open_at_end", Mark::OpenAtEnd),
        ("cut", Mark::Cut),
        ("panicked", Mark::Panicked),
    ];
    let first = marks.into_iter().find(|(name, _)| span.is(name));
    first.map_or(Mark::None, |(_, mark)| mark)
}
