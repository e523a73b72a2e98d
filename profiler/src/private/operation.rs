//! Operation calls, see the option `ops`: recognised by the type of what they give.

use std::marker::PhantomData;

use super::operands::Operands;
use crate::record::Name;

/// A place that calls an operation.
#[derive(Clone, Copy, Debug)]
pub struct OpSite {
    name: &'static str,
    label: &'static str,
    function: Name,
    file: &'static str,
    line: u32,
    statistics: bool,
}

impl OpSite {
    /// A call of `name` in `function`.
    pub const fn new(
        name: &'static str,
        label: &'static str,
        function: Name,
        file: &'static str,
        line: u32,
    ) -> Self {
        Self {
            name,
            label,
            function,
            file,
            line,
            statistics: false,
        }
    }

    /// `ops(stats)`
    #[must_use]
    pub const fn statistics(mut self) -> Self {
        self.statistics = true;
        self
    }
}

/// A call that is being made, of which a `T` is to come.
pub struct OpBegin<T> {
    #[cfg(feature = "candle")]
    started: Option<Box<tensors::Started>>,
    gives: PhantomData<fn() -> T>,
}

/// Before the operands of a call are evaluated. Costs nothing where no tensor can come.
#[inline(always)]
pub fn op_begin<T>(operands: impl Operands) -> OpBegin<T> {
    #[cfg(not(feature = "candle"))]
    let _ = operands;
    OpBegin {
        #[cfg(feature = "candle")]
        started: match tensors::is_tensor::<T>() && tensors::is_wanted() {
            true => tensors::start(&operands),
            false => None,
        },
        gives: PhantomData,
    }
}

/// The call has been made.
#[inline(always)]
pub fn op<T>(begin: OpBegin<T>, site: &'static OpSite, value: T) -> T {
    #[cfg(feature = "candle")]
    if let Some(started) = begin.started {
        let shown: crate::tensor::cut::Visit<'_> = &|see| tensors::show(&value, see);
        match tensors::is_borrowed::<T>() {
            true => tensors::pass_on(*started, shown),
            false => tensors::end(*started, site, shown),
        }
    }
    #[cfg(not(feature = "candle"))]
    let _ = (begin, site);
    value
}

#[cfg(feature = "candle")]
mod tensors {
    use std::cell::RefCell;
    use std::collections::VecDeque;

    use candle_core::{Tensor, TensorId, Var};

    use super::{OpSite, Operands};
    use crate::allocator::uncounted;
    use crate::capture::Plane;
    use crate::instrument::candle::{device_label, dtype_label, tensor_id};
    use crate::nonfinite::{self, Found, watching};
    use crate::record::{Crossed, Ended, Evidence, RecordSite, clock, recorder};
    use crate::tensor::cut::{self, Given, Visit};
    use crate::trace::{OpEvent, dense_tensor_bytes};

    /// What is known of a call before it is made.
    pub(super) struct Started {
        /// Its place in the thread's list of results: what comes after it and is of the same span went into it.
        position: u64,
        since: u64,
        inputs: Vec<Input>,
        given: Given,
        /// What norm is among the operands.
        norm: Option<&'static str>,
    }

    struct Input {
        id: TensorId,
        text: String,
        bytes: Option<u64>,
    }

    impl Input {
        fn of(tensor: &Tensor) -> Self {
            let dtype = dtype_label(tensor.dtype());
            Self {
                id: tensor.id(),
                text: tensor_id(tensor),
                bytes: dense_tensor_bytes(tensor.dims(), &dtype),
            }
        }
    }

    /// What a call gave.
    struct Output {
        /// The span that was open: only calls of the same one are its arguments'.
        token: u64,
        end: u64,
        input: Input,
        given: Given,
    }

    /// What the latest calls of a thread gave, in their order.
    #[derive(Default)]
    struct Outputs {
        /// How many have left the list at its front.
        gone: u64,
        list: VecDeque<Output>,
        /// The tensors that calls have given.
        known: VecDeque<TensorId>,
    }

    /// Results that are kept: more than the arguments of any call.
    const KEPT: usize = 256;

    thread_local! {
        static RESULTS: RefCell<Outputs> = const {
            RefCell::new(Outputs {
                gone: 0,
                list: VecDeque::new(),
                known: VecDeque::new(),
            })
        };
    }

    impl Outputs {
        fn position(&self) -> u64 {
            self.gone + self.list.len() as u64
        }

        /// Takes out what has come since `position`.
        fn since(&mut self, position: u64) -> Vec<Output> {
            let from = usize::try_from(position.saturating_sub(self.gone)).unwrap_or(usize::MAX);
            self.list.split_off(from.min(self.list.len())).into()
        }

        fn push(&mut self, result: Output) {
            if self.list.len() >= KEPT {
                self.list.pop_front();
                self.gone += 1;
            }
            self.known.push_back(result.input.id);
            if self.known.len() > KEPT {
                self.known.pop_front();
            }
            self.list.push_back(result);
        }
    }

    /// The values that may be a call's, each with how the tensors in it are shown.
    macro_rules! values {
        ($($type:ty: |$value:ident, $see:ident| $show:expr;)*) => {
            /// Whether a `T` may hold a tensor: known when the program is built.
            #[inline(always)]
            pub(super) fn is_tensor<T>() -> bool {
                let is = typeid::of::<T>();
                false $(|| is == typeid::of::<$type>())*
            }

            /// Shows the tensors in a value.
            pub(super) fn show<T>(value: &T, see: &mut dyn FnMut(&Tensor)) {
                let is = typeid::of::<T>();
                let at = std::ptr::from_ref(value);
                $(
                    if is == typeid::of::<$type>() {
                        // SAFETY: `T` is this type. Where that has a lifetime, which `typeid` is blind to, `show` makes
                        // it that of the borrow, which is no longer.
                        let $value = unsafe { &*at.cast::<$type>() };
                        let $see = see;
                        return $show;
                    }
                )*
            }
        };
    }

    type OrError<T> = Result<T, candle_core::Error>;
    type OrAnyhow<T> = Result<T, anyhow::Error>;
    type OrBoxed<T> = Result<T, Box<dyn std::error::Error>>;
    type OrSent<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

    fn one(value: Option<&Tensor>, see: &mut dyn FnMut(&Tensor)) {
        if let Some(tensor) = value {
            see(tensor);
        }
    }

    fn pair(value: Option<&(Tensor, Tensor)>, see: &mut dyn FnMut(&Tensor)) {
        if let Some((a, b)) = value {
            see(a);
            see(b);
        }
    }

    fn triple(value: Option<&(Tensor, Tensor, Tensor)>, see: &mut dyn FnMut(&Tensor)) {
        if let Some((a, b, c)) = value {
            see(a);
            see(b);
            see(c);
        }
    }

    fn many(value: Option<&Vec<Tensor>>, see: &mut dyn FnMut(&Tensor)) {
        value.into_iter().flatten().for_each(see);
    }

    values! {
        Tensor: |value, see| see(value);
        OrError<Tensor>: |value, see| one(value.as_ref().ok(), see);
        OrAnyhow<Tensor>: |value, see| one(value.as_ref().ok(), see);
        OrBoxed<Tensor>: |value, see| one(value.as_ref().ok(), see);
        OrSent<Tensor>: |value, see| one(value.as_ref().ok(), see);
        Option<Tensor>: |value, see| one(value.as_ref(), see);
        OrError<Option<Tensor>>: |value, see| one(value.as_ref().ok().and_then(Option::as_ref), see);
        Var: |value, see| see(value.as_tensor());
        &Tensor: |value, see| see(value);
        Option<&Tensor>: |value, see| one(*value, see);
        (Tensor, Tensor): |value, see| pair(Some(value), see);
        OrError<(Tensor, Tensor)>: |value, see| pair(value.as_ref().ok(), see);
        OrAnyhow<(Tensor, Tensor)>: |value, see| pair(value.as_ref().ok(), see);
        Option<(Tensor, Tensor)>: |value, see| pair(value.as_ref(), see);
        (Tensor, Tensor, Tensor): |value, see| triple(Some(value), see);
        OrError<(Tensor, Tensor, Tensor)>: |value, see| triple(value.as_ref().ok(), see);
        OrAnyhow<(Tensor, Tensor, Tensor)>: |value, see| triple(value.as_ref().ok(), see);
        Vec<Tensor>: |value, see| many(Some(value), see);
        OrError<Vec<Tensor>>: |value, see| many(value.as_ref().ok(), see);
        OrAnyhow<Vec<Tensor>>: |value, see| many(value.as_ref().ok(), see);
    }

    /// Whether what a call gives is there already: a layer's weight.
    #[inline(always)]
    pub(super) fn is_borrowed<T>() -> bool {
        let is = typeid::of::<T>();
        is == typeid::of::<&Tensor>() || is == typeid::of::<Option<&Tensor>>()
    }

    /// Nothing was computed; the tensor may go into the call around this one.
    #[cold]
    pub(super) fn pass_on(started: Started, shown: Visit<'_>) {
        let _own = uncounted();
        let Some(recorder) = recorder() else {
            return;
        };
        RESULTS.with_borrow_mut(|results| drop(results.since(started.position)));
        keep(recorder.place(), shown);
    }

    /// Keeps what a call gave for the call around it.
    fn keep(token: u64, shown: Visit<'_>) {
        shown(&mut |tensor| {
            let result = Output {
                token,
                end: clock().raw(),
                input: Input::of(tensor),
                given: cut::given(&|see| see(tensor)),
            };
            RESULTS.with_borrow_mut(|results| results.push(result));
        });
    }

    /// Whether calls are recorded now.
    #[inline(always)]
    pub(super) fn is_wanted() -> bool {
        recorder().is_some() || watching()
    }

    #[cold]
    pub(super) fn start(operands: &dyn Operands) -> Option<Box<Started>> {
        let at = Ended::here();
        let mut inputs = Vec::new();
        let mut given = Given::default();
        let norm = operands.show_weights(&mut |_| {});
        if at.is_recording() && !at.wants(Plane::Ops) {
            return None;
        }
        at.record(|_| {
            operands.show(&mut |tensor| inputs.push(Input::of(tensor)));
            given = cut::given(&|see| {
                operands.show(see);
                let _ = operands.show_weights(see);
            });
        });
        let _own = uncounted();
        Some(Box::new(Started {
            position: RESULTS.with_borrow(Outputs::position),
            since: clock().raw(),
            inputs,
            given,
            norm,
        }))
    }

    #[cold]
    pub(super) fn end(started: Started, site: &'static OpSite, shown: Visit<'_>) {
        let to = clock().raw();
        let label = crate::record::Name::Text(site.label);
        let record = RecordSite(label, site.file, site.line, false, site.function);
        let at = Ended::here();
        let Some(recorder) = recorder() else {
            if site.statistics {
                crate::observe::watch(&record, None, &|observer| {
                    shown(&mut |tensor| observer.tensor(tensor));
                });
            }
            return;
        };
        let mut found = None;
        at.record(|emit| {
            let call = Call {
                site,
                record: &record,
                token: recorder.place(),
                to,
            };
            found = call.tell(&at, started, shown, emit);
        });
        if let Some(found) = found {
            nonfinite::captured(&at, &record, &found);
        }
    }

    /// A call that is over.
    struct Call<'a> {
        site: &'static OpSite,
        record: &'a RecordSite,
        /// The span that is open.
        token: u64,
        to: u64,
    }

    impl Call<'_> {
        /// Tells of the call and what it gave, and keeps that for the calls it is an argument of. Gives what is not
        /// finite and should be.
        fn tell(
            &self,
            at: &Ended,
            started: Started,
            shown: Visit<'_>,
            emit: &mut dyn FnMut(Evidence),
        ) -> Option<Found> {
            let (site, token, to) = (self.site, self.token, self.to);
            let Started {
                position,
                since,
                mut inputs,
                mut given,
                norm,
            } = started;
            // The call starts when the last of its arguments is there.
            let mut from = since;
            let arguments = RESULTS.with_borrow_mut(|results| results.since(position));
            for argument in arguments.into_iter().filter(|result| result.token == token) {
                from = from.max(argument.end);
                given.join(argument.given);
                if !inputs.iter().any(|input| input.id == argument.input.id) {
                    inputs.push(argument.input);
                }
            }
            let mut outputs = 0;
            let mut found = None;
            shown(&mut |tensor| {
                outputs += 1;
                let handed_on = inputs.iter().any(|input| input.id == tensor.id())
                    || RESULTS.with_borrow(|results| results.known.contains(&tensor.id()));
                if !handed_on {
                    if outputs == 1 {
                        let event = event(site, &inputs, tensor);
                        emit(Evidence::Op { event, from, to });
                    }
                    if site.statistics && at.wants(Plane::Stats) {
                        let bad = crate::tensor::evidence(self.record, site.label, tensor, emit);
                        found = found.take().or(bad);
                    } else {
                        emit(crate::tensor::seen(site.label, tensor));
                    }
                }
            });
            // `forward` says nothing without the layer that it is called on.
            let mut name = match site.name {
                "forward" | "forward_t" => format!("{}.{}", site.label, site.name),
                name => name.to_owned(),
            };
            if let Some(norm) = norm {
                name = format!("{name}({norm})");
            }
            let crossed = Crossed::Op(name.into());
            cut::look(at, crossed, None, given, &|_| {}, shown, emit);
            keep(token, shown);
            found
        }
    }

    fn event(site: &OpSite, inputs: &[Input], output: &Tensor) -> Box<OpEvent> {
        let dtype = dtype_label(output.dtype());
        Box::new(OpEvent {
            span_id: String::new(),
            op_name: site.name.to_owned(),
            inputs: inputs.iter().map(|input| input.text.clone()).collect(),
            output: Some(tensor_id(output)),
            shape: output.dims().to_vec(),
            output_dense_bytes: dense_tensor_bytes(output.dims(), &dtype),
            dtype,
            device: device_label(output.device()),
            duration_ns: 0,
            timestamp_ns: 0,
            input_dense_bytes: inputs.iter().filter_map(|input| input.bytes).sum(),
        })
    }
}
