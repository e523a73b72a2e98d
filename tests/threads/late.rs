//! Threads that are still at work when the span they belong to, or the whole capture, has ended.

use std::cell::RefCell;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use candle_profiler::{Handle, current, measured, profile_span, span};
use tests::capturing::{capture, captures};
use tests::trace::Trace;

/// A thread that loads batches, told step by step how far to go.
struct Loader {
    orders: Sender<Order>,
    done: Receiver<()>,
    thread: JoinHandle<()>,
}

enum Order {
    /// Enter this handle for the orders up to the next [`Order::Leave`].
    Enter(Handle),
    Leave,
    Open(&'static str),
    Close,
    Load,
    Call(fn()),
}

#[profile_span(name = "load")]
fn load() {
    span("decode").end();
}

impl Loader {
    fn start() -> Self {
        let (orders, received) = channel();
        let (tell, done) = channel();
        let thread = thread::Builder::new()
            .name("loader".to_owned())
            .spawn(move || Self::work(&received, &tell))
            .expect("a thread");
        Self {
            orders,
            done,
            thread,
        }
    }

    fn work(orders: &Receiver<Order>, tell: &Sender<()>) {
        let mut entered = Vec::new();
        let mut open = Vec::new();
        for order in orders {
            match order {
                Order::Enter(handle) => entered.push(handle.enter()),
                Order::Leave => drop(entered.pop()),
                Order::Open(name) => open.push(span(name)),
                Order::Close => drop(open.pop()),
                Order::Load => load(),
                Order::Call(work) => work(),
            }
            tell.send(()).expect("a receiver");
        }
    }

    fn tell(&self, order: Order) {
        self.orders.send(order).expect("a receiver");
        self.done.recv().expect("a sender");
    }

    fn stop(self) {
        drop(self.orders);
        self.thread.join().expect("no panic");
    }
}

fn parent<'a>(trace: &'a Trace, name: &str) -> &'a str {
    trace.path(trace.span(name)).last().expect("a parent")
}

#[test]
fn a_loader_outlives_its_parent_and_two_captures() {
    #[measured(name = "fed step")]
    fn step(loader: &Loader) {
        let epoch = span("epoch");
        let batch = span("batch");
        loader.tell(Order::Enter(current()));
        loader.tell(Order::Load);
        loader.tell(Order::Open("over batch"));
        drop(batch);
        loader.tell(Order::Close);
        loader.tell(Order::Open("over epoch"));
        loader.tell(Order::Open("in over epoch"));
        drop(epoch);
        loader.tell(Order::Close);
        loader.tell(Order::Close);
        loader.tell(Order::Open("over all"));
        loader.tell(Order::Load);
    }
    let loader = Loader::start();
    let ((), traces) = captures(|| {
        for _ in 0..2 {
            step(&loader);
            // The capture has ended; the loader does not know.
            loader.tell(Order::Load);
            loader.tell(Order::Close);
            loader.tell(Order::Open("too late"));
            loader.tell(Order::Close);
            loader.tell(Order::Leave);
            loader.tell(Order::Load);
        }
    });
    loader.stop();
    assert_eq!(traces.len(), 2);
    for trace in &traces {
        assert_eq!(trace.reason(), None);
        assert_eq!(parent(trace, "over batch"), "epoch");
        assert_eq!(parent(trace, "over epoch"), "fed step");
        assert_eq!(parent(trace, "in over epoch"), "over epoch");
        // When it ended, at the end of the capture, the measured span had.
        assert!(trace.span("over all").is("open_at_end"));
        assert_eq!(trace.path(trace.span("over all")).len(), 1);
        let loads = trace.named("load");
        let paths: Vec<_> = loads.iter().map(|load| trace.path(load)).collect();
        assert_eq!(loads.len(), 2, "{paths:?}");
        assert_eq!(paths[0][1..], ["fed step", "epoch", "batch"]);
        assert_eq!(*paths[1].last().expect("a parent"), "over all");
        assert_eq!(trace.named("decode").len(), 2);
        assert_eq!(trace.named("too late").len(), 0);
        let end = trace.terminal()["timestamp_ns"].as_u64().expect("a time");
        assert!(trace.spans.iter().all(|span| span.time.1 <= end));
    }
}

#[test]
fn a_thread_that_records_without_pause_ends_no_capture_badly() {
    #[measured(name = "noisy")]
    fn noisy(orders: &Sender<Handle>) {
        orders.send(current()).expect("a receiver");
        (0..50).for_each(|_| load());
    }
    let (orders, handles) = channel::<Handle>();
    let busy = thread::spawn(move || {
        let mut handle = handles.recv().expect("a sender");
        loop {
            let entered = handle.enter();
            for _ in 0..300 {
                let _span = span("busy");
                load();
            }
            drop(entered);
            match handles.try_recv() {
                Ok(next) => handle = next,
                Err(std::sync::mpsc::TryRecvError::Empty) => {}
                Err(std::sync::mpsc::TryRecvError::Disconnected) => return,
            }
        }
    });
    let ((), traces) = captures(|| (0..30).for_each(|_| noisy(&orders)));
    drop(orders);
    busy.join().expect("no panic");
    assert_eq!(traces.len(), 30);
    for trace in &traces {
        assert_eq!(trace.reason(), None);
        let own = trace.named("load");
        let own = own.iter().filter(|load| load.start["thread"].is_null());
        assert_eq!(own.count(), 50);
        for busy in trace.named("busy") {
            let above = trace.path(busy);
            assert!(above.len() == 1 || above[1..] == ["noisy"], "{above:?}");
        }
    }
}

#[test]
fn a_thread_that_stays_inside_an_ended_capture_is_free_for_calls_of_its_own() {
    #[measured(name = "of the loader")]
    fn own() {
        load();
    }
    #[measured(name = "gives a handle")]
    fn gives(loader: &Loader) {
        loader.tell(Order::Enter(current()));
        loader.tell(Order::Load);
        loader.tell(Order::Call(own));
    }
    let loader = Loader::start();
    let ((), traces) = captures(|| {
        gives(&loader);
        loader.tell(Order::Load);
        loader.tell(Order::Call(own));
        loader.tell(Order::Load);
        loader.tell(Order::Call(own));
        loader.tell(Order::Leave);
    });
    loader.stop();
    let trees: Vec<String> = traces.iter().map(Trace::tree).collect();
    let load = "  load\n    decode\n";
    let own = format!("of the loader*\n{load}");
    let inside = own.replace('*', "").replace("\n  ", "\n    ");
    assert_eq!(
        trees,
        [
            format!("gives a handle*\n{load}  {inside}"),
            own.clone(),
            own
        ]
    );
    assert_eq!(traces[1].meta()["capture_step"], 1);
    assert_eq!(traces[2].meta()["capture_step"], 2);
}

struct AtExit(&'static str);

impl Drop for AtExit {
    fn drop(&mut self) {
        flush(self.0);
        span("freely").end();
    }
}

#[measured(name = "flush {when}")]
fn flush(when: &'static str) {
    span("flushing").end();
}

thread_local! {
    static EARLY: RefCell<Option<AtExit>> = const { RefCell::new(None) };
    static LATE: RefCell<Option<AtExit>> = const { RefCell::new(None) };
}

/// Sets one thread-local up before the profiler's own and one after; which goes first is not ours to choose.
fn with_destructors(work: impl FnOnce()) {
    EARLY.set(Some(AtExit("early")));
    work();
    LATE.set(Some(AtExit("late")));
}

#[test]
fn destructors_of_a_thread_that_ends_may_call_annotated_functions() {
    let ((), traces) = captures(|| {
        let thread = thread::spawn(|| with_destructors(|| flush("now")));
        thread.join().expect("no panic");
    });
    let mut names: Vec<&str> = traces
        .iter()
        .map(|trace| trace.measured().name.as_str())
        .collect();
    names.sort_unstable();
    names.dedup();
    assert!(names.contains(&"flush now"), "{names:?}");
    for trace in &traces {
        assert_eq!(trace.reason(), None);
    }
}

#[test]
fn destructors_of_a_thread_that_ends_inside_a_capture_do_no_harm() {
    #[measured(name = "around the end")]
    fn around() {
        let handle = current();
        let thread = thread::spawn(move || {
            with_destructors(|| handle.run(load));
            // Never left: the thread ends inside.
            std::mem::forget(handle.enter());
            std::mem::forget(span("forgotten"));
            load();
        });
        thread.join().expect("no panic");
        load();
    }
    let ((), trace) = capture(around);
    assert_eq!(trace.reason(), None);
    assert_eq!(trace.named("load").len(), 3);
    assert_eq!(trace.named("forgotten").len(), 1);
}
