//! What a span costs its caller: one, four nested, on two threads, of a future; capturing and switched off.
//!
//! ```text
//! cargo bench --workspace --bench spans
//! ```

use std::future::Future;
use std::hint::black_box;
use std::time::{Duration, Instant};

use benches::subject::{Model, annotated, annotated_future, drive, outermost, plain, plain_future};
use benches::{Outcome, Pair, Race, Targets, repeat};
use candle_graph::{SpanKind, TraceSession};
use candle_profiler::{measured, profile_span};

/// Spans of one turn: a burst of some microseconds.
const BURST: u64 = 500;

/// The time of so many polls of one future.
fn polled(future: impl Future<Output = ()>) -> Duration {
    let mut future = Some(future);
    repeat(1, || future.take().into_iter().for_each(drive))
}

/// Spans inside one more.
#[profile_span]
fn within_one(count: u64) -> Duration {
    repeat(count, annotated)
}

/// Two clock reads, as often as asked.
fn read_clock(clock: &quanta::Clock, count: u64) -> Duration {
    repeat(count, || {
        black_box((clock.raw(), clock.raw()));
    })
}

const EMPTY: &str = "empty call";
const INSTANT: &str = "two Instant::now()";
const TSC: &str = "two TSC reads";
const OURS: &str = "candle-profiler";
const METHOD: &str = "candle-profiler, a method";
const GENERIC: &str = "candle-profiler, a generic method";
const THEIRS: &str = "candle-graph";
const TSC_PAIR: &str = "two TSC reads on each thread";
const OUTERMOST: &str = "candle-profiler, one a stay of a handle";
const THEIR_PAIR: &str = "candle-graph, a session a thread";
const PLAIN: &str = "plain async fn";

/// The floor: what nothing and what reading a clock twice cost.
fn floor<'a>(title: &str, clock: &'a quanta::Clock) -> Race<'a> {
    Race::new(title)
        .runner(EMPTY, BURST, |count| repeat(count, plain))
        .runner(INSTANT, BURST, |count| {
            repeat(count, || {
                black_box((Instant::now(), Instant::now()));
            })
        })
        .runner(TSC, BURST, |count| read_clock(clock, count))
}

fn begin(session: &TraceSession) -> candle_graph::instrument::SpanGuard<'_> {
    session.begin_span("annotated", SpanKind::Function)
}

/// All that is timed while a capture is open.
#[measured]
fn capturing(session: &TraceSession, second_session: TraceSession, targets: &mut Targets) {
    let clock = quanta::Clock::new();
    // What the writer needs for a round's spans, so that its buffer never fills: what is timed are bursts.
    let pause = Duration::from_millis(4);
    let run = |race: Race<'_>| race.pause(pause).run(Duration::from_secs(4));

    let one = run(floor("one span, capturing", &clock)
        .runner(OURS, BURST, |count| repeat(count, annotated))
        .runner(METHOD, BURST, |count| {
            let model = Model { size: 3 };
            repeat(count, || {
                black_box(model.method());
            })
        })
        .runner(GENERIC, BURST, |count| {
            let model = Model { size: 3 };
            repeat(count, || {
                black_box(model.generic(1u32));
            })
        })
        .runner(THEIRS, BURST, |count| {
            repeat(count, || drop(black_box(begin(session))))
        }));
    one.print(&[TSC, THEIRS]);
    targets.at_most(
        "one span capturing / two TSC reads",
        one.ratio(OURS, TSC),
        1.6,
    );

    let nested = run(floor("four nested spans, capturing", &clock)
        .runner(OURS, BURST / 4, |count| repeat(count, outermost))
        .runner(THEIRS, BURST / 4, |count| {
            repeat(count, || {
                let _guards = (
                    begin(session),
                    begin(session),
                    begin(session),
                    begin(session),
                );
            })
        }));
    nested.print(&[TSC, THEIRS]);
    let ratio = nested.ratio(OURS, TSC) / 4.0;
    targets.at_most("each of four nested spans / two TSC reads", ratio, 1.6);

    let handle = candle_profiler::current();
    let mut floor_pair = Pair::new(|turns| {
        let clock = quanta::Clock::new();
        turns.each(|count| read_clock(&clock, count));
    });
    let outermost = handle.clone();
    let mut within_pair = Pair::new(move |turns| {
        let _entered = handle.enter();
        turns.each(within_one);
    });
    let mut outermost_pair = Pair::new(move |turns| {
        let _entered = outermost.enter();
        turns.each(|count| repeat(count, annotated));
    });
    let mut their_pair = Pair::new(move |turns| {
        turns.each(|count| repeat(count, || drop(black_box(begin(&second_session)))));
    });
    let threads = run(floor("a span on each of two threads, capturing", &clock)
        .runner(TSC_PAIR, 2 * BURST, |count| {
            floor_pair.turn(count, |count| read_clock(&clock, count))
        })
        .runner(OURS, 2 * BURST, |count| within_pair.turn(count, within_one))
        .runner(OUTERMOST, 2 * BURST, |count| {
            outermost_pair.turn(count, within_one)
        })
        .runner(THEIR_PAIR, 2 * BURST, |count| {
            their_pair.turn(count, |count| {
                repeat(count, || drop(black_box(begin(session))))
            })
        }));
    threads.print(&[TSC_PAIR, THEIR_PAIR]);
    let ratio = threads.ratio(OURS, TSC_PAIR);
    targets.at_most(
        "a span on each of two threads / two TSC reads there",
        ratio,
        1.6,
    );

    let futures = run(Race::new("one poll of an async fn, capturing")
        .runner(PLAIN, BURST, |count| polled(plain_future(count)))
        .runner(OURS, BURST, |count| polled(annotated_future(count))));
    futures.print(&[PLAIN]);
}

/// All that is timed where no capture is open.
fn switched_off() {
    let clock = quanta::Clock::new();
    let run = |race: Race<'_>| -> Outcome { race.run(Duration::from_secs(2)) };
    let model = Model { size: 3 };
    run(floor("one span, switched off", &clock)
        .runner(OURS, 10 * BURST, |count| repeat(count, annotated))
        .runner(METHOD, 10 * BURST, |count| {
            repeat(count, || {
                black_box(model.method());
            })
        })
        .runner("candle-profiler, four nested", 10 * BURST, |count| {
            repeat(count, outermost)
        }))
    .print(&[EMPTY, TSC]);
    run(
        Race::new("an async fn polled often, one poll, switched off")
            .runner(PLAIN, 10 * BURST, |count| polled(plain_future(count)))
            .runner(OURS, 10 * BURST, |count| polled(annotated_future(count))),
    )
    .print(&[PLAIN]);
    run(
        Race::new("an async fn that is ready at its first poll, switched off")
            .runner(PLAIN, 10 * BURST, |count| {
                repeat(count, || {
                    drive(black_box(plain_future(0)));
                })
            })
            .runner(OURS, 10 * BURST, |count| {
                repeat(count, || {
                    drive(black_box(annotated_future(0)));
                })
            }),
    )
    .print(&[PLAIN]);
}

fn main() -> anyhow::Result<()> {
    if !benches::asked_for() {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    benches::capture_every_call(folder.path())?;
    let session = benches::reference_session(&folder.path().join("reference"))?;
    let mut targets = Targets::new();
    switched_off();
    let second_session = benches::reference_session(&folder.path().join("second"))?;
    capturing(&session, second_session, &mut targets);
    targets.print();
    Ok(())
}
