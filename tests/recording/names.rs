//! Names of spans: the default ones, and those built from arguments.

use std::fmt;

use candle_profiler::profile_span;
use tests::capturing::region;
use tests::trace::Trace;

fn names(trace: &Trace) -> Vec<&str> {
    trace.spans[2..]
        .iter()
        .map(|span| span.name.as_str())
        .collect()
}

struct Layer {
    name: String,
    shape: (usize, usize),
}

impl Layer {
    #[profile_span]
    fn forward(&self) {}

    #[profile_span]
    fn new() -> Self {
        Self {
            name: "conv".to_owned(),
            shape: (3, 4),
        }
    }

    #[profile_span(name = "{self.name} {self.shape.0}x{self.shape.1} step {step:>4} at {rate:.2}")]
    fn described(&self, step: u32, rate: f64) {}

    #[profile_span(name = "{label:?} {{braces}}")]
    fn debugged(&mut self, label: Option<&str>) {
        self.name.clear();
    }
}

struct Wrapper<T>(T);

impl<T: fmt::Debug> Wrapper<T> {
    #[profile_span]
    fn run(&self) {}
}

trait Model {
    #[profile_span]
    fn step(&self) {
        self.own();
    }

    fn own(&self) {}
}

impl Model for Layer {}

impl<T> Model for Wrapper<T> {
    #[profile_span]
    fn own(&self) {}
}

mod blocks {
    use candle_profiler::profile_span;

    #[profile_span]
    pub(super) fn attention() {}

    #[profile_span]
    pub(super) fn generic<T>(_: T) {}
}

#[test]
fn functions_are_called_by_their_path_and_methods_by_their_type() {
    let ((), trace) = region(|| {
        blocks::attention();
        Layer::new().forward();
        Wrapper(vec![1]).run();
        blocks::generic(1);
    });
    assert_eq!(
        names(&trace),
        [
            "recording::names::blocks::attention",
            "Layer::new",
            "Layer::forward",
            "Wrapper::run",
            "recording::names::blocks::generic",
        ]
    );
}

#[test]
fn a_traits_default_method_is_called_by_the_type_it_runs_for() {
    let ((), trace) = region(|| {
        Layer::new().step();
        Wrapper(1_u8).step();
        let dynamic: &dyn Model = &Wrapper("x");
        dynamic.step();
    });
    assert_eq!(
        names(&trace),
        [
            "Layer::new",
            "Layer::step",
            "Wrapper::step",
            "Wrapper::own",
            "Wrapper::step",
            "Wrapper::own"
        ]
    );
}

#[test]
fn names_are_built_from_arguments_as_they_were_passed() {
    let ((), trace) = region(|| {
        let mut layer = Layer::new();
        layer.described(7, 0.12345);
        layer.debugged(Some("a\"b"));
    });
    assert_eq!(
        names(&trace)[1..],
        ["conv 3x4 step    7 at 0.12", "Some(\"a\\\"b\") {braces}"]
    );
}

#[profile_span(name = "block {#}")]
fn block(inner: u32) {
    for _ in 0..inner {
        block(0);
    }
}

#[test]
fn ordinals_count_calls_under_one_parent() {
    let ((), trace) = region(|| {
        block(2);
        block(0);
        blocks::attention();
        block(1);
    });
    assert_eq!(
        trace.tree(),
        "region*\n  block 0\n    block 0\n    block 1\n  block 1\n  \
         recording::names::blocks::attention\n  block 2\n    block 0\n"
    );
    let ((), trace) = region(|| block(0));
    assert_eq!(names(&trace), ["block 0"], "each capture counts anew");
}

#[profile_span(name = "{text}")]
fn blank(text: &str) {}

#[test]
fn a_blank_name_leaves_the_default() {
    let ((), trace) = region(|| blank(" "));
    assert_eq!(names(&trace), ["recording::names::blank"]);
}

struct Loud;

impl fmt::Display for Loud {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        SHOWN.with(|shown| shown.set(shown.get() + 1));
        out.write_str("loud")
    }
}

thread_local! {
    static SHOWN: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

#[profile_span(name = "{what}")]
fn shown(what: Loud) {}

#[test]
fn names_are_built_only_while_a_capture_is_open() {
    tests::capturing::folder();
    shown(Loud);
    assert_eq!(SHOWN.with(std::cell::Cell::get), 0);
    let ((), trace) = region(|| shown(Loud));
    assert_eq!(names(&trace), ["loud"]);
    assert_eq!(SHOWN.with(std::cell::Cell::get), 1);
}
