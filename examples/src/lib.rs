//! What the programs in `src/bin` share: the handwritten digits and a generator of random numbers that can be seeded.

mod data;
mod random;

pub use data::Digits;
pub use random::{Random, init_weights};
