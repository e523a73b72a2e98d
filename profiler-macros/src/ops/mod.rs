//! Operation calls in a body: `x.matmul(&w)` becomes `op(begin((&x, &w)), …, x.matmul(&w))`.
//!
//! The run time recognises tensors by the value's type, so every call that could give one is handed through a generic
//! function that returns what it gets. Nothing else changes: operands stay where they are, so borrows, moves,
//! temporaries and coercions stay what they were. What is not understood is handed on as it came.

mod cursor;
mod expression;
mod names;
mod place;
mod postfix;
mod primary;
mod walk;
mod write;

use crate::site::Context;
use proc_macro2::TokenStream;

/// What `ops` asks for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// `ops`
    Calls,
    /// `ops(stats)`
    Statistics,
}

/// The body with its operation calls observed.
pub(crate) fn rewrite(context: &Context, mode: Mode, body: TokenStream) -> TokenStream {
    let walk = walk::Walk { context, mode };
    let trees: Vec<_> = body.into_iter().collect();
    crate::tokens::regroup(walk.block(&trees))
}
