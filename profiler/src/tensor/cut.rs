//! Looks at the tensors that go into a call and come out of it: does the graph end in it?
//!
//! Only facts are taken down here; [`crate::record`] judges them when the region is over. For a call whose arguments
//! are still there when it ends, all is done then: [`crossed`]. Arguments that the call takes are looked at before it,
//! by [`given`]. Both do nothing outside the capture of a region that trains.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::Arc;

use candle_core::{CpuStorage, Storage, Tensor};

use super::graph::{Origin, Watch, serial};
use super::{mask, tensor_event};
use crate::capture::Plane;
use crate::record::{Crossed, Crossing, Ended, Evidence, RecordSite, Session, Untracked, recorder};

/// Shows each tensor of some values to the function it is given.
pub(crate) type Visit<'a> = &'a dyn Fn(&mut dyn FnMut(&Tensor));

/// The most outputs of one call that are looked at.
const MOST_OUTPUTS: usize = 16;

/// What a call took, of which nothing is left when it ends. An option, so that next to nothing is to be dropped where
/// nothing was looked at.
#[derive(Default)]
pub struct Given(Option<Box<[Input]>>);

impl Given {
    /// This and what else the call took.
    pub(crate) fn join(&mut self, other: Self) {
        let mut inputs = std::mem::take(self).into_inputs();
        inputs.extend(other.into_inputs());
        *self = Self::of(inputs);
    }

    fn of(inputs: Vec<Input>) -> Self {
        Self((!inputs.is_empty()).then(|| inputs.into_boxed_slice()))
    }

    fn into_inputs(self) -> Vec<Input> {
        self.0.map_or_else(Vec::new, <[Input]>::into_vec)
    }
}

/// A float tensor that went in.
struct Input {
    elements: usize,
    storage: usize,
    tracked: bool,
    /// What it comes from; `None`: not known.
    origin: Option<Origin>,
}

/// The capture of a region that trains, if one is current.
fn training() -> Option<Arc<Session>> {
    let session = recorder()?.session()?;
    session.watch.is_some().then_some(session)
}

/// Looks at what a call takes, before it does; a part of what is recorded of it.
pub(crate) fn given(taken: Visit<'_>) -> Given {
    let Some(session) = training() else {
        return Given::default();
    };
    let Some(watch) = &session.watch else {
        return Given::default();
    };
    let mut inputs = Vec::new();
    taken(&mut |tensor| inputs.extend(Input::of(tensor, watch)));
    Given::of(inputs)
}

/// Looks at what came out of a call that is just over, or about to be: `at` is its span, or where it happened.
///
/// `lent`: the arguments that are still there. `site`: the place of a function without a span of its own.
pub(crate) fn crossed(
    at: &Ended,
    what: Crossed,
    site: Option<&'static RecordSite>,
    given: Given,
    lent: Visit<'_>,
    outputs: Visit<'_>,
) {
    at.record(|emit| look(at, what, site, given, lent, outputs, emit));
}

/// The same as a part of what is recorded of a call.
pub(crate) fn look(
    at: &Ended,
    what: Crossed,
    site: Option<&'static RecordSite>,
    given: Given,
    lent: Visit<'_>,
    outputs: Visit<'_>,
    emit: &mut dyn FnMut(Evidence),
) {
    let Some(recorder) = recorder() else {
        return;
    };
    if !at.wants(Plane::Gradients) {
        return;
    }
    let mut inputs = given.into_inputs();
    if recorder.depth() == TOP {
        built(outputs, emit);
    }
    let Some(session) = recorder.session() else {
        return;
    };
    let Some(watch) = &session.watch else {
        return;
    };
    let mut ends = false;
    outputs(&mut |tensor| ends |= is_end(tensor));
    if !ends {
        return;
    }
    lent(&mut |tensor| inputs.extend(Input::of(tensor, watch)));
    if let Some(crossing) = crossing(what, &inputs, outputs) {
        let crossing = Box::new(crossing);
        emit(Evidence::Crossing { crossing, site });
    }
}

/// The depth of a call right under the measured one.
const TOP: u64 = 2;

/// Tells how large a graph came out.
fn built(outputs: Visit<'_>, emit: &mut dyn FnMut(Evidence)) {
    let (mut nodes, mut bytes) = (0, 0);
    outputs(&mut |tensor| {
        if tensor.track_op() && !tensor.is_variable() {
            let size = super::graph::size(&tensor.sorted_nodes());
            nodes = nodes.max(size.nodes);
            bytes = bytes.max(size.bytes);
        }
    });
    if nodes > 0 {
        emit(Evidence::Built { nodes, bytes });
    }
}

/// A float tensor that no gradient flows back from.
fn is_end(tensor: &Tensor) -> bool {
    tensor.dtype().is_float() && !tensor.track_op()
}

fn crossing(what: Crossed, inputs: &[Input], outputs: Visit<'_>) -> Option<Crossing> {
    let tracked: Vec<&Input> = inputs.iter().filter(|input| input.depends()).collect();
    if tracked.is_empty() {
        return None;
    }
    let mut crossing = Crossing {
        what,
        meant: DETACHED.get() > 0,
        inputs: tracked.iter().map(|input| input.elements).collect(),
        vars: Some(Vec::new()),
        made_of: Some(Vec::new()),
        outputs: Vec::new(),
    };
    for input in &tracked {
        let own = input.origin.as_ref();
        crossing.vars = crossing.vars.and_then(|all| Some(joined(all, &own?.vars)));
        crossing.made_of = crossing
            .made_of
            .and_then(|all| Some(joined(all, &own?.made_of)));
    }
    outputs(&mut |tensor| {
        if !is_end(tensor) || crossing.outputs.len() >= MOST_OUTPUTS {
            return;
        }
        let (serial, storage) = (serial(tensor.id()), storage_of(tensor));
        // An untracked argument that is handed on, or a part of one, says nothing of the others.
        let own = inputs.iter().find(|input| input.storage == storage);
        match own {
            Some(input) if !input.tracked => return,
            // Only `detach` gives the elements of something tracked without tracking them.
            Some(_) => crossing.meant = true,
            None => {}
        }
        crossing.outputs.push(Untracked {
            serial,
            elements: tensor.elem_count(),
            rank: tensor.rank(),
            fresh: fills_its_storage(tensor),
            mask: mask::is_mask(tensor),
            event: Box::new(tensor_event(None, tensor)),
        });
    });
    (!crossing.outputs.is_empty()).then_some(crossing)
}

fn joined(mut all: Vec<u64>, own: &[u64]) -> Vec<u64> {
    if all.is_empty() {
        all.extend_from_slice(own);
    } else {
        let known: std::collections::HashSet<u64> = all.iter().copied().collect();
        all.extend(own.iter().filter(|var| !known.contains(var)));
    }
    all
}

impl Input {
    fn of(tensor: &Tensor, watch: &Watch) -> Option<Self> {
        if !tensor.dtype().is_float() {
            return None;
        }
        let tracked = tensor.track_op();
        Some(Self {
            elements: tensor.elem_count(),
            storage: storage_of(tensor),
            tracked,
            origin: match tracked {
                true => watch.origin(tensor),
                false => Some(Origin::default()),
            },
        })
    }

    /// Whether it depends on a variable: `round` and comparisons give tensors that say so and do not.
    fn depends(&self) -> bool {
        let origin = self.origin.as_ref();
        self.tracked && origin.is_none_or(|origin| !origin.vars.is_empty())
    }
}

/// The address of a tensor's storage, which its views share while it lives.
fn storage_of(tensor: &Tensor) -> usize {
    let (storage, _) = tensor.storage_and_layout();
    std::ptr::from_ref::<Storage>(&storage).addr()
}

/// Whether it is no part of a larger storage; where that cannot be told, it is none.
fn fills_its_storage(tensor: &Tensor) -> bool {
    let (storage, layout) = tensor.storage_and_layout();
    let elements = match &*storage {
        Storage::Cpu(CpuStorage::F32(all)) => all.len(),
        Storage::Cpu(CpuStorage::F64(all)) => all.len(),
        Storage::Cpu(CpuStorage::F16(all)) => all.len(),
        Storage::Cpu(CpuStorage::BF16(all)) => all.len(),
        _ => tensor.elem_count(),
    };
    layout.start_offset() == 0 && elements == tensor.elem_count()
}

thread_local! {
    /// How many guards of [`detached`] this thread holds.
    static DETACHED: Cell<u32> = const { Cell::new(0) };
}

/// Says that the graph is meant to end in what this thread calls until the guard is dropped: a target network, a
/// rollout, an evaluation between two backward passes. Nothing is reported as a cut there.
///
/// For one function the option does the same: `#[profile_span(detached)]`.
///
/// ```
/// let _meant = candle_profiler::detached();
/// // targets of a frozen network
/// ```
pub fn detached() -> Detached {
    if !cfg!(feature = "off") {
        DETACHED.set(DETACHED.get().saturating_add(1));
    }
    Detached(PhantomData)
}

/// See [`detached`].
#[must_use = "it says so until it is dropped"]
pub struct Detached(PhantomData<*const ()>);

impl Drop for Detached {
    fn drop(&mut self) {
        if !cfg!(feature = "off") {
            DETACHED.set(DETACHED.get().saturating_sub(1));
        }
    }
}
