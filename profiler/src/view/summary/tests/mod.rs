use std::path::Path;

use super::gradients::{Gradient, GradientState};
use super::*;
use crate::allocator::Taken;
use crate::view::text::columns;

mod page;

fn look(path: Option<&Path>) -> Look<'_> {
    Look {
        width: 80,
        colour: false,
        unoptimised: false,
        path,
    }
}

fn site(name: &str) -> SpanSite<'_> {
    SpanSite {
        name,
        ..SpanSite::default()
    }
}

fn step(name: &str, step: StepTag) -> SpanSite<'_> {
    SpanSite {
        step: Some(step),
        ..site(name)
    }
}

fn lasted(duration_ns: u64, child_ns: u64) -> ClosedSpan {
    ClosedSpan {
        duration_ns,
        child_ns,
        ..ClosedSpan::default()
    }
}

fn since(start_ns: u64, span: ClosedSpan) -> ClosedSpan {
    ClosedSpan { start_ns, ..span }
}

fn measured(duration_ns: u64, child_ns: u64) -> ClosedSpan {
    ClosedSpan {
        measured: true,
        ..lasted(duration_ns, child_ns)
    }
}

fn meta() -> Meta {
    Meta {
        entrypoint: "train_step".to_owned(),
        phase: "train".to_owned(),
        capture_step: 2,
        device: "cpu".to_owned(),
        ..Meta::default()
    }
}

fn full() -> Digest {
    let mut digest = Digest::new();
    digest.meta(Meta {
        since_previous_ns: Some(2_000_000),
        items: Some(64),
        ..meta()
    });
    for _ in 0..2 {
        digest.span(site("Linear::forward"), lasted(2_000_000, 0));
    }
    digest.span(
        step("Model::forward", StepTag::Forward),
        lasted(5_000_000, 4_000_000),
    );
    digest.span(
        step("backward", StepTag::Backward),
        since(5_000_000, lasted(4_000_000, 0)),
    );
    digest.span(
        step("AdamW::step", StepTag::Optimizer),
        since(9_000_000, lasted(500_000, 0)),
    );
    digest.span(
        site("train_step"),
        ClosedSpan {
            overhead_ns: 300_000,
            ..measured(10_300_000, 9_500_000)
        },
    );
    digest.statistics("images", "train_step", &good(&[64, 784], 0.3129));
    digest.statistics("logits", "Model::forward", &good(&[64, 10], 1.25));
    digest.statistics(
        "logits",
        "Model::forward",
        &Statistics {
            non_finite: 3,
            nan: Some(2),
            pos_inf: Some(1),
            neg_inf: Some(0),
            first_non_finite: Some(&[4, 2]),
            ..good(&[64, 10], 1.5)
        },
    );
    digest.statistics(
        "mask",
        "Model::forward",
        &Statistics {
            zeros: Some(4),
            ..flat(&[2, 2], 0.0)
        },
    );
    digest.statistics("ones", "Model::forward", &flat(&[2], 1.0));
    digest.scalar("loss", 2.316124, false);
    digest.scalar("loss", 2.1, false);
    digest.scalar("learning rate", 0.001, false);
    for (key, norm) in [("fc1.weight", 3.0), ("fc2.weight", 4.0)] {
        digest.gradient(&gradient(key, GradientState::Present, Some(norm), None));
    }
    digest.gradient(&gradient(
        "fc2.bias",
        GradientState::Missing,
        None,
        Some("cut"),
    ));
    digest.gradient(&gradient("fc1.bias", GradientState::Zero, Some(0.0), None));
    let taken = Taken {
        net: 1_024,
        peak: 12_900_000,
    };
    digest.span_memory(SiteId::OTHERS, taken, true);
    for used in [2_147_483_647, 2_147_483_648, 2_147_483_646] {
        digest.device_memory("cuda:0", used);
    }
    digest.storages(1_000);
    digest.storages(10);
    digest
}

fn good(shape: &[usize], rms: f64) -> Statistics<'_> {
    Statistics {
        shape,
        dtype: "f32",
        elements: shape.iter().product::<usize>() as u64,
        rms,
        abs_max: rms * 2.0,
        mean: rms / 10.0,
        min: Some(-rms),
        max: Some(rms * 2.0),
        nan: Some(0),
        pos_inf: Some(0),
        neg_inf: Some(0),
        zeros: Some(0),
        ..Statistics::default()
    }
}

fn flat(shape: &[usize], value: f64) -> Statistics<'_> {
    Statistics {
        abs_max: value,
        mean: value,
        min: Some(value),
        max: Some(value),
        ..good(shape, value)
    }
}

fn gradient<'a>(
    key: &'a str,
    state: GradientState,
    norm: Option<f64>,
    reason: Option<&'a str>,
) -> Gradient<'a> {
    Gradient {
        root: "loss",
        key,
        state,
        norm,
        reason,
        pass: None,
        zero_before: false,
    }
}

/// Every line but those of the paths, which are there to be copied.
fn widest(text: &str) -> usize {
    text.lines().map(columns).max().unwrap_or(0)
}

#[test]
fn a_training_step_problems_first() {
    let path = Path::new("candle-profile/train_step-step2.jsonl");
    let text = render(&full(), &look(Some(path)));
    assert_eq!(
        text,
        "\
train_step: train step 2 on cpu, 10.0 ms

problems
  first value that is not finite: logits (f32 [64, 10] in Model::forward): 3
    of 640 values (2 NaN, 1 +inf), first at [4, 2]; the last of this label
    before it: rms 1.25, abs max 2.5
  all zero: mask (f32 [2, 2] in Model::forward)
  all equal: ones (f32 [2] in Model::forward)

scalars                                         value
  loss                        2.3161 … 2.1 (2 values)
  learning rate                                 0.001
  gradient norm                    5 (1 of 4 missing)

time by part                    total  share
  between steps               2.00 ms
  forward                     5.00 ms  50.0%
  backward                    4.00 ms  40.0%
  optimizer                    500 µs   5.0%
  rest                         500 µs   5.0%

64 items, 6,400 a second (5,333 with the time between)
300 µs of the profiler's own work is taken off

memory                            peak     growth
  heap of the step's thread   12.3 MiB  +1.00 KiB
  cuda:0                      2.00 GiB       -1 B
  recorded storages           0.98 KiB

time by call site     calls    total     self   share     mean      p50      p95
  train_step              1  10.0 ms   500 µs  100.0%  10.0 ms  10.0 ms  10.0 ms
  Model::forward          1  5.00 ms  1.00 ms   50.0%  5.00 ms  5.00 ms  5.00 ms
  Linear::forward         2  4.00 ms  4.00 ms   40.0%  2.00 ms  2.00 ms  2.00 ms
  backward                1  4.00 ms  4.00 ms   40.0%  4.00 ms  4.00 ms  4.00 ms
  AdamW::step             1   500 µs   500 µs    5.0%   500 µs   500 µs   500 µs

tensors in order                      type  not finite     rms     mean  abs max
  images                     f32 [64, 784]           0  0.3129  0.03129   0.6258
  logits (last of 2)          f32 [64, 10]           3     1.5     0.15        3
  mask                          f32 [2, 2]           0       0        0        0
  ones                             f32 [2]           0       1        1        1

gradients
  loss: 4 variables, 2 present, 1 missing, 1 zero, global norm 5
    missing: fc2.bias (cut)
    zero: fc1.bias

trace  candle-profile/train_step-step2.jsonl
view   candle-profile view candle-profile/train_step-step2.jsonl \\
         -o candle-profile/train_step-step2.html
"
    );
    assert!(widest(&text) <= 80);
}

#[test]
fn an_empty_capture_says_so() {
    assert_eq!(
        render(&Digest::new(), &look(None)),
        "\
trace
  nothing is recorded inside the region: no function it calls is annotated
"
    );
    let mut digest = Digest::new();
    digest.meta(Meta {
        phase: "infer".to_owned(),
        entrypoint: "generate".to_owned(),
        rank: Some(3),
        ..meta()
    });
    digest.span(site("generate"), measured(850, 0));
    let unoptimised = Look {
        unoptimised: true,
        ..look(Some(Path::new("g.jsonl")))
    };
    assert_eq!(
        render(&digest, &unoptimised),
        "\
generate: infer call 2 on cpu, rank 3, 850 ns
built without optimisation: these times are not those of --release

time by call site             calls   total    self   share
  generate                        1  850 ns  850 ns  100.0%
  nothing is recorded inside the region: no function it calls is annotated

trace  g.jsonl
view   candle-profile view g.jsonl -o g.html
"
    );
}

#[test]
fn a_failed_capture_gives_the_reason_and_how_its_spans_ended() {
    let mut digest = Digest::new();
    digest.meta(meta());
    let how = |span: ClosedSpan, how| ClosedSpan { how, ..span };
    let panicked = HowClosed {
        panicked: true,
        ..HowClosed::default()
    };
    let cancelled = HowClosed {
        cancelled: true,
        ..HowClosed::default()
    };
    let open = HowClosed {
        open_at_end: true,
        ..HowClosed::default()
    };
    let cut = HowClosed {
        cut: true,
        ..HowClosed::default()
    };
    digest.span(site("inner"), how(lasted(1_000, 0), panicked));
    digest.span(site("inner"), how(lasted(1_000, 0), panicked));
    digest.span(site("fetch"), how(lasted(500, 0), cancelled));
    digest.span(site("guard"), how(lasted(500, 0), cut));
    digest.span(site("train_step"), how(measured(4_000, 3_000), open));
    digest.failed(
        "panicked at src/main.rs:7:5:\nindex 3 is out of bounds of a \u{1b}[31mlength of 3",
    );
    digest.note("graph cut in Model::forward (src/model.rs:40) by to_vec2");
    digest.dropped("Linear::forward", 1_200);
    digest.dropped("softmax", 34);
    digest.late(2);
    digest.waited(12_300_000);
    assert_eq!(
        render(&digest, &look(None)),
        "\
train_step: train step 2 on cpu, failed after 4.00 µs

problems
  failed: panicked at src/main.rs:7:5: index 3 is out of bounds of a
    \\u{1b}[31mlength of 3
  graph cut in Model::forward (src/model.rs:40) by to_vec2
  left by a panic: inner (2 times)
  cancelled (its future was dropped): fetch
  still open at the end: train_step
  closed early, by the end of a span around it: guard
  1,234 spans and records were left out to keep within the budget (a larger
    CANDLE_PROFILE_BUDGET keeps more): 1,200 of Linear::forward, 34 of softmax
  2 records came after the end and are not in the trace
  the program waited 12.3 ms for the trace to be written

time by call site     calls    total     self   share     mean      p50      p95
  train_step              1  4.00 µs  1.00 µs  100.0%  4.00 µs  4.00 µs  4.00 µs
  inner                   2  2.00 µs  2.00 µs   50.0%  1.00 µs  1.00 µs  1.00 µs
  fetch                   1   500 ns   500 ns   12.5%   500 ns   500 ns   500 ns
  guard                   1   500 ns   500 ns   12.5%   500 ns   500 ns   500 ns
"
    );
}

#[test]
fn ten_thousand_call_sites_fit_on_a_page_and_nothing_is_lost() {
    let mut digest = Digest::new();
    digest.meta(meta());
    for at in 1..=10_000_u64 {
        digest.span(site(&format!("block {at}")), lasted(at, 0));
    }
    let sum = 10_000 * 10_001 / 2;
    let region = SpanSite {
        measured: true,
        ..site("train_step")
    };
    digest.span(region, measured(sum, sum));
    for at in 0..10_000 {
        digest.statistics(&format!("out {at}"), "f", &good(&[2], 1.0));
        digest.scalar(&format!("s {at}"), 1.0, false);
        digest.gradient(&gradient(
            &format!("v{at}"),
            GradientState::Missing,
            None,
            None,
        ));
        digest.note(format!("note {at}"));
    }
    let text = render(&digest, &look(None));
    assert!(widest(&text) <= 80, "{text}");
    assert!(text.lines().count() < 150, "{text}");
    let line = |start: &str| {
        let found = text
            .lines()
            .find(|line| line.trim_start().starts_with(start));
        let words = found.unwrap_or_default().split_whitespace();
        words.collect::<Vec<_>>().join(" ")
    };
    // The first 4096 sites have rows; the measured one has its own. 20 of them are shown.
    let shown: u64 = (4078..=4096).sum();
    assert_eq!(line("train_step "), "train_step 1 50.0 ms 0 ns 100.0%");
    assert_eq!(line("block 4096"), "block 4096 1 4.10 µs 4.10 µs 0.0%");
    assert_eq!(line("block 4078"), "block 4078 1 4.08 µs 4.08 µs 0.0%");
    assert_eq!(line("block 4077"), "");
    let others = (sum - shown) as f64 / 1e6;
    assert_eq!(
        line("(others)"),
        format!("(others) 9,981 {others:.1} ms {others:.1} ms 99.8%")
    );
    assert!(
        text.contains("… and 4,076 more and 5,904 records of others"),
        "{text}"
    );
    assert!(text.contains("9,968 more problems of this kind"), "{text}");
    assert!(
        text.contains("    missing: v0, v1, v2, v3, v4, v5 and 9994 more\n"),
        "{text}"
    );
}

#[test]
fn recursion_and_steps_within_steps_count_once() {
    let mut digest = Digest::new();
    let forward = step("walk", StepTag::Forward);
    let inner = ClosedSpan {
        recursive: true,
        in_step: true,
        ..lasted(3_000, 0)
    };
    digest.span(forward, inner);
    digest.span(forward, lasted(5_000, 3_000));
    digest.span(site("step"), measured(10_000, 5_000));
    let text = render(&digest, &look(None));
    assert!(
        text.contains(
            "walk                    2  5.00 µs  5.00 µs   50.0%  4.00 µs  3.00 µs  5.00 µs"
        ),
        "{text}"
    );
    assert!(
        text.contains("forward                     5.00 µs  50.0%"),
        "{text}"
    );
    assert!(
        text.contains("rest                        5.00 µs  50.0%"),
        "{text}"
    );
}

#[test]
fn parts_that_run_at_once_count_once_and_only_within_the_region() {
    let mut digest = Digest::new();
    let forward = step("work", StepTag::Forward);
    let backward = step("back", StepTag::Backward);
    // From 1 to 4 µs and from 3 to 5, 1 µs of it beside a backward pass; and much that comes after the region.
    digest.span(forward, since(1_000, lasted(3_000, 0)));
    digest.span(forward, since(3_000, lasted(2_000, 0)));
    digest.span(backward, since(4_000, lasted(2_000, 0)));
    digest.span(forward, since(10_000, lasted(90_000, 0)));
    digest.span(site("step"), measured(10_000, 5_000));
    let text = render(&digest, &look(None));
    for row in [
        "forward                     4.00 µs  40.0%",
        "backward                    2.00 µs  20.0%",
        "rest                        5.00 µs  50.0%",
    ] {
        assert!(text.contains(row), "{text}");
    }
}

#[test]
fn one_of_a_kind_is_no_plural() {
    let mut digest = Digest::new();
    digest.meta(Meta {
        items: Some(1),
        ..meta()
    });
    digest.graph(GraphSize {
        nodes: 1,
        bytes: 8,
        carried: 1,
        ..GraphSize::default()
    });
    digest.dropped("softmax", 1);
    digest.late(1);
    digest.span(site("step"), measured(1_000_000, 0));
    let text = render(&digest, &look(None));
    for line in [
        "the graph of the loss holds 1 tensor of earlier steps: something",
        "1 span or record was left out to keep within the budget",
        "1 record came after the end and is not in the trace\n",
        "graph of the loss: 1 tensor, 8 B\n",
        "\n1 item, 1,000 a second\n",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn what_was_left_out_is_told_most_frequent_first_and_beside_the_parts() {
    let mut digest = Digest::new();
    digest.meta(meta());
    let forward = SpanSite {
        step: Some(StepTag::Forward),
        ..site("forward")
    };
    digest.span(forward, lasted(1_000, 0));
    digest.span(site("step"), measured(4_000, 1_000));
    let beside = "spans that were left out to keep within the budget count to what is around";
    let text = render(&digest, &look(None));
    assert!(
        text.contains("time by part") && !text.contains(beside),
        "{text}"
    );
    digest.dropped("backward, … (src/main.rs:52)", 2);
    for (name, count) in [("a", 1), ("b", 9), ("c", 3), ("d", 4), ("e", 5), ("f", 6)] {
        digest.dropped(name, count);
    }
    assert_eq!(
        digest.left_out().unwrap(),
        "30 spans and records were left out to keep within the budget (a larger CANDLE_PROFILE_BUDGET keeps more): \
         9 of b, 6 of f, 5 of e, 4 of d, 3 of c, 2 of backward and others (src/main.rs:52), 1 of others"
    );
    let text = render(&digest, &look(None));
    let (_, after) = text.split_once("time by part").unwrap();
    let (table, _) = after.split_once("time by call site").unwrap();
    assert!(table.contains(beside), "{text}");
}

#[test]
fn the_profilers_own_time_is_taken_off_totals_and_selves() {
    let mut digest = Digest::new();
    let with = |span: ClosedSpan, overhead_ns, child_overhead_ns| ClosedSpan {
        overhead_ns,
        child_overhead_ns,
        ..span
    };
    digest.span(site("layer"), with(lasted(6_000, 0), 1_000, 0));
    digest.span(site("step"), with(measured(10_000, 6_000), 3_000, 1_000));
    let text = render(&digest, &look(None));
    assert!(
        text.contains("step                            1  7.00 µs  2.00 µs  100.0%"),
        "{text}"
    );
    assert!(
        text.contains("layer                           1  5.00 µs  5.00 µs   71.4%"),
        "{text}"
    );
    assert!(
        text.contains("3.00 µs of the profiler's own work is taken off"),
        "{text}"
    );
}

#[test]
fn sites_of_one_name_are_told_apart_by_their_place() {
    let mut digest = Digest::new();
    for line in [7, 90] {
        let place = SpanSite {
            file: Some("/home/me/demo/src/model.rs"),
            line: Some(line),
            ..site("forward")
        };
        digest.span(place, lasted(line.into(), 0));
    }
    let text = render(&digest, &look(None));
    for place in ["forward (src/model.rs:7) ", "forward (src/model.rs:90) "] {
        assert!(text.contains(place), "{text}");
    }
}

#[test]
fn a_place_that_is_told_later_is_that_of_the_row() {
    let mut digest = Digest::new();
    digest.span(site("layer"), lasted(1_000, 0));
    let placed = SpanSite {
        file: Some("src/model.rs"),
        line: Some(7),
        ..site("layer")
    };
    digest.span(placed, lasted(1_000, 0));
    let region = SpanSite {
        measured: true,
        ..site("step")
    };
    digest.span(region, measured(5_000, 2_000));
    digest.span(
        SpanSite {
            name: "step",
            ..placed
        },
        lasted(500, 0),
    );
    let text = render(&digest, &look(None));
    let rows: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("  ") && line.contains("s  "))
        .collect();
    assert_eq!(rows.len(), 3, "{text}");
    assert!(
        rows[0].contains("step ") && rows[0].contains("100.0%"),
        "{text}"
    );
    assert!(rows[1].starts_with("  layer                   2"), "{text}");
    assert!(rows[2].contains("step (sr…del.rs:7)"), "{text}");
}

#[test]
fn minus_infinity_alone_and_silenced_labels_are_no_problem() {
    let mut digest = Digest::new();
    let mask = Statistics {
        non_finite: 8,
        neg_inf: Some(8),
        ..good(&[4, 4], 1.0)
    };
    digest.statistics("mask", "attend", &mask);
    let silenced = Statistics {
        nan: Some(1),
        non_finite: 1,
        alarm: Some(false),
        ..good(&[4], 1.0)
    };
    digest.statistics("may be nan", "attend", &silenced);
    assert!(!render(&digest, &look(None)).contains("problems"));
    // Where the kinds were not counted, every one is suspect.
    let unknown = Statistics {
        nan: None,
        pos_inf: None,
        neg_inf: None,
        ..mask
    };
    digest.statistics("scores", "attend", &unknown);
    digest.statistics("scores", "attend", &unknown);
    digest.statistics("after", "attend", &unknown);
    let text = render(&digest, &look(None));
    assert!(
        text.contains("not finite: scores (f32 [4, 4] in attend): 8 of 16\n"),
        "{text}"
    );
    assert!(text.contains("  not finite after that: after\n"), "{text}");
}

#[test]
fn gradients_that_overflow_in_a_step_without_optimizer_are_a_skipped_step() {
    let mut digest = Digest::new();
    digest.gradient(&gradient("w", GradientState::NonFinite, None, None));
    let skipped = "gradients of loss that are not finite: w; no optimizer ran, so the step was";
    let text = render(&digest, &look(None));
    assert!(text.contains(skipped), "{text}");
    assert!(
        text.contains("1 variable, 1 not finite, global norm not finite"),
        "{text}"
    );
    digest.span(step("adam", StepTag::Optimizer), lasted(5, 0));
    let text = render(&digest, &look(None));
    assert!(
        text.contains("gradients of loss that are not finite: w\n"),
        "{text}"
    );
}
