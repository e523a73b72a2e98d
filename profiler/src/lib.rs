//! Profiling of candle programs by attributes.

#[cfg(feature = "candle")]
pub mod tensor;
