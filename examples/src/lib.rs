//! Programs that show candle-profiler at work; see `src/bin`.
