//! What is told of a call that tensors went through, and of a backward pass: numbers only, no tensor.
//!
//! Tensors are known by the serial number that candle gives each of them; a later tensor has a larger one.

use super::culprit::Hints;
use crate::trace::TensorEvent;
use crate::view::summary::GraphSize;

/// A call that was given something that depends on variables and gave back something untracked.
pub(crate) struct Crossing {
    pub(crate) what: Crossed,
    /// The program said, or it is plain to see, that the graph is meant to end here.
    pub(crate) meant: bool,
    /// The elements of each input that depends on a variable.
    pub(crate) inputs: Vec<usize>,
    /// The variables that the inputs depend on; `None`: not known.
    pub(crate) vars: Option<Vec<u64>>,
    /// The tensors that the inputs were made of, and they themselves, no variables, as far as they are near; `None`: not
    /// known.
    pub(crate) made_of: Option<Vec<u64>>,
    pub(crate) outputs: Vec<Untracked>,
}

/// What kind of place it went through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Crossed {
    /// An annotated function, which stands for the span it is in.
    Function(Hints),
    /// A wrapped module, by its type's name; its span is its own.
    #[cfg_attr(
        feature = "off",
        allow(dead_code, reason = "wrappers are compiled out")
    )]
    Module(Box<str>),
    /// A recorded operation, by its name; it has no span.
    Op(Box<str>),
}

/// An untracked tensor that came out.
pub(crate) struct Untracked {
    pub(crate) serial: u64,
    pub(crate) elements: usize,
    pub(crate) rank: usize,
    /// It fills its storage: no part of something that may have been there before.
    pub(crate) fresh: bool,
    /// Its elements are those of a mask: 0, 1, infinities, or 0 and one other number.
    pub(crate) mask: bool,
    pub(crate) event: Box<TensorEvent>,
}

/// A backward pass, or what is known of one.
pub(crate) struct Backward {
    /// The loss.
    pub(crate) root: Option<u64>,
    /// The variables that the loss depends on.
    pub(crate) reached: Option<Vec<u64>>,
    /// The tensors that the loss was made of, no variables, in the order of their numbers.
    pub(crate) made_of: Option<Vec<u64>>,
    /// What has an entry in the store of gradients, variables and constants alike, with its elements.
    pub(crate) entries: Option<Vec<(u64, usize)>>,
    pub(crate) graph: Option<GraphSize>,
}
