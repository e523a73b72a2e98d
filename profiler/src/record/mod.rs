//! The hot side: clock, call sites, the recorder of a thread, guards, detached spans and futures; and the writer.

mod address;
mod budget;
mod cold;
mod crossing;
mod culprit;
mod cuts;
mod detached;
mod errand;
mod future;
mod guard;
mod handle;
#[cfg(all(test, loom))]
mod handover_tests;
mod lane;
mod limits;
mod names;
mod open_list;
mod output;
mod parked;
mod passes;
mod promise;
mod reading;
mod recorder;
mod replay;
mod session;
#[cfg(all(test, not(feature = "off")))]
mod session_tests;
mod site;
mod stream;
mod sync;
#[cfg(test)]
pub(crate) mod tests;
mod writer;
mod zeros;

pub(crate) use cold::{Evidence, MeasuredStart, Owner};
#[cfg(feature = "candle")]
pub(crate) use crossing::{Backward, Crossed, Crossing, Untracked};
#[cfg(feature = "candle")]
pub(crate) use culprit::Hints;
pub use future::{AsyncSpan, Instrumented, instrument};
pub(crate) use guard::{Elsewhere, Place, observe};
pub use guard::{Ended, Span};
pub use handle::{Entered, Handle, current};
#[cfg(feature = "candle")]
pub(crate) use names::{give as give_names, of as name_of, with_company as names_with_company};
pub(crate) use output::{Closing, Ending, Output, Place as OutputPlace};
pub(crate) use recorder::{Recorder, current as recorder};
pub(crate) use replay::Limits;
pub(crate) use session::{End, Manner, Session, Wait};
pub(crate) use site::SpanSource;
pub use site::{CallSite, GradientSite, Name, RecordSite};
pub(crate) use stream::{clock, prepare};
pub(crate) use writer::{Running, count_progress, late, start as start_writer};

/// In the child of a fork: this thread records nothing, and the parent's writer is not here.
#[cfg(unix)]
pub(crate) fn forget_all() {
    recorder::set_current(None);
    writer::forget();
}
