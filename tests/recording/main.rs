//! What a trace holds of annotated code: spans and their parents, names, marks; evidence and whose it is.

mod evidence;
mod labels;
mod names;
mod regions;
mod spans;
mod threads;
mod volume;
