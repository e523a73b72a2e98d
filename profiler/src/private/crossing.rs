//! What an annotated function is given and gives back, shown to whoever watches the graph.

use std::marker::PhantomData;
use std::ops::Deref;

use super::operands::Operands;
use crate::observe::Observe;
use crate::record::{RecordSite, recorder};

#[cfg(feature = "candle")]
pub use crate::tensor::cut::Given;

/// Nothing is looked at without candle.
#[cfg(not(feature = "candle"))]
#[derive(Default)]
pub struct Given;

/// A value that may hold tensors.
///
/// `Shown(&value).shown()` is the first method below where the value can be observed, and [`Hidden`]'s, which the
/// dereference leads to, where it cannot. So no type has to be known when a function is expanded.
pub struct Shown<'a, T: ?Sized>(pub &'a T);

impl<'a, T: Observe> Shown<'a, T> {
    /// The value.
    #[inline(always)]
    pub fn shown(&self) -> Option<&'a dyn Observe> {
        Some(self.0)
    }
}

impl<T: ?Sized> Deref for Shown<'_, T> {
    type Target = Hidden;

    #[inline(always)]
    fn deref(&self) -> &Hidden {
        &Hidden
    }
}

/// A value that holds nothing to look at.
pub struct Hidden;

impl Hidden {
    /// Nothing.
    #[inline(always)]
    pub fn shown(&self) -> Option<&'static dyn Observe> {
        None
    }
}

/// What is called a `Result` of a tuple, and as many units as the tuple has members.
///
/// `Okay(&value, Blank::<((), ())>).okay()` is the tuple in an `Ok`. Of any other type that goes by such a name it is the
/// second method, which the dereference leads to, so that the pattern around it fits whatever the value is.
pub struct Okay<'a, T, B>(pub &'a T, pub Blank<B>);

/// Units in place of a tuple's members.
#[derive(Default)]
pub struct Blank<B>(PhantomData<B>);

impl<B> Blank<B> {
    /// Nothing but its type.
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

macro_rules! okay {
    ($($name:ident $blank:ident)+) => {
        impl<'a, Error, $($name, $blank),+> Okay<'a, Result<($($name,)+), Error>, ($($blank,)+)> {
            /// The tuple.
            #[inline(always)]
            pub fn okay(&self) -> Option<&'a ($($name,)+)> {
                self.0.as_ref().ok()
            }
        }
    };
}

okay! { A AB B BB }
okay! { A AB B BB C CB }
okay! { A AB B BB C CB D DB }
okay! { A AB B BB C CB D DB E EB }
okay! { A AB B BB C CB D DB E EB F FB }
okay! { A AB B BB C CB D DB E EB F FB G GB }
okay! { A AB B BB C CB D DB E EB F FB G GB H HB }

impl<T, B: 'static> Deref for Okay<'_, T, B> {
    type Target = NotOkay<B>;

    #[inline(always)]
    fn deref(&self) -> &NotOkay<B> {
        &NotOkay(PhantomData)
    }
}

/// A value that holds no such tuple.
pub struct NotOkay<B>(PhantomData<B>);

impl<B: 'static> NotOkay<B> {
    /// Nothing.
    #[inline(always)]
    pub fn okay(&self) -> Option<&'static B> {
        None
    }
}

/// Whether a call has to be looked at.
#[inline(always)]
pub fn crossing() -> bool {
    cfg!(feature = "candle") && recorder().is_some()
}

/// Looks at arguments that a function takes.
///
/// Which of them hold something to look at is known when the function is compiled: where none does, nothing is left of
/// this, as of the two below.
#[inline(always)]
pub fn given(taken: &[Option<&dyn Observe>]) -> Given {
    #[cfg(feature = "candle")]
    if holds(taken) && recorder().is_some() {
        return notice(taken);
    }
    let _ = taken;
    <Given as Default>::default()
}

#[inline(always)]
fn holds(values: &[Option<&dyn Observe>]) -> bool {
    values.iter().any(Option::is_some)
}

#[cfg(feature = "candle")]
#[cold]
fn notice(taken: &[Option<&dyn Observe>]) -> Given {
    let mut given = Given::default();
    crate::record::Ended::here().record(|_| {
        given = crate::tensor::cut::given(&|each| show(taken, each));
    });
    given
}

/// The text of the function whose span this is detaches what calls by these names give, separated by blanks.
#[inline(always)]
pub fn detaches(names: &'static str) {
    #[cfg(feature = "candle")]
    if recorder().is_some() {
        tell_detached(names);
    }
    let _ = names;
}

#[cfg(feature = "candle")]
#[cold]
fn tell_detached(names: &'static str) {
    use crate::capture::Plane;
    use crate::record::{Ended, Evidence};
    let at = Ended::here();
    if at.wants(Plane::Gradients) {
        at.record(|emit| emit(Evidence::Detaches(names)));
    }
}

/// Looks at the arguments of a function and at what it returns, inside its span.
#[inline(always)]
pub fn crossed(
    hints: u32,
    given: Given,
    lent: &[Option<&dyn Observe>],
    returned: &[Option<&dyn Observe>],
) {
    if holds(returned) {
        cross(hints, None, given, lent, returned);
    }
}

/// The same for a function that has no span.
#[inline(always)]
pub fn crossed_bare(
    hints: u32,
    site: &'static RecordSite,
    given: Given,
    lent: &[Option<&dyn Observe>],
    returned: &[Option<&dyn Observe>],
) {
    if holds(returned) {
        cross(hints, Some(site), given, lent, returned);
    }
}

#[cfg(feature = "candle")]
#[cold]
fn cross(
    hints: u32,
    site: Option<&'static RecordSite>,
    given: Given,
    lent: &[Option<&dyn Observe>],
    returned: &[Option<&dyn Observe>],
) {
    let (lent, returned): (Shows<'_>, Shows<'_>) =
        (&|each| show(lent, each), &|each| show(returned, each));
    report(hints, site, given, lent, returned);
}

#[cfg(not(feature = "candle"))]
fn cross(
    _: u32,
    _: Option<&'static RecordSite>,
    _: Given,
    _: &[Option<&dyn Observe>],
    _: &[Option<&dyn Observe>],
) {
}

#[cfg(feature = "candle")]
fn show(values: &[Option<&dyn Observe>], each: &mut dyn FnMut(&candle_core::Tensor)) {
    for value in values.iter().flatten() {
        crate::observe::tensors(*value, each);
    }
}

/// Shows tensors one by one.
#[cfg(feature = "candle")]
type Shows<'a> = &'a dyn Fn(&mut dyn FnMut(&candle_core::Tensor));

#[cfg(feature = "candle")]
fn report(
    hints: u32,
    site: Option<&'static RecordSite>,
    given: Given,
    lent: Shows<'_>,
    returned: Shows<'_>,
) {
    use crate::record::{Crossed, Ended, Hints};
    let what = Crossed::Function(Hints(hints));
    crate::tensor::cut::crossed(&Ended::here(), what, site, given, lent, returned);
}

/// What the most frequent kind of function returned: a tensor, or one in a `Result`.
///
/// `returned(&value).__candle_profiler_look(…)` is one of the methods for exactly these types, since asking for a trait
/// would cost the compiler more. What is called by their names may be anything: method lookup goes on to [`Called`]
/// then, and from there to [`Unseen`].
pub struct Returned<'a, T>(Called<'a, T>);

/// A value of any type that can be observed.
pub struct Called<'a, T>(&'a T);

/// A value that holds nothing to look at.
pub struct Unseen;

/// Asks a value.
#[inline(always)]
pub fn returned<T>(value: &T) -> Returned<'_, T> {
    Returned(Called(value))
}

#[cfg(feature = "candle")]
macro_rules! looks {
    ($($type:ty $(, $error:ident)?;)*) => {$(
        impl$(<$error>)? Returned<'_, $type> {
            /// Looks at the arguments of a function, and at the tensor that it returns, inside its span.
            #[inline(always)]
            pub fn __candle_profiler_look(self, hints: u32, lent: impl Operands) {
                if crossing() {
                    look(hints, &lent, self.0.0);
                }
            }
        }
    )*};
}

#[cfg(feature = "candle")]
looks! {
    candle_core::Tensor;
    candle_core::Var;
    Result<candle_core::Tensor, E>, E;
    Result<candle_core::Var, E>, E;
}

impl<T: Observe> Called<'_, T> {
    /// The same, whatever is returned.
    #[inline(always)]
    pub fn __candle_profiler_look(&self, hints: u32, lent: impl Operands) {
        if crossing() {
            look(hints, &lent, self.0);
        }
    }
}

impl Unseen {
    /// Nothing.
    #[inline(always)]
    pub fn __candle_profiler_look(&self, hints: u32, lent: impl Operands) {
        let _ = (hints, lent);
    }
}

impl<'a, T> Deref for Returned<'a, T> {
    type Target = Called<'a, T>;

    #[inline(always)]
    fn deref(&self) -> &Called<'a, T> {
        &self.0
    }
}

impl<T> Deref for Called<'_, T> {
    type Target = Unseen;

    #[inline(always)]
    fn deref(&self) -> &Unseen {
        &Unseen
    }
}

#[cold]
fn look(hints: u32, lent: &dyn Operands, value: &dyn Observe) {
    #[cfg(feature = "candle")]
    {
        let (lent, returned): (Shows<'_>, Shows<'_>) = (&|each| lent.show(each), &|each| {
            crate::observe::tensors(value, each);
        });
        report(hints, None, Given::default(), lent, returned);
    }
    let _ = (hints, lent, value);
}
