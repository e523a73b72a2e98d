//! What candle's tensors tell about themselves.

pub mod stats;
