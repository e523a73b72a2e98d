//! Does what a tree says, with annotated functions.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::pin::Pin;
use std::sync::mpsc::{Sender, channel};
use std::task::{Context, Poll, Waker};
use std::thread::{self, JoinHandle};

use candle_profiler::{Span, current, measured, profile_span, record_scalar, span};

use crate::tree::{CLEANER, End, Limit, MEASURED, Node, Step, Task, Tree};

/// The payload of the panics that a tree asks for.
pub(crate) struct Planned;

fn panic() -> ! {
    panic_any(Planned)
}

/// A thread that waits for the capture's end with a span open.
pub(crate) struct Late {
    release: Sender<()>,
    thread: JoinHandle<()>,
}

impl Late {
    pub(crate) fn release(self) {
        drop(self.release);
        self.thread.join().expect("no panic");
    }
}

/// Runs a tree to its end; a thread may still be at work for it.
pub(crate) fn tree(tree: &Tree) -> Option<Late> {
    match tree {
        Tree::Plain { body, end, late } => {
            let mut waiting = None;
            let ended = catch_unwind(AssertUnwindSafe(|| plain(body, *end, *late, &mut waiting)));
            assert_eq!(ended.is_err(), matches!(end, End::Panic));
            waiting
        }
        Tree::Async { task, limit, moves } => {
            let future = Box::pin(asynchronous(&task.steps));
            if *moves {
                move_about(future, *limit);
            } else {
                take_turns(vec![(future, *limit)]);
            }
            None
        }
    }
}

#[measured(name = "0")]
fn plain(
    body: &[Node],
    end: End,
    late: Option<u32>,
    waiting: &mut Option<Late>,
) -> Result<(), String> {
    if let Some(id) = late {
        *waiting = Some(begin_late(id));
    }
    list(body);
    match end {
        End::Ok => Ok(()),
        End::Err => Err("planned".to_owned()),
        End::Panic => panic(),
    }
}

fn begin_late(id: u32) -> Late {
    let (release, released) = channel::<()>();
    let (tell, begun) = channel();
    let handle = current();
    let thread = thread::spawn(move || {
        let _entered = handle.enter();
        let _span = guard(id);
        tell.send(()).expect("a receiver");
        let _ = released.recv();
        call(id, &[]);
    });
    begun.recv().expect("a sender");
    Late { release, thread }
}

#[measured(name = "0")]
#[record_scalar("0")]
async fn asynchronous(steps: &[Step]) -> u32 {
    take(MEASURED, steps).await
}

fn guard(id: u32) -> Span {
    span(id.to_string())
}

fn list(nodes: &[Node]) {
    for each in nodes {
        node(each);
    }
}

#[profile_span(name = "{id}")]
#[record_scalar("{id}")]
fn call(id: u32, body: &[Node]) -> u32 {
    list(body);
    id
}

struct Cleaner(u32);

impl Drop for Cleaner {
    fn drop(&mut self) {
        clean(self.0 + CLEANER);
    }
}

#[profile_span(name = "{id}")]
fn clean(id: u32) {}

#[profile_span(name = "{id}")]
#[record_scalar("{id}")]
fn unwinding(id: u32, further: &[u32], body: &[Node]) -> u32 {
    let _cleaner = Cleaner(id);
    match further {
        [] => {
            list(body);
            panic()
        }
        [next, further @ ..] => unwinding(*next, further, body),
    }
}

/// Ends the last `number` of these spans, the innermost first.
fn end(guards: &mut Vec<Span>, number: usize) {
    for _ in 0..number {
        drop(guards.pop());
    }
}

fn node(node: &Node) {
    match node {
        Node::Call { id, body } => {
            call(*id, body);
        }
        Node::Guard { id, body } => {
            let _guard = guard(*id);
            list(body);
        }
        Node::Record { id } => candle_profiler::record_scalar(&id.to_string(), id),
        Node::Forgotten { id } => std::mem::forget(guard(*id)),
        Node::Panics { ids, body } => {
            let caught = catch_unwind(AssertUnwindSafe(|| unwinding(ids[0], &ids[1..], body)));
            assert!(caught.is_err_and(|payload| payload.is::<Planned>()));
        }
        Node::Shuffled { ids, drops } => {
            let mut guards: Vec<Option<Span>> = ids.iter().map(|id| Some(guard(*id))).collect();
            for (index, leaf) in drops {
                drop(guards[*index].take());
                call(*leaf, &[]);
            }
        }
        Node::Threads { branches } => {
            let handle = &current();
            thread::scope(|scope| {
                for branch in branches {
                    scope.spawn(move || handle.run(|| list(branch)));
                }
            });
        }
        Node::Here { body } => current().run(|| list(body)),
        Node::Stale { id, call: inside } => {
            let handle = {
                let _guard = guard(*id);
                current()
            };
            handle.run(|| call(*inside, &[]));
        }
        Node::Stray { id } => thread::scope(|scope| {
            scope.spawn(|| call(*id, &[]));
        }),
        Node::Overhang {
            chain: ids,
            ended,
            id,
            body,
        } => overhang(ids, *ended, *id, body),
        Node::Race {
            chain: ids,
            branches,
        } => race(ids, branches),
        Node::Interleaved { tasks } => {
            let futures = tasks.iter().map(|(task, limit)| (boxed(task), *limit));
            take_turns(futures.collect());
        }
        Node::Moving { task, limit } => move_about(boxed(task), *limit),
        Node::OverhangTask {
            chain: ids,
            ended,
            task,
            limit,
        } => {
            let mut guards: Vec<Span> = ids.iter().map(|id| guard(*id)).collect();
            let mut limit = *limit;
            let pending = poll(boxed(task), &mut limit);
            end(&mut guards, *ended);
            take_turns(pending.map(|future| (future, limit)).into_iter().collect());
            end(&mut guards, ids.len());
        }
    }
}

fn overhang(ids: &[u32], ended: usize, id: u32, body: &[Node]) {
    let mut guards: Vec<Span> = ids.iter().map(|id| guard(*id)).collect();
    let handle = current();
    let (tell, begun) = channel();
    let (release, released) = channel::<()>();
    thread::scope(|scope| {
        let thread = scope.spawn(move || {
            let _entered = handle.enter();
            let _guard = guard(id);
            list(body);
            tell.send(()).expect("a receiver");
            let _ = released.recv();
        });
        begun.recv().expect("a sender");
        end(&mut guards, ended);
        drop(release);
        thread.join().expect("no panic");
    });
    end(&mut guards, ids.len());
}

fn race(ids: &[u32], branches: &[(u32, Vec<Node>)]) {
    let mut guards: Vec<Span> = ids.iter().map(|id| guard(*id)).collect();
    let handle = &current();
    thread::scope(|scope| {
        for (id, body) in branches {
            scope.spawn(move || {
                let _entered = handle.enter();
                let _guard = guard(*id);
                list(body);
            });
        }
        for _ in ids {
            thread::yield_now();
            end(&mut guards, 1);
        }
    });
}

type Boxed<'a> = Pin<Box<dyn Future<Output = u32> + Send + 'a>>;

fn boxed(task: &Task) -> Boxed<'_> {
    Box::pin(run_task(task.id, &task.steps))
}

#[profile_span(name = "{id}")]
#[record_scalar("{id}")]
async fn run_task(id: u32, steps: &[Step]) -> u32 {
    take(id, steps).await
}

async fn take(id: u32, steps: &[Step]) -> u32 {
    let _cleaner = Cleaner(id);
    for step in steps {
        match step {
            Step::Turn => turn().await,
            Step::Do(each) => node(each),
            Step::Await(task) => {
                boxed(task).await;
            }
            Step::Panic => panic(),
        }
    }
    id
}

fn turn() -> impl Future<Output = ()> + Send {
    let mut polled = false;
    poll_fn(move |_| match std::mem::replace(&mut polled, true) {
        true => Poll::Ready(()),
        false => Poll::Pending,
    })
}

/// Polls a future once; gives it back if it is neither done nor to be dropped.
fn poll<'a>(mut future: Boxed<'a>, limit: &mut Limit) -> Option<Boxed<'a>> {
    let mut context = Context::from_waker(Waker::noop());
    let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut context)));
    match polled {
        Ok(Poll::Pending) => {}
        Ok(Poll::Ready(_)) => return None,
        Err(payload) => {
            assert!(payload.is::<Planned>());
            return None;
        }
    }
    match limit {
        Some(1) => None,
        Some(more) => {
            *more -= 1;
            Some(future)
        }
        None => Some(future),
    }
}

fn take_turns(mut futures: Vec<(Boxed<'_>, Limit)>) {
    while !futures.is_empty() {
        let polled = futures
            .into_iter()
            .filter_map(|(future, mut limit)| Some((poll(future, &mut limit)?, limit)));
        futures = polled.collect();
    }
}

fn move_about(future: Boxed<'_>, mut limit: Limit) {
    let mut next = poll(future, &mut limit);
    while let Some(future) = next.take() {
        let limit = &mut limit;
        next = thread::scope(|scope| {
            let polled = scope.spawn(move || poll(future, limit)).join();
            polled.expect("no panic")
        });
    }
}
