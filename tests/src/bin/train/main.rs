//! A small training program whose behaviour its arguments choose; the tests run it as a child process.
//!
//! `train MODE [NUMBER]`: each mode is a function of `modes`, and NUMBER is how many steps it takes (20).

mod ends;
mod exploding;
mod fork;
mod hand;
mod load;
mod model;
mod modes;
mod streams;
mod tight;

use anyhow::{Context, bail};

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mode = arguments.first().map_or("plain", String::as_str);
    let number = match arguments.get(1) {
        Some(number) => number.parse().context("NUMBER")?,
        None => 20,
    };
    match mode {
        "plain" => modes::plain(number),
        "stderr-held" => modes::stderr_held(number),
        "infer" => modes::infer(number),
        "both" => modes::both(number),
        "phases" => modes::phases(number),
        "error" => modes::error(number),
        "panic" => modes::panic(number),
        "panic-caught" => modes::panic_caught(number),
        "exit" => modes::exit(number),
        "hang" => modes::hang(),
        #[cfg(unix)]
        "fork" => fork::steps(number),
        #[cfg(unix)]
        "fork-beside-threads" => fork::beside_threads(number),
        "numbered" => modes::numbered(number),
        "accumulate" => modes::accumulate(number),
        "empty" => modes::empty(number, u32::MAX),
        "empty-first" => modes::empty(number, 4),
        "threads" => modes::threads(number),
        "unmeasured" => modes::unmeasured(number),
        "untouched" => modes::untouched(),
        "configure" => modes::configured(number),
        "configure-late" => modes::configured_late(number),
        "capture-next" => modes::capture_next(number),
        "rank" => modes::ranked(number),
        "awaited" => modes::awaited(number),
        "burst" => modes::burst(number),
        "flood" => modes::flood(number),
        "wish-taken-back" => modes::wish_taken_back(number),
        "explode" => exploding::explode(number),
        "masked-row" => exploding::masked_row(number),
        "log-zero" => exploding::log_of_zero(number),
        "layers" => exploding::layers(number),
        "explode-caught" => exploding::caught(number),
        "leak" => modes::leak(number),
        "masks" => exploding::masks(number),
        "skipped" => exploding::skipped(number),
        "samples" => modes::samples(number),
        "hand-exit" => hand::exit(),
        "hand-forget" => hand::forget(),
        "hand-hang" => hand::hang(),
        "load-spans" => load::spans(number),
        "load-endless" => load::endless(number),
        "load-labels" => load::labels(number),
        "load-names" => load::names(number),
        "load-long-labels" => load::long_labels(number),
        "load-threads" => load::threads(number),
        "load-captures" => load::captures(number),
        "tight-futures" => tight::futures(number),
        "tight-threads" => tight::threads(number),
        "tight-reason" => tight::reason(number),
        "tight-gradients" => tight::gradients(number),
        "tight-names" => tight::names(number),
        "odd-name-once" => load::odd_name_once(),
        "no-handles" => load::no_handles(number),
        #[cfg(unix)]
        "streams-closed" => streams::closed(number),
        #[cfg(unix)]
        "pipe-ends" => streams::pipe_ends(number),
        "odd-names" => load::odd_names(),
        how if how.starts_with("end-") => ends::run(&how["end-".len()..]),
        _ => bail!("there is no mode {mode}"),
    }
}
