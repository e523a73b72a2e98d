//! `#[derive(Observe)]` and `#[derive(ObserveScalar)]`.

use std::marker::PhantomData;

use candle_core::{DType, Device, Tensor};
use candle_profiler::{Observe, ObserveExt, ObserveScalar, record_scalar, record_stats};
use tests::capturing::region;

fn tensor(value: f32) -> Tensor {
    Tensor::full(value, 2, &Device::Cpu).expect("a tensor")
}

#[derive(Observe)]
struct Output {
    logits: Tensor,
    r#type: Option<Tensor>,
    #[observe(skip)]
    _tokens: Vec<u32>,
    layers: Vec<Pair>,
}

#[derive(Observe)]
struct Pair(
    Tensor,
    #[observe(skip)]
    #[allow(dead_code)]
    &'static str,
    Tensor,
);

#[derive(Observe)]
struct Generic<'a, T, U: Clone, const N: usize>
where
    U: Default,
{
    items: [T; N],
    borrowed: &'a T,
    #[observe(skip)]
    _kind: PhantomData<U>,
}

trait Layer {
    type Output;
}

struct Attention;

impl Layer for Attention {
    type Output = Tensor;
}

#[derive(Observe)]
struct OfLayer<L: Layer> {
    output: L::Output,
}

#[derive(Observe)]
enum Step {
    Nothing,
    Forward(Tensor),
    Both { hidden: Tensor, mask: Tensor },
}

#[derive(Observe)]
enum Never {}

#[derive(Observe, ObserveScalar)]
struct Unit;

#[derive(ObserveScalar)]
struct Losses {
    total: f64,
    parts: (f32, Part),
    #[observe(skip)]
    _name: &'static str,
}

#[derive(ObserveScalar)]
enum Part {
    Tensor(Tensor),
    #[allow(dead_code)]
    Count {
        n: u32,
    },
}

#[derive(Observe)]
#[observe(crate = ::candle_profiler)]
struct Elsewhere {
    x: Tensor,
}

fn labels(work: impl FnOnce()) -> Vec<(String, f64)> {
    region(work).1.means()
}

#[test]
fn fields_are_parts_under_their_names() {
    let output = Output {
        logits: tensor(1.0),
        r#type: Some(tensor(2.0)),
        _tokens: vec![1],
        layers: vec![Pair(tensor(3.0), "skipped", tensor(4.0))],
    };
    let found = labels(|| record_stats("out", &output));
    let expected = [
        ("out/logits", 1.0),
        ("out/type", 2.0),
        ("out/layers/0/0", 3.0),
        ("out/layers/0/2", 4.0),
    ];
    assert_eq!(
        found,
        expected.map(|(label, mean)| (label.to_owned(), mean))
    );
}

#[test]
fn generics_keep_their_bounds() {
    let x = tensor(7.0);
    let generic = Generic::<'_, Tensor, String, 2> {
        items: [tensor(5.0), tensor(6.0)],
        borrowed: &x,
        _kind: PhantomData,
    };
    let found = labels(|| {
        record_stats("g", &generic);
        record_stats(
            "l",
            &OfLayer::<Attention> {
                output: tensor(8.0),
            },
        );
        record_stats("e", &Elsewhere { x: tensor(9.0) });
        record_stats("n", &None::<Never>);
        record_stats("u", &Unit);
        record_scalar("u", &Unit);
    });
    let expected = [
        ("g/items/0", 5.0),
        ("g/items/1", 6.0),
        ("g/borrowed", 7.0),
        ("l/output", 8.0),
        ("e/x", 9.0),
    ];
    assert_eq!(
        found,
        expected.map(|(label, mean)| (label.to_owned(), mean))
    );
}

#[test]
fn of_an_enum_the_variant_s_fields() {
    let found = labels(|| {
        record_stats("s", &Step::Nothing);
        record_stats("s", &Step::Forward(tensor(1.0)));
        let both = Step::Both {
            hidden: tensor(2.0),
            mask: tensor(3.0),
        };
        record_stats("s", &both);
    });
    let expected = [("s/0", 1.0), ("s/hidden", 2.0), ("s/mask", 3.0)];
    assert_eq!(
        found,
        expected.map(|(label, mean)| (label.to_owned(), mean))
    );
}

#[test]
fn numbers_of_a_struct_are_each_recorded() {
    let one = Tensor::zeros((), DType::F32, &Device::Cpu).expect("a tensor");
    let losses = Losses {
        total: 1.5,
        parts: (0.5, Part::Tensor(one)),
        _name: "x",
    };
    let found = labels(|| record_scalar("loss", &losses));
    let expected = [
        ("loss/total", 1.5),
        ("loss/parts/0", 0.5),
        ("loss/parts/1/0", 0.0),
    ];
    assert_eq!(
        found,
        expected.map(|(label, mean)| (label.to_owned(), mean))
    );
}

/// The derive brings the trait of its name along, beside the one for tensors in a chain.
#[test]
fn both_traits_may_be_in_scope() {
    let (seen, trace) = region(|| -> candle_core::Result<()> {
        let x = &tensor(1.0);
        x.observe("borrowed");
        tensor(2.0).observe("owned");
        tensor(3.0).exp().observe("result")?;
        record_stats("derived", &Pair(tensor(4.0), "", tensor(5.0)));
        Ok(())
    });
    seen.expect("tensors");
    let labels: Vec<String> = trace.means().into_iter().map(|(label, _)| label).collect();
    assert_eq!(
        labels,
        ["borrowed", "owned", "result", "derived/0", "derived/2"]
    );
}
