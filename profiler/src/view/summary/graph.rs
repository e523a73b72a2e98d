//! The size of a loss's graph.

/// The graph of a loss.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct GraphSize {
    /// Tensors in it, variables included.
    pub(crate) nodes: u64,
    /// The bytes of those that are no variables.
    pub(crate) bytes: u64,
    /// How many of them were made in earlier steps.
    pub(crate) carried: u64,
    /// Bytes of gradients of what is no variable.
    pub(crate) constant_bytes: u64,
}
