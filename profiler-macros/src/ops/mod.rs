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
mod sight;
mod walk;
mod write;

use crate::site::Context;
use proc_macro2::{TokenStream, TokenTree};

pub(crate) use sight::{Names, Sight, of_function as sight_of, of_pattern as pattern_names};

/// What `ops` asks for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// `ops`
    Calls,
    /// `ops(stats)`
    Statistics,
}

/// The body, or a statement of it, with its operation calls observed.
///
/// `sight`: the variables in sight; `apart`: it may stand in a closure or future of the body.
pub(crate) fn rewrite(
    context: &Context,
    mode: Mode,
    sight: Sight,
    apart: bool,
    body: TokenStream,
) -> TokenStream {
    let trees: Vec<TokenTree> = body.into_iter().collect();
    let walk = walk::Walk::new(context, mode, sight);
    let walked = match apart {
        true => walk.borrowing(&trees, |walk| walk.block(&trees)),
        false => walk.block(&trees),
    };
    crate::tokens::regroup(walked)
}
