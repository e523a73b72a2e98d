//! The attributes of candle-profiler; use them through the `candle-profiler` crate.
