//! What a panic said, and where: known only to the panic hook.

use std::any::Any;
use std::cell::RefCell;
use std::panic::PanicHookInfo;
use std::sync::Once;

thread_local! {
    static LAST: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Puts a hook in front of the program's own, once, when the first capture opens. It changes nothing of what the
/// program prints or does.
pub(super) fn watch() {
    static WATCH: Once = Once::new();
    // The standard library forbids changing the hook while a thread unwinds.
    if std::thread::panicking() {
        return;
    }
    WATCH.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            note(info);
            before(info);
        }));
    });
}

fn note(info: &PanicHookInfo<'_>) {
    let Some(recorder) = crate::record::recorder() else {
        return;
    };
    let place = info.location().map(|place| {
        let file = crate::source::short(place.file());
        format!(" at {file}:{}:{}", place.line(), place.column())
    });
    let message = text(info.payload());
    let reason = format!("panicked{}: {message}", place.unwrap_or_default());
    let _ = LAST.try_with(|last| last.replace(Some(reason)));
    recorder.panic_begins();
}

/// What `panic!` was called with, which is text in all but odd cases.
fn text(payload: &dyn Any) -> &str {
    let owned = payload.downcast_ref::<String>().map(String::as_str);
    owned
        .or_else(|| payload.downcast_ref::<&str>().copied())
        .unwrap_or("(no text)")
}

/// What the last panic on this thread said, unless it has been asked for before.
pub(super) fn take_last() -> Option<String> {
    LAST.try_with(RefCell::take).ok().flatten()
}

/// Why the thread unwinds.
pub(crate) fn panic_reason() -> String {
    take_last().unwrap_or_else(|| "panicked".to_owned())
}
