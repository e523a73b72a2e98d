//! The attributes of candle-profiler; use them through the `candle-profiler` crate, which documents them.
//!
//! A call of an attribute passes through small steps: `args` reads what stands in its parentheses, `function` reads
//! the item it stands on, `valid` refuses what cannot work, `expand` writes the new item, `statements` does the same for
//! the attributes inside the body. All of them work on `proc_macro2` streams, so that plain unit tests reach them.

mod absorbed;
mod args;
mod backward;
mod boxed;
mod crossing;
mod derive;
mod detaching;
mod expand;
mod forms;
mod fragments;
mod function;
mod future;
mod gradients;
mod hints;
mod items;
mod label;
mod manifest;
mod ops;
mod params;
mod place;
mod site;
mod statements;
mod target;
#[cfg(test)]
mod tests;
mod tokens;
mod types;
mod valid;
mod written;

use args::Kind;
use proc_macro::TokenStream;

/// Whether attributes only check and vanish.
const OFF: bool = cfg!(feature = "off");

fn attribute(kind: Kind, args: TokenStream, item: TokenStream) -> TokenStream {
    expand::attribute(kind, args.into(), item.into(), OFF).into()
}

/// A span tagged with a step of training: `forward`, `backward` or `optimizer`.
///
/// Options: `name = "…"`, `kind = function|module|op`, `ops`, `ops(stats)`, `detached`, `crate = path`.
///
/// `ops` records each call in the body that gives a tensor: methods, operators, functions, closures' bodies included;
/// `ops(stats)` also takes the statistics of what it gave, under the text of the receiver or the name of the `let`.
/// Calls that hold a closure among their arguments or an `.await`, and what stands in macros, are left alone. What goes
/// into a call is looked at where it is a variable or a field; in a closure without `move`, of what is outside of it,
/// only what is a field of `self` or stands behind `&`. A field of a `repr(packed)` struct cannot be looked at: bind it
/// by a `let` first.
#[proc_macro_attribute]
pub fn profile_step(args: TokenStream, item: TokenStream) -> TokenStream {
    attribute(Kind::ProfileStep, args, item)
}

/// A span without a step; the options are those of `profile_step`.
#[proc_macro_attribute]
pub fn profile_span(args: TokenStream, item: TokenStream) -> TokenStream {
    attribute(Kind::ProfileSpan, args, item)
}

/// The measured region: each call may be captured as one trace.
///
/// Options: `infer`, `name = "…"`, `device = EXPR`, `step = EXPR`, `items = EXPR`, `tags(key = EXPR, …)`,
/// `gradients = EXPR` (a `&GradientCapturePlan`, evaluated when the call is captured), `ops`, `ops(stats)`, `crate = path`.
/// `?` cannot stand in the expression of `items`: write `items = x.dims()[0]`.
/// A call fails with the `Err` it returns, but for functions whose return type holds `impl Trait` or that are
/// `#[track_caller]`: their bodies stay where they are, and only a panic is seen. A measured statement or turn of a loop
/// fails with the `Err` that leaves it by `?`, except in such functions, in closures and in `async` functions.
#[proc_macro_attribute]
pub fn measured(args: TokenStream, item: TokenStream) -> TokenStream {
    attribute(Kind::Measured, args, item)
}

/// Statistics of the tensors in a value: of a function's return value, a `let`, a parameter.
///
/// Forms: `record_stats`, `record_stats("label")`, `record_stats(label)`, each also with `allow_nonfinite`.
///
/// `{#}` in the label counts the calls under the same parent span. On a `measured` function, `async` or not, it counts
/// inside the call, whose trace it opens, and so is 0.
#[proc_macro_attribute]
pub fn record_stats(args: TokenStream, item: TokenStream) -> TokenStream {
    attribute(Kind::RecordStats, args, item)
}

/// One number: of a function's return value, a `let`, a parameter. The label is required.
#[proc_macro_attribute]
pub fn record_scalar(args: TokenStream, item: TokenStream) -> TokenStream {
    attribute(Kind::RecordScalar, args, item)
}

/// The state and norm of each variable's gradient: of a `GradStore` that a function returns, or takes, in which case it
/// is read before the body runs, and its norm again after it where it is a `&mut`; of a `let`, a parameter.
///
/// Options: `vars = EXPR` (a `VarMap`, or a list of variables), `root = "…"`, `only = "…"`, `frozen = "…"` (beginnings
/// of names, separated by commas), `crate = path`.
#[proc_macro_attribute]
pub fn record_gradients(args: TokenStream, item: TokenStream) -> TokenStream {
    attribute(Kind::RecordGradients, args, item)
}

/// Makes a type's tensors recordable by `record_stats`: each field under `label/field`, in a tuple under `label/0`.
///
/// On an enum, the fields of the variant that is there. `#[observe(skip)]` leaves a field out; `#[observe(crate = path)]`
/// on the type names the run time where it is renamed or re-exported.
#[proc_macro_derive(Observe, attributes(observe))]
pub fn derive_observe(item: TokenStream) -> TokenStream {
    derive::derive(derive::Derived::Observe, item.into()).into()
}

/// Makes a type's numbers recordable by `record_scalar`; as [`macro@Observe`] otherwise.
#[proc_macro_derive(ObserveScalar, attributes(observe))]
pub fn derive_observe_scalar(item: TokenStream) -> TokenStream {
    derive::derive(derive::Derived::ObserveScalar, item.into()).into()
}
