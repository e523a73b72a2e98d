//! What carries no attribute: wrapped modules, tensors in a chain, derived types.

mod derived;
mod modules;
