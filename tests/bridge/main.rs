//! Spans of other crates, as `candle-transformers` opens them: made with the model, entered at each forward pass.

use candle_core::{DType, Device, Result, Tensor};
use candle_profiler::{TracingLayer, profile_step};
use tests::capturing::{capture, region};
use tests::trace::Trace;
use tracing::{Level, span};
use tracing_subscriber::layer::SubscriberExt;

/// A layer in the manner of `candle-transformers`.
struct Attention {
    span: tracing::Span,
    inner: tracing::Span,
}

/// Where the span of a layer is opened.
const LINE: u32 = line!() + 5;

impl Attention {
    fn new() -> Self {
        Self {
            span: span!(Level::TRACE, "attn", secret = "a field"),
            inner: span!(Level::TRACE, "softmax"),
        }
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let _enter = self.span.enter();
        let x = scaled(x)?;
        let _inner = self.inner.enter();
        x.exp()
    }
}

#[profile_step(forward)]
fn scaled(x: &Tensor) -> Result<Tensor> {
    x * 2.0
}

/// Runs `work` where the layer listens.
fn listening<T>(work: impl FnOnce() -> T) -> T {
    let subscriber = tracing_subscriber::registry().with(TracingLayer::new());
    tracing::subscriber::with_default(subscriber, work)
}

fn ones() -> Tensor {
    Tensor::ones(4, DType::F32, &Device::Cpu).expect("a tensor")
}

/// The names of the spans below the region, with those of their parents.
fn parents(trace: &Trace) -> Vec<(String, String)> {
    let name = |id: &Option<String>| {
        let mut spans = trace.spans.iter();
        let parent = spans.find(|span| Some(&span.id) == id.as_ref());
        parent.map_or_else(String::new, |span| span.name.clone())
    };
    let below = trace.spans.iter().skip(2);
    below
        .map(|span| (span.name.clone(), name(&span.parent)))
        .collect()
}

fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let pair = |(name, parent): &(&str, &str)| ((*name).to_owned(), (*parent).to_owned());
    pairs.iter().map(pair).collect()
}

#[test]
fn spans_of_other_crates_stand_among_our_own() {
    listening(|| {
        let layer = Attention::new();
        // Nothing is captured yet.
        layer.forward(&ones()).expect("a forward pass");
        let (out, trace) = region(|| layer.forward(&ones()).and_then(|x| layer.forward(&x)));
        assert_eq!(
            out.expect("a forward pass").dims(),
            [4],
            "the value goes through"
        );
        let once = [
            ("attn", "region"),
            ("bridge::scaled", "attn"),
            ("softmax", "attn"),
        ];
        assert_eq!(parents(&trace), owned(&[once, once].concat()));
        let attention = &trace.spans[2];
        assert_eq!(attention.start["file"], "tests/bridge/main.rs");
        assert_eq!(attention.start["line"], LINE);
        assert!(!format!("{:?}", trace.lines).contains("a field"));
    });
}

#[test]
fn a_call_with_nothing_but_such_spans_is_a_step() {
    listening(|| {
        let span = span!(Level::INFO, "alone");
        let ((), trace) = capture(|| {
            let _region = candle_profiler::measure("lonely");
            span.in_scope(|| ());
        });
        assert_eq!(parents(&trace), owned(&[("alone", "lonely")]));
    });
}

#[test]
fn spans_that_are_left_in_another_order_do_no_harm() {
    listening(|| {
        let (first, second) = (span!(Level::INFO, "first"), span!(Level::INFO, "second"));
        let before = span!(Level::INFO, "before");
        let entered_before = before.enter();
        let mut left_after = None;
        let ((), trace) = region(|| {
            let one = first.enter();
            let two = second.enter();
            drop(one);
            drop(two);
            // The same span twice, and one that is left when the capture has ended.
            let again = first.enter();
            first.in_scope(|| ());
            drop(again);
            left_after = Some(second.enter());
        });
        drop(left_after);
        drop(entered_before);
        assert_eq!(
            parents(&trace),
            owned(&[
                ("first", "region"),
                ("second", "first"),
                ("first", "region"),
                ("first", "first"),
                ("second", "region"),
            ])
        );
        assert_eq!(trace.spans[3].end["cut"], true);
    });
}

#[test]
fn a_thread_without_a_capture_records_nothing() {
    let (out, trace) = region(|| {
        std::thread::spawn(|| listening(|| Attention::new().forward(&ones()).map(drop))).join()
    });
    out.expect("no panic").expect("a forward pass");
    assert_eq!(trace.spans.len(), 2);
}
