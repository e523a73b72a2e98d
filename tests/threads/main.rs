//! Threads that share a capture, threads with captures of their own, threads that come too late.

mod late;
mod pools;
mod sessions;
