//! What the statistics of a tensor cost, by dtype, size and layout, beside `candle-graph` and beside reading the memory.
//!
//! ```text
//! cargo bench --workspace --bench statistics
//! ```
//!
//! Both write a `tensor_stats` line through a session by hand, which is what `candle-graph` offers: 4 numbers there, all
//! of them here.

use std::hint::black_box;
use std::time::Duration;

use benches::{Race, Targets, repeat};
use candle_core::{DType, Device, Result, Tensor};
use candle_graph::SpanKind as TheirKind;
use candle_profiler::SpanKind as OurKind;

const SIZES: [(usize, &str); 3] = [(256, "64 Ki"), (1024, "1 Mi"), (4096, "16 Mi")];

const DTYPES: [DType; 6] = [
    DType::F32,
    DType::BF16,
    DType::F16,
    DType::F64,
    DType::I64,
    DType::U8,
];

/// How a square of elements lies in memory.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Layout {
    Contiguous,
    Transposed,
    /// The middle half of each row of a square of twice the size.
    Narrowed,
    /// One row shown again and again.
    Broadcast,
    /// A causal mask: contiguous, half of it -inf.
    Mask,
}

const LAYOUTS: [Layout; 5] = [
    Layout::Contiguous,
    Layout::Transposed,
    Layout::Narrowed,
    Layout::Broadcast,
    Layout::Mask,
];

/// Numbers of both signs in no order.
fn numbers(rows: usize, columns: usize) -> Result<Tensor> {
    let mut state = 1u32;
    let values: Vec<f32> = (0..rows * columns)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 20) as f32 - 8.0
        })
        .collect();
    Tensor::from_vec(values, (rows, columns), &Device::Cpu)
}

/// A tensor of `side` by `side` elements.
fn tensor(side: usize, dtype: DType, layout: Layout) -> Result<Tensor> {
    match layout {
        Layout::Contiguous => numbers(side, side)?.to_dtype(dtype),
        Layout::Transposed => numbers(side, side)?.to_dtype(dtype)?.t(),
        Layout::Narrowed => {
            let wide = numbers(side, 2 * side)?.to_dtype(dtype)?;
            wide.narrow(1, side / 2, side)
        }
        Layout::Broadcast => {
            let row = numbers(1, side)?.to_dtype(dtype)?;
            row.broadcast_as((side, side))
        }
        Layout::Mask => {
            let mask: Vec<f32> = (0..side * side)
                .map(|at| {
                    if at % side > at / side {
                        f32::NEG_INFINITY
                    } else {
                        0.0
                    }
                })
                .collect();
            Tensor::from_vec(mask, (side, side), &Device::Cpu)?.to_dtype(dtype)
        }
    }
}

/// The bytes of as many elements as the tensor shows, as 64-bit numbers to be read.
fn memory(side: usize, dtype: DType) -> Vec<u64> {
    vec![1; side * side * dtype.size_in_bytes() / 8]
}

/// How many times as fast as candle-graph this should be.
fn aim(side: usize, dtype: DType, layout: Layout) -> Option<f64> {
    if !matches!(dtype, DType::F32 | DType::BF16) {
        return None;
    }
    match (side, layout) {
        (4096, Layout::Contiguous) => Some(25.0),
        (4096, Layout::Transposed) => Some(60.0),
        (256, _) => Some(10.0),
        _ => None,
    }
}

struct Sessions {
    ours: candle_profiler::TraceSession,
    theirs: candle_graph::TraceSession,
}

/// Times one tensor, prints its line.
fn compare(
    sessions: &Sessions,
    (side, size): (usize, &str),
    dtype: DType,
    layout: Layout,
    targets: &mut Targets,
) -> anyhow::Result<()> {
    let tensor = tensor(side, dtype, layout)?;
    let memory = memory(side, dtype);
    let ours = sessions.ours.begin_span("statistics", OurKind::Function);
    let theirs = sessions
        .theirs
        .begin_span("statistics", TheirKind::Function);
    let (our_id, their_id) = (ours.id(), theirs.id());
    // Turns of a millisecond or so.
    let batch = (1 << 20) / (side * side) as u64;
    let outcome = Race::new("")
        .runner("read", batch.max(1), |count| {
            repeat(count, || {
                let sum = black_box(&memory)
                    .iter()
                    .fold(0u64, |sum, x| sum.wrapping_add(*x));
                black_box(sum);
            })
        })
        .runner("ours", batch.max(1), |count| {
            repeat(count, || {
                let recorded = sessions.ours.record_tensor_stats(our_id, "x", &tensor);
                black_box(recorded.is_ok());
            })
        })
        .runner("theirs", (batch / 16).max(1), |count| {
            repeat(count, || {
                let recorded = sessions.theirs.record_tensor_stats(their_id, "x", &tensor);
                black_box(recorded.is_ok());
            })
        })
        .run(Duration::from_millis(300));
    let bytes = (side * side * dtype.size_in_bytes()) as f64;
    let (ours, theirs, read) = (
        outcome.least("ours"),
        outcome.least("theirs"),
        outcome.least("read"),
    );
    let dtype_name = format!("{dtype:?}").to_lowercase();
    let layout_name = format!("{layout:?}").to_lowercase();
    println!(
        "  {size:>5}  {dtype_name:<5} {layout_name:<10} {:>10.1} {:>12.1} {:>9.1} {:>10.1} {:>8.1}",
        ours / 1e3,
        theirs / 1e3,
        bytes / ours,
        ours / read,
        theirs / ours,
    );
    if let Some(least) = aim(side, dtype, layout) {
        targets.at_least(
            format!("{size} {dtype_name} {layout_name}: candle-graph / candle-profiler"),
            theirs / ours,
            least,
        );
    }
    Ok(())
}

/// Whether the table has this line: of the larger sizes what differs most, for they take candle-graph a second a turn.
fn is_shown(side: usize, dtype: DType, layout: Layout) -> bool {
    let is_float = !matches!(dtype, DType::I64 | DType::U8);
    let is_usual = matches!(dtype, DType::F32 | DType::BF16);
    match layout {
        Layout::Contiguous | Layout::Transposed => true,
        Layout::Mask => is_float && (side < 1024 || is_usual),
        Layout::Narrowed | Layout::Broadcast => side < 1024 || (side > 1024 && is_usual),
    }
}

fn table() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let run = candle_profiler::ProfileRun::training("bench", 1, "cpu");
    let sessions = Sessions {
        ours: candle_profiler::TraceSession::open(folder.path().join("ours"), run)?,
        theirs: benches::reference_session(&folder.path().join("theirs"))?,
    };
    let mut targets = Targets::new();
    println!("statistics of a tensor, least times in µs");
    println!(
        "  {:>5}  {:<5} {:<10} {:>10} {:>12} {:>9} {:>10} {:>8}",
        "size", "dtype", "layout", "ours", "candle-graph", "GB/s", "/ reading", "faster"
    );
    for size in SIZES {
        for dtype in DTYPES {
            for layout in LAYOUTS {
                if is_shown(size.0, dtype, layout) {
                    compare(&sessions, size, dtype, layout, &mut targets)?;
                }
            }
        }
    }
    targets.print();
    Ok(())
}

fn main() -> anyhow::Result<()> {
    if !benches::asked_for() {
        return Ok(());
    }
    // Both on one thread: ours always is, and on a machine that is shared candle's threads wait for each other.
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    one.install(table)
}
