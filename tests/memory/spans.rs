//! `mem_net` and `mem_peak` of spans, and the weight of what is recorded.

use std::hint::black_box;

use candle_core::{DType, Device, Result, Tensor, Var};
use candle_nn::{AdamW, Optimizer, ParamsAdamW};
use candle_profiler::{
    ObserveExt, backward_step, current, profile_span, profile_step, profiled, record_scalar,
    record_stats, span,
};
use tests::capturing::{capture, captures, region};
use tests::trace::Span;

fn memory(span: &Span) -> (i64, u64) {
    let net = span.end["mem_net"].as_i64().expect("mem_net");
    (net, span.end["mem_peak"].as_u64().expect("mem_peak"))
}

#[profile_span]
fn kept() -> Vec<u8> {
    black_box(vec![1; 1000])
}

#[profile_span]
fn given_back(size: usize) {
    drop(black_box(vec![0u8; size]));
}

#[profile_span]
fn mixed() -> Vec<u8> {
    let first = kept();
    given_back(5000);
    let mut second = Vec::with_capacity(100);
    second.extend_from_slice(&first);
    drop(first);
    second
}

#[test]
fn a_span_has_its_balance_and_its_peak() {
    let (_value, trace) = region(|| {
        let value = mixed();
        given_back(10);
        value
    });
    assert_eq!(memory(trace.named("memory::spans::kept")[0]), (1000, 1000));
    assert_eq!(
        memory(trace.named("memory::spans::given_back")[0]),
        (0, 5000)
    );
    assert_eq!(memory(trace.named("memory::spans::given_back")[1]), (0, 10));
    let mixed = trace.span("memory::spans::mixed");
    let (net, peak) = memory(mixed);
    // The second vector grew by doubling or to what was needed.
    assert!((1000..=2000).contains(&net), "{net}");
    assert_eq!(peak, 6000);
    let (measured, high) = memory(trace.measured());
    assert_eq!((measured, high), (net, 6000));
}

#[test]
fn the_profiler_s_own_memory_is_not_counted() {
    #[profile_span(name = "named {text}")]
    #[record_stats("label {text} {#}")]
    fn busy(text: &str, tensor: &Tensor) -> Tensor {
        let _span = span("inner");
        record_scalar("x", &1.0);
        let _handle = current();
        tensor.clone()
    }
    let tensor = Tensor::zeros((8, 8), DType::F32, &Device::Cpu).expect("a tensor");
    let (_values, trace) = region(|| {
        let values: [Tensor; 3] = std::array::from_fn(|_| busy("a rather long text", &tensor));
        values
    });
    for span in &trace.spans[1..] {
        assert_eq!(memory(span), (0, 0), "{}", span.name);
    }
}

#[test]
fn each_thread_counts_its_own() {
    let ((), trace) = region(|| {
        let handle = current();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _entered = handle.enter();
                drop(black_box(kept()));
            });
        });
        let _span = span("quiet");
    });
    assert_eq!(memory(trace.span("memory::spans::kept")), (1000, 1000));
    assert_eq!(memory(trace.span("quiet")), (0, 0));
}

#[test]
fn panics_and_cut_spans_tell_theirs_too() {
    let ((), trace) = region(|| {
        let caught = std::panic::catch_unwind(|| {
            let _span = span("left by a panic");
            let _kept = black_box(vec![0u8; 300]);
            std::panic::resume_unwind(Box::new(()));
        });
        assert!(caught.is_err());
        let outer = span("outer");
        let _inner = span("inner");
        drop(outer);
    });
    let (_, peak) = memory(trace.span("left by a panic"));
    assert!(peak >= 300, "{peak}");
    memory(trace.span("outer"));
    memory(trace.span("inner"));
}

/// A small training, with everything that can be recorded.
struct Training {
    weight: Var,
    optimizer: AdamW,
}

impl Training {
    fn new() -> Result<Self> {
        let weight = (0..64).map(|at| (at as f32).sin()).collect::<Vec<_>>();
        let weight = Var::from_tensor(&Tensor::from_vec(weight, (8, 8), &Device::Cpu)?)?;
        candle_profiler::name_vars("model", [("weight", &weight)]);
        let optimizer = AdamW::new(vec![weight.clone()], ParamsAdamW::default())?;
        Ok(Self { weight, optimizer })
    }

    fn step(&mut self, x: &Tensor) -> Result<()> {
        let linear = candle_nn::Linear::new(self.weight.as_tensor().clone(), None);
        let hidden = x.apply(&profiled("linear", linear))?;
        let loss = loss_of(&hidden.relu().observe("relu")?)?;
        backward_step(&mut self.optimizer, &loss)
    }

    fn bits(&self) -> Result<Vec<u32>> {
        let values = self.weight.flatten_all()?.to_vec1::<f32>()?;
        Ok(values.into_iter().map(f32::to_bits).collect())
    }
}

#[profile_step(forward)]
#[record_stats("loss")]
#[record_scalar("loss")]
fn loss_of(#[record_stats] hidden: &Tensor) -> Result<Tensor> {
    hidden.sqr()?.mean_all()
}

fn input() -> Result<Tensor> {
    Tensor::arange(0f32, 32.0, &Device::Cpu)?.reshape((4, 8))? / 10.0
}

fn trained(
    steps: usize,
    mut step: impl FnMut(&mut Training, &Tensor) -> Result<()>,
) -> Result<Vec<u32>> {
    let x = input()?;
    let mut training = Training::new()?;
    for _ in 0..steps {
        step(&mut training, &x)?;
    }
    training.bits()
}

#[test]
fn recording_changes_no_bit_of_the_weights() -> Result<()> {
    let plain = trained(20, Training::step)?;
    let (recorded, traces) = captures(|| {
        trained(20, |training, x| {
            candle_profiler::measure_with("recorded", || training.step(x))
        })
    });
    assert_eq!(traces.len(), 20);
    assert!(
        traces
            .iter()
            .all(|trace| !trace.kind("tensor_stats").is_empty())
    );
    assert_eq!(recorded?, plain);
    Ok(())
}

/// The storage of a tensor of 4 MiB is given back when the program drops its last use of it, whatever was recorded.
#[test]
fn no_tensor_outlives_its_event() {
    const SIZE: i64 = 4 << 20;
    #[profile_span]
    fn looked_at() -> Result<()> {
        let x = Tensor::ones((1024, 1024), DType::F32, &Device::Cpu)?;
        record_stats("x", &x);
        record_stats("rows", &[x.narrow(0, 0, 3)?, x.t()?]);
        let y = (&x).observe("again").affine(2.0, 0.0).observe("doubled")?;
        drop(x);
        let z = profiled("activation", candle_nn::Activation::Relu);
        let y = y.apply(&z)?;
        record_scalar("sum", &y.sum_all()?);
        Ok(())
    }
    let (done, trace) = capture(|| {
        let _measured = candle_profiler::measure("region");
        looked_at()?;
        looked_at()
    });
    done.expect("tensors");
    let spans = trace.named("memory::spans::looked_at");
    assert_eq!(spans.len(), 2);
    for span in spans {
        let (net, peak) = memory(span);
        assert!(net.abs() < 4096, "{net} bytes are kept");
        // At most two of the three are there at once.
        assert!(
            (2 * SIZE..3 * SIZE).contains(&i64::try_from(peak).expect("bytes")),
            "{peak}"
        );
    }
}
