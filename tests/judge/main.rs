//! Our reader and health check say what the judge says, and the judge finds nothing wrong with what
//! our sessions write.

mod broken;
mod by_hand;
mod mutated;
mod session;
mod strict;
