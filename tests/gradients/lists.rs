//! Where the names of variables come from.

use std::collections::{BTreeMap, HashMap};

use candle_core::backprop::GradStore;
use candle_core::{DType, Device, Module, Result, Tensor, Var};
use candle_nn::{Optimizer, SGD, VarBuilder, VarMap};
use candle_profiler::{backward, name_vars, profile_step, record_gradients};
use tests::capturing::region;

use crate::{extra, gradients, keys, var, weighed};

struct Model {
    first: candle_nn::Linear,
    norm: candle_nn::BatchNorm,
    last: candle_nn::Linear,
}

fn model(vars: &VarMap) -> Result<Model> {
    let vb = VarBuilder::from_varmap(vars, DType::F32, &Device::Cpu);
    Ok(Model {
        first: candle_nn::linear(4, 4, vb.pp("first"))?,
        norm: candle_nn::batch_norm(4, 1e-5, vb.pp("norm"))?,
        last: candle_nn::linear(4, 1, vb.pp("last"))?,
    })
}

fn loss(model: &Model) -> Result<Tensor> {
    let x = Tensor::arange(0f32, 12.0, &Device::Cpu)?
        .reshape((3, 4))?
        .sin()?;
    let hidden = candle_core::ModuleT::forward_t(&model.norm, &model.first.forward(&x)?, true);
    model.last.forward(&hidden?)?.sqr()?.mean_all()
}

const ALL: [&str; 8] = [
    "first.bias",
    "first.weight",
    "last.bias",
    "last.weight",
    "norm.bias",
    "norm.running_mean",
    "norm.running_var",
    "norm.weight",
];

#[record_gradients(vars = vars, frozen = "first, nothing", root = "map")]
fn of_map(loss: &Tensor, vars: &VarMap) -> Result<GradStore> {
    let mut grads = loss.backward()?;
    for (name, var) in vars.data().lock().expect("the map").iter() {
        if name.starts_with("first") {
            grads.remove(var);
        }
    }
    Ok(grads)
}

#[test]
fn a_map_is_listed_by_its_names_with_buffers_and_frozen_ones_explained() {
    let vars = VarMap::new();
    let model = model(&vars).expect("a model");
    let (ran, trace) = region(|| of_map(&loss(&model)?, &vars).map(drop));
    ran.expect("gradients");
    assert_eq!(keys(&trace, "map"), ALL);
    let missing: Vec<(String, String)> = gradients(&trace, "map")
        .into_iter()
        .filter(|(_, state, _)| state == "missing")
        .map(|(key, _, _)| {
            let reason = extra(&trace, &key, "reason").expect("a reason");
            (key, reason)
        })
        .collect();
    let expected = [
        ("first.bias", "frozen"),
        ("first.weight", "frozen"),
        ("norm.running_mean", "buffer"),
        ("norm.running_var", "buffer"),
    ];
    assert_eq!(
        missing,
        expected.map(|(key, reason)| (key.to_owned(), reason.to_owned()))
    );
    assert_eq!(
        extra(&trace, "last.weight", "family").as_deref(),
        Some("last")
    );
    for family in ["last", "norm"] {
        assert!(crate::number(&trace, &format!("map/grad_norm/{family}")) > 0.0);
    }
}

#[test]
fn only_some_names_are_recorded_where_that_is_asked() {
    #[record_gradients(vars = vars, only = "last,norm.weight", root = "some")]
    fn some(loss: &Tensor, vars: &VarMap) -> Result<GradStore> {
        loss.backward()
    }
    let vars = VarMap::new();
    let model = model(&vars).expect("a model");
    let (ran, trace) = region(|| some(&loss(&model)?, &vars).map(drop));
    ran.expect("gradients");
    assert_eq!(
        keys(&trace, "some"),
        ["last.bias", "last.weight", "norm.weight"]
    );
}

#[test]
fn a_map_that_the_program_holds_locked_blocks_nobody() {
    let vars = VarMap::new();
    let model = model(&vars).expect("a model");
    let (ran, trace) = region(|| {
        let loss = loss(&model)?;
        let held = vars.data().lock().expect("the map");
        name_vars("held", vars.data());
        #[allow(
            clippy::needless_borrows_for_generic_args,
            reason = "people write it so"
        )]
        name_vars("held", &vars.data());
        let grads = of_locked(&loss, &vars);
        drop(held);
        grads.map(drop)
    });
    ran.expect("gradients");
    // Those of the loss stand in, without names.
    assert_eq!(keys(&trace, "locked").len(), 6);

    #[record_gradients(vars = vars, root = "locked")]
    fn of_locked(loss: &Tensor, vars: &VarMap) -> Result<GradStore> {
        loss.backward()
    }
}

#[test]
fn named_variables_are_in_the_order_of_their_names_and_unnamed_ones_in_that_of_use() {
    let order = |named: bool| {
        let (c, a, b) = (var(&[1.0; 2]), var(&[1.0; 3]), var(&[1.0; 4]));
        if named {
            name_vars("ordered.", [("c", &c), ("a", &a), ("b", &b)]);
        }
        let (ran, trace) = region(|| -> Result<()> {
            let first = (c.sum_all()? * a.sum_all()?)?;
            backward(&(first + b.sum_all()?)?).map(drop)
        });
        ran.expect("gradients");
        keys(&trace, "loss")
    };
    assert_eq!(order(true), ["ordered.a", "ordered.b", "ordered.c"]);
    let unnamed = order(false);
    assert_eq!(unnamed.len(), 3);
    // Other variables, other addresses, other hashes: the same names.
    for _ in 0..3 {
        assert_eq!(order(false), unnamed);
    }
}

#[test]
fn a_store_alone_tells_of_what_is_older_than_the_step() {
    #[profile_step(optimizer, name = "update")]
    #[record_gradients(root = "alone")]
    fn update(grads: &GradStore) -> usize {
        grads.get_ids().count()
    }
    let (a, b) = (var(&[1.0, 2.0]), var(&[1.0, 2.0, 3.0]));
    let (ran, trace) = region(|| -> Result<usize> {
        let loss = (weighed(&a, &[3.0, 4.0])? + weighed(&b, &[1.0, 2.0, 2.0])?)?;
        Ok(update(&loss.backward()?))
    });
    // The constants have entries, too.
    assert!(ran.expect("gradients") >= 4);
    let found = gradients(&trace, "alone");
    let norms: Vec<Option<f64>> = found.iter().map(|(_, _, norm)| *norm).collect();
    assert_eq!(norms, [Some(5.0), Some(3.0)]);
    assert_eq!(keys(&trace, "alone"), ["#0 [2]", "#1 [3]"]);
}

#[test]
fn every_kind_of_list_is_a_list() {
    let (a, b) = (var(&[1.0]), var(&[2.0]));
    let by_name: HashMap<String, Var> = [
        ("hash.a".to_owned(), a.clone()),
        ("hash.b".to_owned(), b.clone()),
    ]
    .into();
    let sorted: BTreeMap<&str, &Var> = [("tree.a", &a), ("tree.b", &b)].into();
    let list = vec![
        ("list.a".to_owned(), a.clone()),
        ("list.b".to_owned(), b.clone()),
    ];
    let plain = [a.clone(), b.clone()];
    let (ran, trace) = region(|| -> Result<()> {
        let loss = (a.as_tensor() + b.as_tensor())?.sum_all()?;
        let grads = loss.backward()?;
        #[record_gradients(vars = by_name, root = "hash")]
        fn of_hash(grads: &GradStore, by_name: &HashMap<String, Var>) {
            let _ = (grads, by_name);
        }
        of_hash(&grads, &by_name);
        #[record_gradients(vars = sorted, root = "tree")]
        fn of_tree(grads: &GradStore, sorted: &BTreeMap<&str, &Var>) {
            let _ = (grads, sorted);
        }
        of_tree(&grads, &sorted);
        #[record_gradients(vars = list, root = "list")]
        fn of_list(grads: &GradStore, list: &[(String, Var)]) {
            let _ = (grads, list);
        }
        of_list(&grads, &list);
        #[record_gradients(vars = vars, root = "plain")]
        fn of_plain(grads: &GradStore, vars: &[Var]) {
            let _ = (grads, vars);
        }
        of_plain(&grads, &plain);
        Ok(())
    });
    ran.expect("gradients");
    for root in ["hash", "tree", "list"] {
        assert_eq!(
            keys(&trace, root),
            [format!("{root}.a"), format!("{root}.b")]
        );
    }
    assert_eq!(keys(&trace, "plain"), ["#0 [1]", "#1 [1]"]);
}

#[test]
fn two_optimizers_share_a_map() {
    #[record_gradients(vars = vars, root = "{root}", only = "first")]
    fn lower(root: &str, vars: &VarMap, grads: &GradStore, sgd: &mut SGD) -> Result<()> {
        sgd.step(grads)
    }
    #[record_gradients(vars = vars, root = "upper", only = "last")]
    fn upper(vars: &VarMap, grads: &GradStore, sgd: &mut SGD) -> Result<()> {
        sgd.step(grads)
    }
    let vars = VarMap::new();
    let model = model(&vars).expect("a model");
    let (ran, trace) = region(|| -> Result<()> {
        let grads = loss(&model)?.backward()?;
        let mut optimizers = [
            SGD::new(vars.all_vars(), 0.1)?,
            SGD::new(vars.all_vars(), 0.2)?,
        ];
        lower("lower", &vars, &grads, &mut optimizers[0])?;
        upper(&vars, &grads, &mut optimizers[1])
    });
    ran.expect("gradients");
    assert_eq!(keys(&trace, "lower"), ["first.bias", "first.weight"]);
    assert_eq!(keys(&trace, "upper"), ["last.bias", "last.weight"]);
}
