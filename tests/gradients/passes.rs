//! Several backward passes in one step: each has its norms, and none is added to another's.

use std::collections::{BTreeMap, BTreeSet};

use candle_core::backprop::GradStore;
use candle_core::{DType, Device, Module, Result, Tensor, Var};
use candle_nn::{Linear, VarBuilder, VarMap};
use candle_profiler::{backward, name_vars, record_gradients};
use serde_json::Value;
use tests::capturing::region;
use tests::trace::Trace;

struct Net {
    vars: VarMap,
    a: Linear,
    b: Linear,
}

impl Net {
    /// A net whose numbers are known, and differ from those of another seed.
    fn new(name: &str, seed: f64) -> Result<Self> {
        let vars = VarMap::new();
        let vb = VarBuilder::from_varmap(&vars, DType::F32, &Device::Cpu);
        let a = candle_nn::linear(4, 6, vb.pp("a"))?;
        let b = candle_nn::linear(6, 4, vb.pp("b"))?;
        let named = vars.data().lock().expect("the map").clone();
        let mut named: Vec<(String, Var)> = named.into_iter().collect();
        named.sort_by(|(a, _), (b, _)| a.cmp(b));
        for (order, (_, var)) in named.iter().enumerate() {
            var.set(&wave(var.dims(), seed + order as f64)?)?;
        }
        name_vars(name, vars.data());
        Ok(Self { vars, a, b })
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.b.forward(&self.a.forward(x)?.tanh()?)
    }
}

fn wave(dims: &[usize], seed: f64) -> Result<Tensor> {
    let count: usize = dims.iter().product();
    let numbers: Vec<f32> = (0..count)
        .map(|at| ((at as f64 * 1.7 + seed * 0.9).sin() * 0.8) as f32)
        .collect();
    Tensor::from_vec(numbers, dims, &Device::Cpu)
}

/// The norm of the gradients of these nets in a store, in f64 and with nothing of the profiler's.
fn norm(nets: &[&Net], grads: &GradStore) -> f64 {
    let mut sum = 0.0;
    for var in nets.iter().flat_map(|net| net.vars.all_vars()) {
        let Some(gradient) = grads.get(&var) else {
            continue;
        };
        let flat = gradient
            .flatten_all()
            .and_then(|flat| flat.to_vec1::<f32>());
        let numbers = flat.expect("its numbers").into_iter();
        sum += numbers.map(|number| f64::from(number).powi(2)).sum::<f64>();
    }
    sum.sqrt()
}

fn of_root<'t>(trace: &'t Trace, root: &str) -> Vec<&'t Value> {
    let all = trace.kind("gradient").into_iter();
    all.filter(|gradient| gradient["root"] == root).collect()
}

/// The norm of each pass of a root, by the events of the trace alone.
fn norms(trace: &Trace, root: &str) -> Vec<f64> {
    let mut squares: BTreeMap<u64, f64> = BTreeMap::new();
    for gradient in of_root(trace, root) {
        let pass = gradient["pass"].as_u64().unwrap_or(1);
        let norm = gradient["norm"].as_f64().unwrap_or(0.0);
        *squares.entry(pass).or_default() += norm * norm;
    }
    let numbers: Vec<u64> = squares.keys().copied().collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    squares.into_values().map(f64::sqrt).collect()
}

fn near(found: &[f64], own: &[f64]) {
    let all = found.iter().zip(own);
    let near =
        found.len() == own.len() && { all }.all(|(found, own)| (found / own - 1.0).abs() < 1e-6);
    assert!(near, "{found:?}, should be {own:?}");
}

/// The summary of the trace, its lines joined where they are wrapped.
fn summary(trace: &Trace) -> String {
    let lines = trace.lines.iter().map(|line| format!("{line}\n"));
    let text: String = lines.collect();
    candle_profiler::view::summary_text(text.as_bytes(), 200).expect("a trace")
}

/// The line of a root under `gradients`, and the two norms at its end.
fn line(text: &str, root: &str) -> (String, Vec<f64>) {
    let start = format!("  {root}: ");
    let line = text.lines().find(|line| line.starts_with(&start));
    let line = line.unwrap_or_else(|| panic!("{root} in\n{text}")).trim();
    let (said, range) = line.rsplit_once(" norms ").unwrap_or((line, ""));
    let ends = range.split(" … ").filter_map(|end| end.parse().ok());
    (said.to_owned(), ends.collect())
}

/// What a person can read of a range with four digits.
fn is_range(ends: &[f64], own: &[f64]) {
    let least = own.iter().copied().fold(f64::INFINITY, f64::min);
    let most = own.iter().copied().fold(0.0, f64::max);
    let same = |end: f64, own: f64| (end / own - 1.0).abs() < 1e-3;
    let [from, to] = ends else {
        panic!("{ends:?} is no range");
    };
    assert!(same(*from, least) && same(*to, most), "{ends:?} of {own:?}");
}

#[record_gradients(root = "accumulated")]
fn apply(grads: &GradStore) -> usize {
    grads.get_ids().count()
}

#[test]
fn micro_batches_have_a_norm_each_and_their_sum_one_of_its_own() {
    let net = Net::new("accum", 0.0).expect("a net");
    let mut own = Vec::new();
    let mut sum_norm = 0.0;
    let (ran, trace) = region(|| -> Result<()> {
        let mut sum: Option<GradStore> = None;
        for batch in 0..4 {
            let x = wave(&[3, 4], f64::from(batch) * 3.3)?;
            let grads = backward(&(net.forward(&x)?.sqr()?.mean_all()? / 4.0)?)?;
            own.push(norm(&[&net], &grads));
            sum = Some(match sum {
                None => grads,
                Some(mut sum) => {
                    for var in net.vars.all_vars() {
                        let both = (sum.get(&var).expect("one") + grads.get(&var).expect("one"))?;
                        sum.insert(&var, both);
                    }
                    sum
                }
            });
        }
        let sum = sum.expect("a store");
        sum_norm = norm(&[&net], &sum);
        apply(&sum);
        Ok(())
    });
    ran.expect("gradients");
    near(&norms(&trace, "loss"), &own);
    near(&norms(&trace, "accumulated"), &[sum_norm]);
    assert!(
        of_root(&trace, "accumulated")
            .iter()
            .all(|one| one["pass"].is_null())
    );

    let text = summary(&trace);
    let (said, ends) = line(&text, "loss");
    assert_eq!(said, "loss: 4 variables, 4 present, 4 passes,");
    is_range(&ends, &own);
    let (said, _) = line(&text, "accumulated");
    assert!(
        said.starts_with("accumulated: 4 variables, 4 present, global norm "),
        "{said}"
    );
    // The rows of the norms say it once.
    assert!(text.contains(" (4 passes)\n"), "{text}");
    assert!(!text.contains("loss/grad_norm "), "{text}");
}

#[test]
fn two_losses_of_one_step_keep_their_families_and_their_norms() {
    let (maker, critic) = (
        Net::new("maker", 1.0).expect("a net"),
        Net::new("critic", 2.0).expect("a net"),
    );
    let mut own = Vec::new();
    let (ran, trace) = region(|| -> Result<()> {
        let made = maker.forward(&wave(&[3, 4], 5.0)?)?;
        let of_critic = critic.forward(&made.detach())?.sqr()?.mean_all()?;
        own.push(norm(&[&critic], &backward(&of_critic)?));
        let of_maker = critic.forward(&made)?.exp()?.mean_all()?;
        own.push(norm(&[&critic, &maker], &backward(&of_maker)?));
        Ok(())
    });
    ran.expect("gradients");
    near(&norms(&trace, "loss"), &own);
    let mut families: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for gradient in of_root(&trace, "loss") {
        let key = gradient["key"].as_str().expect("a key");
        let family = gradient["family"].as_str().expect("a family");
        families.entry(key).or_default().insert(family);
    }
    assert_eq!(families.len(), 8);
    for (key, families) in families {
        let whole = key.rsplit_once('.').expect("a dot").0;
        assert_eq!(families, BTreeSet::from([whole]), "{key}");
    }
    let (said, ends) = line(&summary(&trace), "loss");
    assert_eq!(said, "loss: 8 variables, 8 present, 2 passes,");
    is_range(&ends, &own);
}

/// Each of four threads differentiates on its own, and then this one a loss that does not reach all variables.
#[test]
fn passes_of_several_threads_are_not_mixed_up() {
    let net = Net::new("shard", 3.0).expect("a net");
    let mut own = Vec::new();
    let (ran, trace) = region(|| -> Result<()> {
        let handle = candle_profiler::current();
        let shard = |seed: f64| -> Result<f64> {
            let _entered = handle.enter();
            let loss = net.forward(&wave(&[3, 4], seed)?)?.sqr()?.mean_all()?;
            Ok(norm(&[&net], &backward(&loss)?))
        };
        own = std::thread::scope(|scope| {
            let shards = [1.5, 2.5, 3.5, 4.5].map(|seed| scope.spawn(move || shard(seed)));
            let ends = shards
                .into_iter()
                .map(|shard| shard.join().expect("no panic"));
            ends.collect::<Result<Vec<_>>>()
        })?;
        let half = backward(&net.a.forward(&wave(&[3, 4], 9.0)?)?.sqr()?.mean_all()?)?;
        assert!(half.get(net.b.weight()).is_none());
        own.push(norm(&[&net], &half));
        Ok(())
    });
    ran.expect("gradients");
    let mut found = norms(&trace, "loss");
    found.sort_by(f64::total_cmp);
    own.sort_by(f64::total_cmp);
    near(&found, &own);
    let (said, _) = line(&summary(&trace), "loss");
    assert_eq!(said, "loss: 4 variables, 4 present, 5 passes,");
}

#[record_gradients(root = "meta")]
fn given(grads: &GradStore) -> usize {
    grads.get_ids().count()
}

/// First-order meta learning: the gradient of a copy becomes that of the variable that the optimizer holds.
#[test]
fn a_gradient_that_is_put_in_for_another_variable_is_that_variables() {
    let slow = Var::from_tensor(&wave(&[4, 4], 7.0).expect("numbers")).expect("a variable");
    name_vars("meta", [("w", &slow)]);
    let mut own = 0.0;
    let (ran, trace) = region(|| -> Result<()> {
        let fast = Var::from_tensor(&slow.as_detached_tensor().copy()?)?;
        let x = wave(&[3, 4], 8.0)?;
        let mut grads = backward(&x.matmul(&fast)?.sqr()?.mean_all()?)?;
        let gradient = grads.remove(&fast).expect("a gradient");
        let numbers = gradient.flatten_all()?.to_vec1::<f32>()?.into_iter();
        own = numbers
            .map(|number| f64::from(number).powi(2))
            .sum::<f64>()
            .sqrt();
        grads.insert(&slow, gradient);
        given(&grads);
        Ok(())
    });
    ran.expect("gradients");
    let keys: Vec<&Value> = of_root(&trace, "meta")
        .iter()
        .map(|one| &one["key"])
        .collect();
    assert_eq!(keys, ["meta.w"]);
    near(&norms(&trace, "meta"), &[own]);
}

/// Experts that take turns: the last loss reaches one of them, the accumulated store holds the gradients of both.
#[test]
fn an_accumulated_store_is_read_beyond_what_the_last_loss_reached() {
    let (one, two) = (
        Var::from_tensor(&wave(&[4], 1.0).expect("numbers")).expect("a variable"),
        Var::from_tensor(&wave(&[4], 2.0).expect("numbers")).expect("a variable"),
    );
    name_vars("experts", [("one", &one), ("two", &two)]);
    let (ran, trace) = region(|| -> Result<()> {
        let mut sum = backward(&one.sqr()?.sum_all()?)?;
        let grads = backward(&two.sqr()?.sum_all()?)?;
        sum.insert(&two, grads.get(&two).expect("a gradient").clone());
        given(&sum);
        Ok(())
    });
    ran.expect("gradients");
    let states: Vec<&Value> = of_root(&trace, "meta")
        .iter()
        .map(|one| &one["state"])
        .collect();
    assert_eq!(states, ["present", "present"]);
    let text = summary(&trace);
    let (said, _) = line(&text, "loss");
    assert_eq!(said, "loss: 2 variables, 2 present, 2 passes,");
    assert!(!text.contains("missing"), "{text}");
}
