//! Profiling of candle programs by attributes.

pub use candle_profiler_macros::{measured, profile_span, profile_step, record_scalar, record_stats};

#[doc(hidden)]
pub mod private;
/// Stand-in.
pub mod phase {
    /// Stand-in.
    #[derive(Clone, Copy, Debug)]
    pub enum ExecutionStep {
        /// F
        Forward,
        /// B
        Backward,
        /// O
        Optimizer,
    }
}
/// Stand-in.
pub mod trace {
    /// Stand-in.
    #[derive(Clone, Copy, Debug)]
    pub enum SpanKind {
        /// F
        Function,
        /// O
        Op,
        /// M
        Module,
    }
}
