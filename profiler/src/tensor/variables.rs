//! Lists of variables, with names or without.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::{Arc, Mutex, RwLock};

use candle_core::{Tensor, TensorId, Var};

use super::graph::serial;
use crate::record::give_names;

/// Some variables, with names or without: what [`name_vars`] and `#[record_gradients(vars = …)]` take.
///
/// Implemented for slices, arrays and `Vec`s of `Var`, `Tensor`, references of them and `(name, variable)`; for maps of
/// them by name, also behind a `Mutex` or `RwLock`; and for `VarMap`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no list of variables",
    label = "holds no variables",
    note = "allowed are `VarMap`, `varmap.data()`, lists of `Var` or of `(name, Var)`, and maps of `Var` by name"
)]
pub trait Variables {
    /// Shows each variable, maps in the order of their names; `false`: the program holds the lock of this list now, and
    /// nothing is shown.
    fn each(&self, show: &mut dyn FnMut(Option<&str>, &Tensor)) -> bool;
}

/// One variable of a list, with a name or without.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no variable",
    label = "is no variable",
    note = "allowed are `Var`, `Tensor`, references of them, and `(name, variable)`"
)]
pub trait Variable {
    /// Shows it.
    fn one(&self, show: &mut dyn FnMut(Option<&str>, &Tensor));
}

impl Variable for Tensor {
    fn one(&self, show: &mut dyn FnMut(Option<&str>, &Tensor)) {
        show(None, self);
    }
}

impl Variable for Var {
    fn one(&self, show: &mut dyn FnMut(Option<&str>, &Tensor)) {
        show(None, self.as_tensor());
    }
}

impl<T: Variable + ?Sized> Variable for &T {
    fn one(&self, show: &mut dyn FnMut(Option<&str>, &Tensor)) {
        (**self).one(show);
    }
}

impl<N: AsRef<str>, V: Variable> Variable for (N, V) {
    fn one(&self, show: &mut dyn FnMut(Option<&str>, &Tensor)) {
        self.1
            .one(&mut |_, tensor| show(Some(self.0.as_ref()), tensor));
    }
}

impl<V: Variable> Variables for [V] {
    fn each(&self, show: &mut dyn FnMut(Option<&str>, &Tensor)) -> bool {
        self.iter().for_each(|variable| variable.one(show));
        true
    }
}

impl<V: Variable> Variables for Vec<V> {
    fn each(&self, show: &mut dyn FnMut(Option<&str>, &Tensor)) -> bool {
        self.as_slice().each(show)
    }
}

impl<V: Variable, const N: usize> Variables for [V; N] {
    fn each(&self, show: &mut dyn FnMut(Option<&str>, &Tensor)) -> bool {
        self.as_slice().each(show)
    }
}

impl<N: AsRef<str>, V: Variable> Variables for BTreeMap<N, V> {
    fn each(&self, show: &mut dyn FnMut(Option<&str>, &Tensor)) -> bool {
        for (name, variable) in self {
            variable.one(&mut |_, tensor| show(Some(name.as_ref()), tensor));
        }
        true
    }
}

impl<N: AsRef<str>, V: Variable, S> Variables for HashMap<N, V, S> {
    fn each(&self, show: &mut dyn FnMut(Option<&str>, &Tensor)) -> bool {
        let mut items: Vec<(&str, &V)> = self
            .iter()
            .map(|(name, variable)| (name.as_ref(), variable))
            .collect();
        items.sort_by_key(|(name, _)| *name);
        for (name, variable) in items {
            variable.one(&mut |_, tensor| show(Some(name), tensor));
        }
        true
    }
}

macro_rules! through {
    ($($type:ty)*) => {$(
        impl<T: Variables + ?Sized> Variables for $type {
            fn each(&self, show: &mut dyn FnMut(Option<&str>, &Tensor)) -> bool {
                (**self).each(show)
            }
        }
    )*};
}

through! { &T Box<T> Rc<T> Arc<T> std::sync::MutexGuard<'_, T> std::sync::RwLockReadGuard<'_, T> }

impl<T: Variables + ?Sized> Variables for Mutex<T> {
    fn each(&self, show: &mut dyn FnMut(Option<&str>, &Tensor)) -> bool {
        self.try_lock().is_ok_and(|list| list.each(show))
    }
}

impl<T: Variables + ?Sized> Variables for RwLock<T> {
    fn each(&self, show: &mut dyn FnMut(Option<&str>, &Tensor)) -> bool {
        self.try_read().is_ok_and(|list| list.each(show))
    }
}

#[cfg(feature = "nn")]
impl Variables for candle_nn::VarMap {
    fn each(&self, show: &mut dyn FnMut(Option<&str>, &Tensor)) -> bool {
        self.data().each(show)
    }
}

/// What is kept of a variable: no tensor.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) name: Option<String>,
    pub(crate) id: TensorId,
    pub(crate) serial: u64,
    pub(crate) dims: Vec<usize>,
}

impl Entry {
    pub(crate) fn of(name: Option<&str>, tensor: &Tensor) -> Self {
        Self {
            name: name.map(str::to_owned),
            id: tensor.id(),
            serial: serial(tensor.id()),
            dims: tensor.dims().to_vec(),
        }
    }
}

/// The variables of a list; `None`: its lock is held.
fn entries(list: &(impl Variables + ?Sized)) -> Option<Vec<Entry>> {
    let mut entries = Vec::new();
    list.each(&mut |name, tensor| entries.push(Entry::of(name, tensor)))
        .then_some(entries)
}

/// Gives variables the names under which their gradients are recorded: `prefix.name` (the prefix with its dot or without),
/// or `name` without a prefix.
///
/// Variables without a name of their own are left out. A `VarMap` whose lock the program holds names nothing, which is
/// said on stderr.
///
/// ```
/// # fn main() -> candle_core::Result<()> {
/// use candle_core::{DType, Device, Var};
///
/// let weight = Var::zeros((2, 3), DType::F32, &Device::Cpu)?;
/// candle_profiler::name_vars("model", [("weight", &weight)]);
/// # Ok(())
/// # }
/// ```
pub fn name_vars(prefix: &str, vars: impl Variables) {
    if cfg!(feature = "off") {
        return;
    }
    let Some(entries) = entries(&vars) else {
        return crate::say::once(
            "name_vars: the program holds the lock of these variables, so they get no names",
        );
    };
    let named = entries.into_iter().filter_map(|entry| {
        let name = entry.name?;
        let name = match prefix {
            "" => name,
            prefix => format!("{}.{name}", prefix.trim_end_matches('.')),
        };
        let length = match entry.dims.as_slice() {
            [length] => Some(*length),
            _ => None,
        };
        Some((entry.serial, name, length))
    });
    give_names(named.collect());
}
