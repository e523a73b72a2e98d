//! The hot side: clock, call sites, the recorder of a thread, guards, detached spans and futures; and the writer.

mod address;
mod budget;
mod cold;
mod detached;
mod future;
mod guard;
mod handle;
mod lane;
mod open_list;
mod output;
mod parked;
mod reading;
mod recorder;
mod replay;
mod session;
mod site;
mod stream;
#[cfg(test)]
mod tests;
mod writer;

pub(crate) use cold::{Evidence, MeasuredStart, Owner};
pub use future::{AsyncSpan, Instrumented, instrument};
pub use guard::{Ended, Span};
pub(crate) use guard::{Elsewhere, Place, observe};
pub use handle::{Entered, Handle, current};
pub(crate) use output::{Closing, Ending, Output, Place as OutputPlace};
pub(crate) use recorder::{Recorder, current as recorder};
pub(crate) use replay::Limits;
pub(crate) use session::{End, Finished, Session};
pub(crate) use site::SpanSource;
pub use site::{CallSite, MeasureSite, Name, RecordSite};
pub(crate) use stream::{clock, prepare};
pub(crate) use writer::{late, open as open_output};

/// In the child of a fork: this thread records nothing, and the parent's writer is not here.
#[cfg(unix)]
pub(crate) fn forget_all() {
    recorder::set_current(None);
    writer::forget();
}
