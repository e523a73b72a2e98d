//! What spans tell of memory: their thread's balance and peak, nothing of the profiler's own, no tensor kept.

mod graphs;
mod growth;
mod spans;

use std::alloc::System;

use candle_profiler::TrackingAllocator;

#[global_allocator]
static ALLOCATOR: TrackingAllocator = TrackingAllocator::new(System);
