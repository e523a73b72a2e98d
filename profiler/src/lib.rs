//! Profiling of candle programs by attributes.
