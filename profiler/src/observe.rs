//! What can be recorded: the tensors and the numbers inside a value, found by its type.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;
use std::rc::Rc;
use std::sync::Arc;

use crate::nonfinite::{self, Found};
use crate::record::{Ended, Evidence, RecordSite};
use crate::trace::{TensorStatsEvent, TensorStatsExtra};

/// A value that holds tensors whose statistics can be recorded.
///
/// Implemented for candle's `Tensor` and `Var` and for references, `Option`, `Result`, tuples, `Vec`, slices, arrays,
/// `Box`, `Rc`, `Arc` and maps of such values. `None` and `Err` record nothing; the items of a collection get
/// `label/0`, `label/1`, …, or `label/key`. A type of your own gets it by the derive of the same name: each field is
/// then `label/field`.
#[diagnostic::on_unimplemented(
    message = "`record_stats` finds no tensor in `{Self}`",
    label = "holds no tensor",
    note = "allowed are candle's `Tensor` and `Var`, and references, `Option`, `Result`, tuples, `Vec`, slices, arrays, `Box`, `Rc`, `Arc` and maps of them, and types with `#[derive(Observe)]`, whose other fields carry `#[observe(skip)]`; for one number use `record_scalar`"
)]
pub trait Observe {
    /// Shows the observer each tensor.
    fn observe_into(&self, observer: &mut Observer<'_>);
}

/// A value that is one number, or holds some.
///
/// Implemented for integers, floats, candle's 0-d `Tensor` and `Var`, and for references, `Option`, `Result` and tuples
/// of such values, and by the derive of the same name. `None` and `Err` record nothing.
#[diagnostic::on_unimplemented(
    message = "`record_scalar` finds no number in `{Self}`",
    label = "is no number",
    note = "allowed are integers, floats, 0-d tensors, references, `Option`, `Result` and tuples of them, and types with `#[derive(ObserveScalar)]`; for tensors use `record_stats`"
)]
pub trait ObserveScalar {
    /// Shows the observer each number.
    fn observe_scalar(&self, observer: &mut ScalarObserver<'_>);
}

/// Receives the tensors of a value under their labels.
pub struct Observer<'a> {
    label: String,
    #[cfg(feature = "candle")]
    sink: &'a mut dyn FnMut(&str, &candle_core::Tensor),
    #[cfg(not(feature = "candle"))]
    sink: std::marker::PhantomData<&'a mut ()>,
}

/// Receives the numbers of a value under their labels.
pub struct ScalarObserver<'a> {
    label: String,
    sink: &'a mut dyn FnMut(&str, f64),
}

/// A label that parts of a value extend.
trait Labelled {
    fn label(&mut self) -> &mut String;

    fn part_of(&mut self, name: &dyn Display, visit: &mut dyn FnMut(&mut Self)) {
        use std::fmt::Write;
        let whole = self.label().len();
        // A key whose text cannot be made is left out of the label.
        let _ = write!(self.label(), "/{name}");
        visit(self);
        self.label().truncate(whole);
    }
}

impl Labelled for Observer<'_> {
    fn label(&mut self) -> &mut String {
        &mut self.label
    }
}

impl Labelled for ScalarObserver<'_> {
    fn label(&mut self) -> &mut String {
        &mut self.label
    }
}

impl Observer<'_> {
    /// A tensor under the label so far.
    #[cfg(feature = "candle")]
    pub fn tensor(&mut self, tensor: &candle_core::Tensor) {
        (self.sink)(&self.label, tensor);
    }

    /// A part of the value: what it holds gets `label/name`.
    pub fn part(&mut self, name: impl Display, value: &(impl Observe + ?Sized)) {
        self.part_of(&name, &mut |observer| value.observe_into(observer));
    }
}

impl ScalarObserver<'_> {
    /// A number under the label so far.
    pub fn number(&mut self, number: f64) {
        (self.sink)(&self.label, number);
    }

    /// A part of the value: what it holds gets `label/name`.
    pub fn part(&mut self, name: impl Display, value: &(impl ObserveScalar + ?Sized)) {
        self.part_of(&name, &mut |observer| value.observe_scalar(observer));
    }
}

/// The label of a record: the built text, or the site's own where that is blank.
fn label(site: &RecordSite, text: Option<String>) -> String {
    match text {
        Some(text) if !text.trim().is_empty() => text,
        Some(_) => {
            crate::say::once(&format!(
                "{}:{}: a label came out blank; the default name stands in",
                site.file(),
                site.line()
            ));
            site.label().resolve().into_owned()
        }
        None => site.label().resolve().into_owned(),
    }
}

/// Records the statistics of the tensors that `visit` shows.
pub(crate) fn statistics(
    at: &Ended,
    site: &RecordSite,
    text: Option<String>,
    visit: &dyn Fn(&mut Observer<'_>),
) {
    if !at.wants(crate::capture::Plane::Stats) {
        return;
    }
    #[cfg(feature = "candle")]
    let mut found = None;
    at.record(|emit| {
        let label = label(site, text);
        #[cfg(feature = "candle")]
        visit(&mut Observer {
            label,
            sink: &mut |label, tensor| {
                let here = crate::tensor::evidence(site, label, tensor, emit);
                found = found.take().or(here);
            },
        });
        #[cfg(not(feature = "candle"))]
        {
            let _ = emit;
            visit(&mut Observer {
                label,
                sink: std::marker::PhantomData,
            });
        }
    });
    #[cfg(feature = "candle")]
    if let Some(found) = found {
        nonfinite::captured(at, site, &found);
    }
}

/// Looks at the tensors that `visit` shows, on a step that is not captured.
#[cold]
pub(crate) fn watch(site: &RecordSite, text: Option<String>, visit: &dyn Fn(&mut Observer<'_>)) {
    let Some(call) = crate::capture::current_call() else {
        return;
    };
    #[cfg(feature = "candle")]
    if !site.allows_nonfinite() && crate::capture::records(crate::capture::Plane::Stats) {
        let mut found = None;
        visit(&mut Observer {
            label: label(site, text),
            sink: &mut |label, tensor| {
                if found.is_none() {
                    found = crate::tensor::watched(site, label, tensor);
                }
            },
        });
        if let Some(found) = found {
            nonfinite::watched(&call, site, &found);
        }
    }
    #[cfg(not(feature = "candle"))]
    let _ = (call, site, text, visit);
}

/// Looks at gradients that an optimizer is about to use.
#[cfg(feature = "nn")]
#[cold]
pub(crate) fn watch_gradients(
    at: &Ended,
    site: &RecordSite,
    loss: &candle_core::Tensor,
    grads: &candle_core::backprop::GradStore,
) {
    if !crate::capture::records(crate::capture::Plane::Gradients) {
        return;
    }
    if at.is_recording() {
        let mut found = None;
        at.record(|_| found = crate::tensor::watched_gradients(loss, grads));
        if let Some(found) = found {
            nonfinite::captured(at, site, &found);
        }
    } else if let (Some(found), Some(call)) = (
        crate::tensor::watched_gradients(loss, grads),
        crate::capture::current_call(),
    ) {
        nonfinite::watched(&call, site, &found);
    }
}

/// Looks at the numbers that `visit` shows, on a step that is not captured.
#[cold]
pub(crate) fn watch_scalar(
    site: &RecordSite,
    text: Option<String>,
    visit: &dyn Fn(&mut ScalarObserver<'_>),
) {
    let Some(call) = crate::capture::current_call() else {
        return;
    };
    if site.allows_nonfinite() || !crate::capture::records(crate::capture::Plane::Scalars) {
        return;
    }
    let mut found = None;
    visit(&mut ScalarObserver {
        label: label(site, text),
        sink: &mut |label, number| found = found.take().or_else(|| bad_number(label, number)),
    });
    if let Some(found) = found {
        nonfinite::watched(&call, site, &found);
    }
}

/// A number that is not finite and should be.
fn bad_number(label: &str, number: f64) -> Option<Found> {
    let silent = number.is_finite()
        || number == f64::NEG_INFINITY && !crate::capture::alarms_at_negative_infinity();
    (!silent).then(|| Found {
        what: format!("{label} is {number}"),
        before: None,
    })
}

/// Shows each tensor of a value.
#[cfg(feature = "candle")]
pub(crate) fn tensors(value: &dyn Observe, each: &mut dyn FnMut(&candle_core::Tensor)) {
    value.observe_into(&mut Observer {
        label: String::new(),
        sink: &mut |_, tensor| each(tensor),
    });
}

/// Records the numbers that `visit` shows.
pub(crate) fn scalars(
    at: &Ended,
    site: &RecordSite,
    text: Option<String>,
    visit: &dyn Fn(&mut ScalarObserver<'_>),
) {
    if !at.wants(crate::capture::Plane::Scalars) {
        return;
    }
    let mut found = None;
    at.record(|emit| {
        visit(&mut ScalarObserver {
            label: label(site, text),
            sink: &mut |label, number| {
                if !site.allows_nonfinite() {
                    found = found.take().or_else(|| bad_number(label, number));
                }
                emit(scalar(label, number));
            },
        });
    });
    if let Some(found) = found {
        nonfinite::captured(at, site, &found);
    }
}

/// One number as evidence: a statistic of one element. JSON has no NaN, so the count says it.
pub(crate) fn scalar(label: &str, number: f64) -> Evidence {
    let finite = number.is_finite();
    let extra = TensorStatsExtra {
        nan: Some(u64::from(number.is_nan())),
        pos_inf: Some(u64::from(number == f64::INFINITY)),
        neg_inf: Some(u64::from(number == f64::NEG_INFINITY)),
        ..TensorStatsExtra::default()
    };
    let shown = if finite { number } else { 0.0 };
    let event = Box::new(TensorStatsEvent {
        span_id: String::new(),
        label: label.to_owned(),
        shape: Vec::new(),
        dtype: "f64".to_owned(),
        elements: 1,
        non_finite: u64::from(!finite),
        rms: shown.abs(),
        abs_max: shown.abs(),
        mean: shown,
        // JSON has no NaN: without these it would look like an infinity.
        extra: (!finite).then(|| Box::new(extra)),
    });
    Evidence::Scalar {
        event,
        value: number,
    }
}

macro_rules! through {
    ($($type:ty)*) => {$(
        impl<T: Observe + ?Sized> Observe for $type {
            fn observe_into(&self, observer: &mut Observer<'_>) {
                (**self).observe_into(observer);
            }
        }
        impl<T: ObserveScalar + ?Sized> ObserveScalar for $type {
            fn observe_scalar(&self, observer: &mut ScalarObserver<'_>) {
                (**self).observe_scalar(observer);
            }
        }
    )*};
}

through! { &T &mut T Box<T> Rc<T> Arc<T> }

impl<T: Observe> Observe for Option<T> {
    fn observe_into(&self, observer: &mut Observer<'_>) {
        if let Some(value) = self {
            value.observe_into(observer);
        }
    }
}

impl<T: ObserveScalar> ObserveScalar for Option<T> {
    fn observe_scalar(&self, observer: &mut ScalarObserver<'_>) {
        if let Some(value) = self {
            value.observe_scalar(observer);
        }
    }
}

impl<T: Observe, E> Observe for Result<T, E> {
    fn observe_into(&self, observer: &mut Observer<'_>) {
        if let Ok(value) = self {
            value.observe_into(observer);
        }
    }
}

impl<T: ObserveScalar, E> ObserveScalar for Result<T, E> {
    fn observe_scalar(&self, observer: &mut ScalarObserver<'_>) {
        if let Ok(value) = self {
            value.observe_scalar(observer);
        }
    }
}

impl<T: Observe> Observe for [T] {
    fn observe_into(&self, observer: &mut Observer<'_>) {
        for (index, value) in self.iter().enumerate() {
            observer.part(index, value);
        }
    }
}

impl<T: Observe> Observe for Vec<T> {
    fn observe_into(&self, observer: &mut Observer<'_>) {
        self.as_slice().observe_into(observer);
    }
}

impl<T: Observe, const N: usize> Observe for [T; N] {
    fn observe_into(&self, observer: &mut Observer<'_>) {
        self.as_slice().observe_into(observer);
    }
}

impl<K: Display, T: Observe> Observe for BTreeMap<K, T> {
    fn observe_into(&self, observer: &mut Observer<'_>) {
        for (key, value) in self {
            observer.part(key, value);
        }
    }
}

impl<K: Display, T: Observe, S> Observe for HashMap<K, T, S> {
    /// In the order of the keys' texts, since the map's own order changes from run to run.
    fn observe_into(&self, observer: &mut Observer<'_>) {
        let mut items: Vec<(String, &T)> = self
            .iter()
            .map(|(key, value)| (crate::private::format(format_args!("{key}")), value))
            .collect();
        items.sort_by(|(a, _), (b, _)| a.cmp(b));
        for (key, value) in items {
            observer.part(key, value);
        }
    }
}

macro_rules! tuples {
    ($(($($name:ident $index:tt),+))*) => {$(
        impl<$($name: Observe),+> Observe for ($($name,)+) {
            fn observe_into(&self, observer: &mut Observer<'_>) {
                $(observer.part($index, &self.$index);)+
            }
        }
        impl<$($name: ObserveScalar),+> ObserveScalar for ($($name,)+) {
            fn observe_scalar(&self, observer: &mut ScalarObserver<'_>) {
                $(observer.part($index, &self.$index);)+
            }
        }
    )*};
}

tuples! {
    (A 0)
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
    (A 0, B 1, C 2, D 3, E 4)
    (A 0, B 1, C 2, D 3, E 4, F 5)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7)
}

macro_rules! numbers {
    ($($type:ty)*) => {$(
        impl ObserveScalar for $type {
            #[allow(clippy::cast_precision_loss, clippy::cast_lossless, reason = "a trace's numbers are f64")]
            fn observe_scalar(&self, observer: &mut ScalarObserver<'_>) {
                observer.number(*self as f64);
            }
        }
    )*};
}

numbers! { f32 f64 u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize }
