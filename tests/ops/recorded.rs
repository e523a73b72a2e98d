//! What is recorded of operation calls.

use candle_core::{DType, Device, Module, Result, Tensor, Var};
use candle_nn::Linear;
use candle_profiler::{profile_span, profile_step};
use serde_json::Value;
use tests::capturing::region;
use tests::trace::Trace;

fn ones(rows: usize, columns: usize) -> Tensor {
    Tensor::ones((rows, columns), DType::F32, &Device::Cpu).expect("a tensor")
}

struct Attention {
    q_proj: Linear,
    scale: Tensor,
}

impl Attention {
    fn new() -> Self {
        Self {
            q_proj: Linear::new((ones(4, 4) * 0.5).expect("a tensor"), None),
            scale: ones(1, 4),
        }
    }

    #[profile_step(forward, ops(stats))]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let q = self.q_proj.forward(x)?;
        let scores = q.relu()?.broadcast_mul(&self.scale)?;
        let mixed = (scores + x)?;
        let parts = mixed
            .chunk(2, 1)?
            .iter()
            .map(|part| part.sqr())
            .collect::<Result<Vec<_>>>()?;
        candle_nn::ops::softmax(&Tensor::cat(&parts, 1)?, 1)
    }
}

fn names(trace: &Trace) -> Vec<String> {
    let name = |op: &&Value| op["op_name"].as_str().expect("a name").to_owned();
    trace.kind("op").iter().map(name).collect()
}

fn op<'a>(trace: &'a Trace, name: &str) -> &'a Value {
    let mut named = trace
        .kind("op")
        .into_iter()
        .filter(|op| op["op_name"] == name);
    named
        .next()
        .unwrap_or_else(|| panic!("no {name} in {:?}", names(trace)))
}

#[test]
fn methods_operators_functions_and_modules_of_a_body_are_operations() {
    tests::capturing::folder();
    let attention = Attention::new();
    let x = ones(3, 4);
    let plain = attention.forward(&x).expect("a tensor");
    let (output, trace) = region(|| attention.forward(&x));
    let output = output.expect("a tensor");
    assert_eq!(
        output.to_vec2::<f32>().unwrap(),
        plain.to_vec2::<f32>().unwrap()
    );
    let expected = [
        "forward",
        "relu",
        "broadcast_mul",
        "add",
        "chunk",
        "sqr",
        "sqr",
        "cat",
        "softmax",
    ];
    // `chunk` gives two tensors, and is one call.
    assert_eq!(names(&trace), expected);
    assert_eq!(trace.meta()["capture_contract"]["operations"], "partial");
    let span = trace.named("Attention::forward")[0];
    for op in trace.kind("op") {
        assert_eq!(op["span_id"], *span.id);
        let start = op["timestamp_ns"].as_u64().expect("a start");
        let end = start + op["duration_ns"].as_u64().expect("a duration");
        assert!(span.time.0 <= start && end <= span.time.1, "{op}");
    }
    // Each is fed by what was just made, or by what has a name.
    let id = |op: &Value| op["output"].clone();
    let inputs = |op: &Value| op["inputs"].as_array().expect("inputs").clone();
    assert!(inputs(op(&trace, "broadcast_mul")).contains(&id(op(&trace, "relu"))));
    assert_eq!(inputs(op(&trace, "broadcast_mul")).len(), 2);
    assert_eq!(inputs(op(&trace, "relu")), [id(op(&trace, "forward"))]);
    assert_eq!(
        inputs(op(&trace, "forward")),
        inputs(op(&trace, "add"))[1..]
    );
    assert_eq!(inputs(op(&trace, "softmax")), [id(op(&trace, "cat"))]);
    let relu = op(&trace, "relu");
    assert_eq!(relu["shape"], serde_json::json!([3, 4]));
    assert_eq!(
        (&relu["dtype"], &relu["device"]),
        (&"f32".into(), &"cpu".into())
    );
    assert_eq!(relu["output_dense_bytes"], 48);
    assert_eq!(relu["input_dense_bytes"], 48);
    assert_eq!(op(&trace, "broadcast_mul")["input_dense_bytes"], 48 + 16);
}

#[test]
fn statistics_go_by_the_receiver_or_the_variable() {
    let attention = Attention::new();
    let (output, trace) = region(|| attention.forward(&ones(3, 4)));
    output.expect("a tensor");
    let means = trace.means();
    let found: Vec<(&str, f64)> = means
        .iter()
        .map(|(label, mean)| (label.as_str(), *mean))
        .collect();
    let expected = [
        ("q_proj", 2.0),
        ("q.relu", 2.0),
        ("scores", 2.0),
        ("mixed", 3.0),
        ("mixed.chunk", 3.0),
        ("mixed.chunk", 3.0),
        ("part.sqr", 9.0),
        ("part.sqr", 9.0),
        ("cat", 9.0),
        ("softmax", 0.25),
    ];
    assert_eq!(found, expected);
}

/// An operation inside an argument is over before the one around it starts.
#[test]
fn an_operation_starts_when_its_last_argument_is_there() {
    #[profile_span(ops)]
    fn nested(x: &Tensor) -> Result<Tensor> {
        x.matmul(&slow(x)?.exp()?)
    }
    fn slow(x: &Tensor) -> Result<Tensor> {
        std::thread::sleep(std::time::Duration::from_millis(30));
        x.neg()
    }
    let (output, trace) = region(|| nested(&ones(4, 4)));
    output.expect("a tensor");
    assert_eq!(names(&trace), ["slow", "exp", "matmul"]);
    let time = |name: &str| {
        let op = op(&trace, name);
        let start = op["timestamp_ns"].as_u64().expect("a start");
        (
            start,
            start + op["duration_ns"].as_u64().expect("a duration"),
        )
    };
    let (slow, exp, matmul) = (time("slow"), time("exp"), time("matmul"));
    assert!(
        slow.1 <= exp.0 && exp.1 <= matmul.0,
        "{slow:?} {exp:?} {matmul:?}"
    );
}

/// What a callee with spans of its own has recorded is not told of again, and is no argument of the call.
#[test]
fn results_that_are_handed_on_are_one_operation() {
    #[profile_span(ops)]
    fn outer(x: &Tensor) -> Result<Tensor> {
        let y = inner(x)?;
        let same = pass(y.clone());
        Ok(same)
    }
    #[profile_span(ops)]
    fn inner(x: &Tensor) -> Result<Tensor> {
        let y = x.exp()?;
        y.sin()
    }
    fn pass(x: Tensor) -> Tensor {
        x
    }
    let (output, trace) = region(|| outer(&ones(2, 2)));
    output.expect("a tensor");
    assert_eq!(names(&trace), ["exp", "sin"]);
}

#[test]
fn failed_calls_and_numbers_are_no_operations() {
    #[profile_span(ops(stats))]
    fn mixed(x: &Tensor) -> Result<f32> {
        let wrong = x.matmul(&ones(3, 3));
        let rows = x.dim(0)? + x.rank();
        let n = rows as f32 * 2.0;
        let negated = -n;
        Ok(match wrong {
            Ok(_) => n,
            Err(_) => negated.abs() + x.sum_all()?.to_scalar::<f32>()?,
        })
    }
    let (output, trace) = region(|| mixed(&ones(4, 4)));
    assert!((output.expect("a number") - 28.0).abs() < 1e-6);
    assert_eq!(names(&trace), ["sum_all"]);
}

#[test]
fn statements_may_ask_for_their_own_operations() {
    #[profile_span]
    fn parts(x: &Tensor) -> Result<Tensor> {
        let a = x.exp()?;
        #[profile_span(ops, name = "inside")]
        {
            a.sin()?.cos()?;
        }
        #[profile_span(ops)]
        let b = a.sqr()?;
        Ok(b)
    }
    let (output, trace) = region(|| parts(&ones(2, 2)));
    output.expect("a tensor");
    assert_eq!(names(&trace), ["sin", "cos", "sqr"]);
    assert_eq!(op(&trace, "cos")["span_id"], *trace.span("inside").id);
}

/// What a function of the body may give, and what it may not: see the README.
#[test]
fn results_of_several_tensors_are_one_operation() {
    type Three = (Tensor, Tensor, Tensor);
    fn qkv(x: &Tensor) -> Result<Three> {
        Ok((x.exp()?, x.sin()?, x.cos()?))
    }
    fn plain(x: &Tensor) -> Three {
        qkv(x).expect("tensors")
    }
    fn anyhow(x: &Tensor) -> anyhow::Result<Three> {
        Ok(qkv(x)?)
    }
    fn cached(x: &Tensor) -> Option<(Tensor, Tensor)> {
        Some((x.exp().ok()?, x.sin().ok()?))
    }
    fn own_error(x: &Tensor) -> std::result::Result<Tensor, std::num::ParseIntError> {
        Ok(x.exp().expect("a tensor"))
    }
    #[profile_span(ops(stats))]
    fn body(x: &Tensor) -> Result<()> {
        let (q, _, _) = qkv(x)?;
        let _all = plain(&q);
        let _all = anyhow(x).expect("tensors");
        let _cached = cached(x);
        let _other = own_error(x).expect("a tensor");
        Ok(())
    }
    let x = ones(2, 2);
    let (output, trace) = region(|| body(&x));
    output.expect("tensors");
    assert_eq!(names(&trace), ["qkv", "plain", "anyhow", "cached"]);
    assert_eq!(trace.kind("tensor_stats").len(), 3 + 3 + 3 + 2);
}

/// A closure over references is given references of references.
#[test]
fn operands_behind_two_references_are_inputs() {
    #[profile_span(ops)]
    fn products(w: &Tensor, a: &Tensor, b: &Tensor) -> Result<Vec<Tensor>> {
        [a, b].iter().map(|p| w.matmul(p)).collect()
    }
    let (w, a, b) = (ones(4, 4), ones(4, 2), ones(4, 3));
    let (output, trace) = region(|| products(&w, &a, &b));
    output.expect("tensors");
    let bytes: Vec<&Value> = trace
        .kind("op")
        .into_iter()
        .filter(|op| op["op_name"] == "matmul")
        .map(|op| &op["input_dense_bytes"])
        .collect();
    assert_eq!(bytes, [64 + 32, 64 + 48]);
}

/// The gradient of a body with `ops` is the gradient without, bit by bit.
#[test]
fn gradients_are_the_same() -> Result<()> {
    let weight = Var::from_tensor(&Tensor::arange(0f32, 16.0, &Device::Cpu)?.reshape((4, 4))?)?;
    let gradient = || -> Result<Vec<Vec<f32>>> {
        let attention = Attention {
            q_proj: Linear::new(weight.as_tensor().clone(), None),
            scale: ones(1, 4),
        };
        let loss = attention.forward(&ones(3, 4))?.sqr()?.sum_all()?;
        loss.backward()?.get(&weight).expect("a gradient").to_vec2()
    };
    tests::capturing::folder();
    let plain = gradient()?;
    let (recorded, trace) = region(gradient);
    assert!(!trace.kind("op").is_empty());
    assert_eq!(recorded?, plain);
    Ok(())
}

/// The published reader ranks them by time and by bytes.
#[test]
fn the_judge_ranks_the_activations() {
    let attention = Attention::new();
    let (output, trace) = region(|| attention.forward(&ones(3, 4)));
    output.expect("a tensor");
    let lines: Vec<String> = trace.lines.iter().map(ToString::to_string).collect();
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), lines.join("\n") + "\n").expect("room");
    let evidence = candle_graph::build_evidence(file.path(), None).expect("evidence");
    let ranked = &evidence.activations.operations;
    assert_eq!(ranked.len(), 9);
    assert!(ranked.iter().all(|op| op.dense_output_bytes.is_some()));
    assert!(ranked.iter().any(|op| op.name == "softmax"));
}
