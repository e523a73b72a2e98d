//! candle's graph of operations, as far as its public functions show it.

use std::collections::HashMap;
use std::fmt::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use candle_core::backprop::GradStore;
use candle_core::{Device, Tensor, TensorId};

use super::variables::Entry;
use crate::instrument::candle::tensor_dense_bytes;
use crate::record::{Backward, Evidence, recorder};
use crate::view::summary::GraphSize;

/// Tensors that may be visited in one region to find out what arguments depend on; then it is taken as unknown.
const MOST_VISITS: u64 = 4_000_000;

/// So many of the tensors that an argument was made of are kept, those that are nearest to it.
const NEAR: usize = 256;

/// What a tensor comes from.
#[derive(Clone, Default)]
pub(super) struct Origin {
    /// The variables that it depends on.
    pub(super) vars: Arc<[u64]>,
    /// The tensors that it was made of and itself, as far as they are near.
    pub(super) made_of: Arc<[u64]>,
}

/// The number that candle counts its tensors by.
///
/// It is private, but its `Debug` form shows it. Later tensors have larger ones.
pub(crate) fn serial(id: TensorId) -> u64 {
    struct Digits(u64);
    impl Write for Digits {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            for digit in text.bytes().filter(u8::is_ascii_digit) {
                self.0 = self
                    .0
                    .wrapping_mul(10)
                    .wrapping_add(u64::from(digit - b'0'));
            }
            Ok(())
        }
    }
    let mut digits = Digits(0);
    let _ = write!(digits, "{id:?}");
    digits.0
}

/// The number of a tensor made now.
fn now() -> u64 {
    Tensor::new(0u8, &Device::Cpu).map_or(0, |probe| serial(probe.id()))
}

/// The number of a tensor made when the first measured call began, which profiling saw.
static FIRST: OnceLock<u64> = OnceLock::new();

/// A measured call begins.
pub(crate) fn mark_first() {
    FIRST.get_or_init(now);
}

/// Numbers that are kept for tensors that may be asked about again.
const MOST_KNOWN: usize = 1 << 20;

/// What tensors come from, by the tensors' numbers.
#[derive(Default)]
struct Known {
    of: HashMap<u64, Origin>,
    /// The last variables found: what follows in a chain mostly depends on the same.
    last: Arc<[u64]>,
    size: usize,
}

impl Known {
    fn learn(&mut self, tensor: u64, variables: Vec<u64>, made_of: Arc<[u64]>) -> Origin {
        self.size += 1 + made_of.len();
        if *self.last != *variables {
            self.size += variables.len();
            self.last = variables.into();
        }
        let origin = Origin {
            vars: Arc::clone(&self.last),
            made_of,
        };
        if self.size <= MOST_KNOWN {
            self.of.insert(tensor, origin.clone());
        }
        origin
    }
}

/// What watching the graph of a region needs to know.
pub(crate) struct Watch {
    /// The number of a tensor made when the region began.
    pub(super) since: u64,
    visits: AtomicU64,
    /// What has been found out of tensors: no two ever have the same number.
    known: Mutex<Known>,
    /// The variables that the last loss depends on.
    reached: Mutex<Option<Vec<Entry>>>,
}

impl Watch {
    pub(crate) fn begin() -> Self {
        Self {
            since: now(),
            visits: AtomicU64::new(0),
            known: Mutex::default(),
            reached: Mutex::new(None),
        }
    }

    /// What a tensor comes from; `None`: too much has been visited in this region.
    pub(super) fn origin(&self, tensor: &Tensor) -> Option<Origin> {
        let own = serial(tensor.id());
        if tensor.is_variable() {
            return Some(Origin {
                vars: Arc::new([own]),
                made_of: Arc::default(),
            });
        }
        if let Some(known) = self.known().of.get(&own) {
            return Some(known.clone());
        }
        if self.visits.load(Ordering::Relaxed) > MOST_VISITS {
            return None;
        }
        let nodes = tensor.sorted_nodes();
        self.visits.fetch_add(nodes.len() as u64, Ordering::Relaxed);
        let variables = nodes.iter().filter(|node| node.is_variable());
        let variables = variables.map(|node| serial(node.id())).collect();
        let made = nodes.iter().filter(|node| !node.is_variable());
        let made_of = made.take(NEAR).map(|node| serial(node.id())).collect();
        Some(self.known().learn(own, variables, made_of))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The variables that the last loss depends on.
    pub(crate) fn last_reached(&self) -> Option<Vec<Entry>> {
        self.reached
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// The variables that a tensor depends on, in the order of their use.
pub(crate) fn reached(tensor: &Tensor) -> Vec<Entry> {
    entries_of(&tensor.sorted_nodes())
}

fn entries_of(nodes: &[&Tensor]) -> Vec<Entry> {
    let variables = nodes.iter().rev().filter(|node| node.is_variable());
    variables.map(|node| Entry::of(None, node)).collect()
}

/// Tells of a loss that a backward pass starts from, and of what that gave where it is known: gives the variables that
/// the loss depends on. Nothing is told of a tensor that is no single number.
pub(crate) fn differentiated(
    loss: &Tensor,
    grads: Option<&GradStore>,
    emit: &mut dyn FnMut(Evidence),
) -> Vec<Entry> {
    if grads.is_none() && (loss.elem_count() != 1 || !loss.dtype().is_float()) {
        return Vec::new();
    }
    let nodes = loss.sorted_nodes();
    let session = recorder().and_then(|recorder| recorder.session());
    let watch = session.as_ref().and_then(|session| session.watch.as_ref());
    let mut graph = size(&nodes);
    let made = nodes.iter().filter(|node| !node.is_variable());
    let mut made_of: Vec<u64> = made.map(|node| serial(node.id())).collect();
    made_of.sort_unstable();
    if let Some(watch) = watch {
        let first = FIRST.get().copied().unwrap_or(u64::MAX);
        let old = |made: &&u64| first <= **made && **made < watch.since;
        graph.carried = made_of.iter().filter(old).count() as u64;
    }
    if let Some(grads) = grads {
        graph.constant_bytes = constant_bytes(&nodes, grads);
    }
    let reached = entries_of(&nodes);
    if let Some(watch) = watch {
        let mut last = watch.reached.lock().unwrap_or_else(PoisonError::into_inner);
        *last = Some(reached.clone());
    }
    emit(Evidence::Backward(Box::new(Backward {
        root: Some(serial(loss.id())),
        reached: Some(reached.iter().map(|entry| entry.serial).collect()),
        made_of: Some(made_of),
        entries: grads.map(entries),
        graph: Some(graph),
    })));
    reached
}

/// A backward pass of which only the result is known.
pub(crate) fn stored(grads: &GradStore) -> Backward {
    Backward {
        root: None,
        reached: None,
        made_of: None,
        entries: Some(entries(grads)),
        graph: None,
    }
}

/// The size of a graph.
pub(super) fn size(nodes: &[&Tensor]) -> GraphSize {
    let made = nodes.iter().filter(|node| !node.is_variable());
    GraphSize {
        nodes: nodes.len() as u64,
        bytes: made.fold(0, |sum: u64, node| {
            sum.saturating_add(tensor_dense_bytes(node))
        }),
        ..GraphSize::default()
    }
}

/// What a store of gradients has entries of, with the elements of each.
fn entries(grads: &GradStore) -> Vec<(u64, usize)> {
    let ids = grads.get_ids();
    ids.filter_map(|id| Some((serial(*id), grads.get_id(*id)?.elem_count())))
        .collect()
}

/// The bytes of gradients that belong to no variable: candle keeps those of constants too.
fn constant_bytes(nodes: &[&Tensor], grads: &GradStore) -> u64 {
    let variables = nodes.iter().filter(|node| node.is_variable());
    let bytes = |id| grads.get_id(id).map_or(0, tensor_dense_bytes);
    let all = grads
        .get_ids()
        .fold(0, |sum: u64, id| sum.saturating_add(bytes(*id)));
    let theirs = variables.fold(0, |sum: u64, node| sum.saturating_add(bytes(node.id())));
    all.saturating_sub(theirs)
}

#[cfg(test)]
mod tests {
    use candle_core::{DType, Var};

    use super::*;

    #[test]
    fn later_tensors_have_larger_numbers() {
        let (a, b) = (now(), now());
        assert!(0 < a && a < b, "{a} {b}");
    }

    #[test]
    fn what_a_tensor_depends_on_is_found_out_once() {
        let device = Device::Cpu;
        let (v, w) = (
            Var::new(1f32, &device).unwrap(),
            Var::new(2f32, &device).unwrap(),
        );
        let x = (v.as_tensor() * w.as_tensor()).unwrap().exp().unwrap();
        let y = x.exp().unwrap();
        let watch = Watch::begin();
        let mut expected = [serial(v.id()), serial(w.id())];
        expected.sort_unstable();
        for _ in 0..3 {
            for tensor in [&x, &y] {
                let mut found = watch.origin(tensor).unwrap().vars.to_vec();
                found.sort_unstable();
                assert_eq!(found, expected);
            }
        }
        // Four tensors make the first, five the second.
        assert_eq!(watch.visits.load(Ordering::Relaxed), 4 + 5);
        assert_eq!(*watch.origin(w.as_tensor()).unwrap().vars, [serial(w.id())]);
    }

    #[test]
    fn a_graph_is_counted_without_what_does_not_lead_to_variables() {
        let device = Device::Cpu;
        let w = Var::ones((4, 4), DType::F32, &device).unwrap();
        let x = Tensor::ones((2, 4), DType::F32, &device).unwrap();
        let unrelated = x.exp().unwrap();
        let y = ((x.matmul(&w).unwrap() + unrelated).unwrap().sqr())
            .unwrap()
            .sum_all()
            .unwrap();
        // w, matmul, add, sqr, and the sum in two steps or one.
        let found = size(&y.sorted_nodes());
        assert!((5..=6).contains(&found.nodes), "{found:?}");
        assert_eq!(found.bytes % 4, 0);
        assert!(found.bytes >= 3 * 2 * 4 * 4 + 4, "{found:?}");

        let grads = y.backward().unwrap();
        let mut passes = Vec::new();
        let reached = differentiated(&y, Some(&grads), &mut |evidence| {
            if let Evidence::Backward(pass) = evidence {
                passes.push(pass);
            }
        });
        assert_eq!(reached.len(), 1);
        assert_eq!(passes[0].reached, Some(vec![serial(w.id())]));
        // The gradients of `x` and `unrelated`.
        assert_eq!(passes[0].graph.unwrap().constant_bytes, 2 * 2 * 4 * 4);
    }
}
