//! `profiled` and `.observe`.

use candle_core::{DType, Device, Module, ModuleT, Result, Tensor, Var};
use candle_nn::{BatchNorm, Dropout, Linear, VarBuilder, VarMap, func, seq};
use candle_profiler::{ByMode, ObserveExt, Profiled, measure, profiled};
use tests::capturing::{captures, region};

fn linear(inputs: usize, outputs: usize) -> Result<Linear> {
    let weight = Tensor::full(0.5f32, (outputs, inputs), &Device::Cpu)?;
    Ok(Linear::new(weight, None))
}

fn ones() -> Tensor {
    Tensor::ones((3, 4), DType::F32, &Device::Cpu).expect("a tensor")
}

#[test]
fn a_sequential_of_wrapped_modules_is_a_tree_of_spans() -> Result<()> {
    let inner = seq()
        .add(profiled("fc1", linear(4, 4)?))
        .add(func(|x| x.affine(2.0, 0.0)));
    let model = profiled(
        "model",
        seq()
            .add(profiled("block", inner))
            .add(profiled("fc2", linear(4, 2)?)),
    );
    let plain = seq()
        .add(linear(4, 4)?)
        .add(func(|x| x.affine(2.0, 0.0)))
        .add(linear(4, 2)?);
    let (output, trace) = region(|| model.forward(&ones()));
    assert_eq!(
        output?.to_vec2::<f32>()?,
        plain.forward(&ones())?.to_vec2::<f32>()?
    );
    let model = trace.span("model");
    let block = trace.span("block");
    assert_eq!(model.parent.as_ref(), Some(&trace.measured().id));
    assert_eq!(block.parent.as_ref(), Some(&model.id));
    assert_eq!(trace.span("fc1").parent.as_ref(), Some(&block.id));
    assert_eq!(trace.span("fc2").parent.as_ref(), Some(&model.id));
    for name in ["model", "block", "fc1", "fc2"] {
        assert_eq!(trace.span(name).start["span_kind"], "module");
        assert!(
            trace.span(name).start["file"]
                .as_str()
                .is_some_and(|file| file.ends_with("modules.rs"))
        );
    }
    let expected = [("fc1", 2.0), ("block", 4.0), ("fc2", 8.0), ("model", 8.0)];
    let found = trace.means();
    assert_eq!(found, expected.map(|(name, mean)| (name.to_owned(), mean)));
    // Each statistic belongs to its own span.
    for line in trace.kind("tensor_stats") {
        let label = line["label"].as_str().expect("a label");
        assert_eq!(line["span_id"], trace.span(label).id);
    }
    Ok(())
}

/// A field's type needs no second parameter for a `Module`.
struct Model {
    fc: Profiled<Linear>,
    norm: Profiled<BatchNorm, ByMode>,
    dropout: Profiled<Dropout, ByMode>,
}

impl Model {
    fn new() -> Result<(Self, VarMap)> {
        let vars = VarMap::new();
        let builder = VarBuilder::from_varmap(&vars, DType::F32, &Device::Cpu);
        let norm = candle_nn::batch_norm(4, 1e-5, builder.pp("norm"))?;
        let model = Self {
            fc: profiled("fc", linear(4, 4)?),
            norm: profiled("norm", norm),
            dropout: profiled("dropout", Dropout::new(0.5)),
        };
        Ok((model, vars))
    }
}

impl ModuleT for Model {
    fn forward_t(&self, xs: &Tensor, train: bool) -> Result<Tensor> {
        let x = xs.apply(&self.fc)?;
        let x = self.norm.forward_t(&x, train)?;
        x.apply_t(&self.dropout, train)
    }
}

#[test]
fn modules_that_are_told_the_mode_are_wrapped_too() -> Result<()> {
    let (model, _vars) = Model::new()?;
    let model = boxed(profiled("whole", model));
    let (output, trace) = region(|| model.forward_t(&ones(), false));
    // In evaluation the norm scales by its running statistics, mean 0 and variance 1, and nothing is dropped.
    let mean = output?.mean_all()?.to_scalar::<f32>()?;
    assert!((mean - 2.0).abs() < 1e-4, "{mean}");
    let whole = &trace.span("whole").id;
    for name in ["fc", "norm", "dropout"] {
        assert_eq!(trace.span(name).parent.as_ref(), Some(whole), "{name}");
    }
    let (output, _trace) = region(|| model.forward_t(&ones(), true));
    let mean = output?.mean_all()?.to_scalar::<f32>()?;
    assert!(
        mean.abs() < 1e-2,
        "the batch's own mean is taken off: {mean}"
    );
    Ok(())
}

/// Code that takes any `ModuleT`.
fn boxed(model: impl ModuleT + 'static) -> Box<dyn ModuleT> {
    Box::new(model)
}

#[test]
fn a_wrapper_is_its_module() -> Result<()> {
    let mut wrapped: Profiled<Linear> = profiled("fc", linear(4, 2)?);
    assert_eq!(wrapped.weight().dims(), [2, 4]);
    *wrapped = linear(4, 3)?;
    let copy = wrapped.clone();
    assert_eq!(format!("{copy:?}"), format!("{:?}", *copy));
    assert_eq!(copy.into_inner().weight().dims(), [3, 4]);
    // An error passes through and records nothing.
    let wrong = Tensor::ones((3, 5), DType::F32, &Device::Cpu)?;
    let (output, trace) = region(|| wrapped.forward(&wrong));
    assert!(output.is_err());
    trace.span("fc");
    assert_eq!(trace.kind("tensor_stats").len(), 0);
    Ok(())
}

#[test]
fn names_are_each_wrapper_s_own() -> Result<()> {
    let layers = (0..3)
        .map(|layer| Ok(profiled(format!("layer {layer}"), linear(4, 4)?)))
        .collect::<Result<Vec<_>>>()?;
    let (output, trace) = region(|| layers.iter().try_fold(ones(), |x, layer| layer.forward(&x)));
    output?;
    let names: Vec<&str> = trace.spans.iter().skip(2).map(|span| &*span.name).collect();
    assert_eq!(names, ["layer 0", "layer 1", "layer 2"]);
    Ok(())
}

#[test]
fn a_chain_is_looked_at_and_goes_on() -> Result<()> {
    let (output, trace) = region(|| -> Result<Tensor> {
        let x = ones();
        let x = x.affine(3.0, 0.0).observe("tripled")?.observe("again");
        (&x).observe("by reference");
        x.matmul(&x).observe("wrong").or_else(|_| x.sum_all())
    });
    assert_eq!(output?.to_scalar::<f32>()?, 36.0);
    let labels: Vec<String> = trace.means().into_iter().map(|(label, _)| label).collect();
    assert_eq!(labels, ["tripled", "again", "by reference"]);
    let measured = &trace.measured().id;
    assert!(
        trace
            .kind("tensor_stats")
            .iter()
            .all(|line| line["span_id"] == **measured)
    );
    Ok(())
}

#[test]
fn training_through_wrappers_is_the_same() -> Result<()> {
    fn gradient(wrap: bool) -> Result<Vec<f32>> {
        let weight = Var::from_tensor(&Tensor::arange(0f32, 8.0, &Device::Cpu)?.reshape((2, 4))?)?;
        let layer = Linear::new(weight.as_tensor().clone(), None);
        let _measured = wrap.then(|| measure("training"));
        let loss = match wrap {
            true => profiled("fc", layer).forward(&ones())?.sqr()?.sum_all()?,
            false => layer.forward(&ones())?.sqr()?.sum_all()?,
        };
        let grads = loss.backward()?;
        grads
            .get(&weight)
            .expect("a gradient")
            .flatten_all()?
            .to_vec1()
    }
    let (wrapped, traces) = captures(|| gradient(true));
    assert_eq!(traces.len(), 1);
    assert_eq!(wrapped?, gradient(false)?);
    Ok(())
}
