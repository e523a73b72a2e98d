//! Spans that other crates open with `tracing`.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ptr;
use std::sync::{Mutex, PoisonError};

use tracing_core::span::Id;
use tracing_core::{Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

use crate::record::{CallSite, Name, Span, recorder};

/// Records the spans that other crates open with [`tracing`](https://docs.rs/tracing), such as those of
/// `candle-transformers`' models, beside the attributes' own.
///
/// Each time a thread enters a `tracing` span while a capture is open on it, that is a span in the trace, until it
/// exits: under the span's name, with its file and line, a child of what is open on the thread. A future under
/// `Instrument` gives one for each poll. Fields and events are not recorded: they may hold samples of data. Nothing
/// happens where no capture is open, and with the feature `off`.
///
/// ```
/// use tracing_subscriber::layer::SubscriberExt;
///
/// let subscriber = tracing_subscriber::registry().with(candle_profiler::TracingLayer::new());
/// # let result =
/// tracing::subscriber::set_global_default(subscriber);
/// # result.unwrap();
/// ```
///
/// Which spans there are is up to the subscriber's other layers and filters; those of `candle-transformers` are of the
/// level `TRACE`.
#[derive(Clone, Copy, Debug, Default)]
pub struct TracingLayer(());

impl TracingLayer {
    /// The layer; it has no settings.
    pub fn new() -> Self {
        Self(())
    }
}

thread_local! {
    /// The spans that this thread is in and that are recorded, in the order in which it entered them.
    static ENTERED: RefCell<Vec<(Id, Span)>> = const { RefCell::new(Vec::new()) };
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for TracingLayer {
    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        if cfg!(feature = "off") || recorder().is_none() {
            return;
        }
        let Some(span) = context.span(id) else {
            return;
        };
        let _own = crate::allocator::uncounted();
        let entered = (id.clone(), Span::enter(site(span.metadata())));
        // A thread that is about to end has no place for it any more: the span ends at once.
        let _ = ENTERED.try_with(|all| all.borrow_mut().push(entered));
    }

    fn on_exit(&self, id: &Id, _: Context<'_, S>) {
        let left = ENTERED.try_with(|all| {
            let mut all = all.borrow_mut();
            let at = all.iter().rposition(|(entered, _)| entered == id)?;
            Some(all.remove(at))
        });
        drop(left);
    }
}

/// The call site of a `tracing` span. There are as many as the program has places that open such spans, and they are kept.
fn site(metadata: &'static Metadata<'static>) -> &'static CallSite {
    static SITES: Mutex<Option<HashMap<usize, &'static CallSite>>> = Mutex::new(None);
    let mut sites = SITES.lock().unwrap_or_else(PoisonError::into_inner);
    sites
        .get_or_insert_default()
        .entry(ptr::from_ref(metadata).addr())
        .or_insert_with(|| {
            Box::leak(Box::new(CallSite(
                Name::Text(metadata.name()),
                metadata.file().unwrap_or(metadata.target()),
                metadata.line().unwrap_or(0),
                0,
            )))
        })
}
