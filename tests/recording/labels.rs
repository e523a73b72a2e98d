//! Records: which values hold tensors or numbers, and what their parts are called.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::Arc;

use candle_core::{Device, Result, Tensor, Var};
use candle_profiler::{profile_span, record_scalar, record_stats};
use serde_json::json;
use tests::capturing::region;

fn tensor(numbers: &[f32]) -> Tensor {
    Tensor::new(numbers, &Device::Cpu).expect("a tensor")
}

#[record_stats("option")]
fn option(some: bool) -> Option<Tensor> {
    some.then(|| tensor(&[1.0]))
}

#[record_stats("result")]
fn result(good: bool) -> std::result::Result<Tensor, String> {
    if good {
        Ok(tensor(&[1.0]))
    } else {
        Err("no".to_owned())
    }
}

#[record_stats("pair")]
fn pair() -> (Tensor, Tensor) {
    (tensor(&[1.0]), tensor(&[2.0, 2.0]))
}

#[record_stats(list)]
fn list() -> Vec<Tensor> {
    vec![tensor(&[1.0]), tensor(&[2.0])]
}

#[record_stats("map")]
fn map() -> BTreeMap<&'static str, Tensor> {
    BTreeMap::from([("b", tensor(&[2.0])), ("a", tensor(&[1.0]))])
}

#[record_stats("hashed")]
fn hashed() -> HashMap<u32, (Tensor, Option<Tensor>)> {
    HashMap::from([
        (10, (tensor(&[1.0]), None)),
        (9, (tensor(&[1.0]), Some(tensor(&[3.0])))),
    ])
}

#[record_stats("boxed")]
fn boxed() -> (Box<Tensor>, Rc<Tensor>, Arc<[Tensor; 2]>, Var) {
    let array = Arc::new([tensor(&[1.0]), tensor(&[2.0])]);
    let variable = Var::from_tensor(&tensor(&[5.0])).expect("a variable");
    (
        Box::new(tensor(&[1.0])),
        Rc::new(tensor(&[1.0])),
        array,
        variable,
    )
}

#[record_stats]
fn unlabelled() -> Tensor {
    tensor(&[1.0])
}

#[test]
fn parts_of_a_value_have_their_own_labels() {
    let ((), trace) = region(|| {
        for good in [true, false] {
            drop((option(good), result(good)));
        }
        drop((pair(), list(), map(), hashed(), boxed(), unlabelled()));
    });
    assert_eq!(
        trace.labels(),
        [
            "option",
            "result",
            "pair/0",
            "pair/1",
            "list/0",
            "list/1",
            "map/a",
            "map/b",
            "hashed/10/0",
            "hashed/9/0",
            "hashed/9/1",
            "boxed/0",
            "boxed/1",
            "boxed/2/0",
            "boxed/2/1",
            "boxed/3",
            "recording::labels::unlabelled",
        ]
    );
    assert_eq!(trace.stats("pair/1")["rms"], 2.0);
    assert_eq!(trace.stats("hashed/9/1")["mean"], 3.0);
    let tensors = trace.kind("tensor");
    assert_eq!(tensors.len(), trace.labels().len(), "each has its tensor");
    let variable = tensors
        .iter()
        .find(|tensor| tensor["label"] == "boxed/3")
        .expect("the variable");
    assert_eq!(
        (&variable["category"], &variable["requires_grad"]),
        (&json!("parameter"), &json!(true))
    );
}

#[profile_span]
fn statements(#[record_stats] x: &Tensor, #[record_scalar("rate")] rate: f64) -> Result<Tensor> {
    #[record_stats]
    let doubled = (x * 2.0)?;
    #[record_stats("pair of {rate}")]
    let (a, b) = (doubled.clone(), x.clone());
    let sum: Tensor;
    #[record_stats("sum")]
    {
        sum = (a + b)?;
        sum.clone()
    };
    #[record_scalar("elements")]
    let n = sum.elem_count();
    assert_eq!(n, 2);
    Ok(sum)
}

#[test]
fn parameters_and_statements_are_recorded_where_they_stand() {
    let (sum, trace) = region(|| statements(&tensor(&[1.0, 2.0]), 0.5));
    assert_eq!(
        sum.and_then(|sum| sum.to_vec1::<f32>()).expect("numbers"),
        [3.0, 6.0]
    );
    assert_eq!(
        trace.tree(),
        "region*\n  \
           recording::labels::statements\n    \
             = x\n    = rate\n    = doubled\n    = pair of 0.5/0\n    = pair of 0.5/1\n    = sum\n    = elements\n"
    );
    assert_eq!(trace.stats("doubled")["mean"], 3.0);
    assert_eq!(trace.stats("elements")["mean"], 2.0);
    assert_eq!(trace.stats("rate")["mean"], 0.5);
}

#[record_scalar("int")]
fn int() -> i8 {
    -3
}

#[record_scalar("zero-d")]
fn zero_d() -> Result<Tensor> {
    Tensor::new(0.25_f32, &Device::Cpu)
}

#[record_scalar("two")]
fn two() -> (f32, Option<u64>, std::result::Result<i32, String>) {
    (1.5, Some(7), Err(String::new()))
}

#[record_scalar("lost")]
fn lost() -> f64 {
    f64::NAN
}

#[test]
fn numbers_of_all_kinds_are_scalars() {
    let ((), trace) = region(|| {
        int();
        zero_d().expect("a tensor");
        let _ = two();
        lost();
        candle_profiler::record_scalar("free", &9_u8);
    });
    let means: Vec<(&str, f64)> = trace
        .kind("tensor_stats")
        .into_iter()
        .filter_map(|stats| Some((stats["label"].as_str()?, stats["mean"].as_f64()?)))
        .collect();
    assert_eq!(
        means,
        [
            ("int", -3.0),
            ("zero-d", 0.25),
            ("two/0", 1.5),
            ("two/1", 7.0),
            ("lost", 0.0),
            ("free", 9.0)
        ]
    );
    assert_eq!(trace.stats("lost")["non_finite"], 1);
    assert_eq!(trace.stats("int")["shape"], json!([]));
}

struct Block {
    name: &'static str,
}

impl Block {
    #[record_stats("{self.name}/{n:02}/{#}")]
    fn out(&self, n: u32) -> Tensor {
        tensor(&[1.0])
    }
}

#[test]
fn labels_are_built_like_names() {
    let ((), trace) = region(|| {
        let block = Block { name: "b" };
        drop((block.out(7), block.out(8)));
    });
    assert_eq!(trace.labels(), ["b/07/0", "b/08/1"]);
}

#[record_stats("first")]
#[profile_span(name = "many")]
#[record_scalar("second")]
#[record_stats("third")]
fn many() -> Tensor {
    Tensor::new(4.0_f32, &Device::Cpu).expect("a tensor")
}

#[profile_span(name = "last")]
#[record_stats("a")]
#[record_scalar("b")]
fn last() -> Tensor {
    Tensor::new(4.0_f32, &Device::Cpu).expect("a tensor")
}

#[test]
fn attributes_in_any_order_give_one_span_and_one_record_each() {
    let ((), trace) = region(|| drop((many(), last())));
    assert_eq!(
        trace.tree(),
        "region*\n  many\n    = first\n    = second\n    = third\n  last\n    = a\n    = b\n"
    );
}
