//! Random trees of calls on several threads: the judge accepts each trace, and each parent is as the rules say.
//!
//! Each tree follows from its number alone. `PROPERTY_TREES` is how many are tried (2,000), `PROPERTY_FIRST` the
//! number of the first (0): a failure names the one to look at. One in eight runs beside the next one.

mod model;
mod play;
mod tree;

use std::collections::BTreeMap;

use tests::capturing::{captures, folder};
use tests::program::files;
use tests::trace::{Span, Trace};

use model::{Expected, Is, Mark};
use play::{Late, Planned};
use tree::{Maker, Tree};

/// Says which tree it was when a check fails.
struct Tried {
    seed: u64,
    tree: Tree,
    expected: Expected,
}

impl Tried {
    fn new(seed: u64) -> Self {
        let tree = Maker::tree(seed);
        let expected = Expected::of(&tree);
        Self {
            seed,
            tree,
            expected,
        }
    }

    /// Where the trace is not as it should be, what it is instead.
    fn differs(&self, trace: &Trace) -> Option<String> {
        let found = found(trace, &self.expected);
        (found != self.expected).then(|| {
            let (tree, expected) = (trace.tree(), &self.expected);
            format!("{tree}\nfound: {found:#?}\nexpected: {expected:#?}")
        })
    }
}

impl Drop for Tried {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("tree {}: {:#?}", self.seed, self.tree);
        }
    }
}

#[test]
fn every_tree_leaves_a_valid_trace_with_the_right_parents() {
    keep_quiet();
    let first = number("PROPERTY_FIRST", 0);
    let mut seeds = first..first + number("PROPERTY_TREES", 2_000);
    while let Some(seed) = seeds.next() {
        let one = Tried::new(seed);
        if seed % 8 == 0
            && let Some(other) = seeds.next()
        {
            two_at_once(&one, &Tried::new(other));
        } else {
            alone(&one);
        }
        for file in files(folder()) {
            std::fs::remove_file(folder().join(file)).expect("the trace");
        }
    }
}

fn alone(tried: &Tried) {
    let (late, traces) = captures(|| play::tree(&tried.tree));
    if let Some(late) = late {
        late.release();
    }
    assert_eq!(traces.len(), 1);
    let differs = tried.differs(&traces[0]);
    assert!(differs.is_none(), "{}", differs.unwrap_or_default());
}

/// Two threads, each with a capture of its own.
fn two_at_once(one: &Tried, other: &Tried) {
    let (late, traces) = captures(|| {
        std::thread::scope(|scope| {
            let other = scope.spawn(|| play::tree(&other.tree));
            [play::tree(&one.tree), other.join().expect("no panic")]
        })
    });
    late.into_iter().flatten().for_each(Late::release);
    assert_eq!(traces.len(), 2);
    // Which was counted first is for the threads to settle.
    let differ = |first, second| one.differs(first).or(other.differs(second));
    if let Some(straight) = differ(&traces[0], &traces[1]) {
        let crossed = differ(&traces[1], &traces[0]);
        assert!(
            crossed.is_none(),
            "{straight}\n{}",
            crossed.unwrap_or_default()
        );
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
