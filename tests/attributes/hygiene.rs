//! Names of the user's that are ours or the standard library's; attributes written by macros; statements and items.
#![deny(warnings)]
#![allow(clippy::all)]
use crate::macro_cases::support::block_on;
use crate::macro_cases::tensor::{Tensor, first, mk};

/// Everything that an expansion names is called so by the user, too.
pub mod shadowed {
    #![allow(non_camel_case_types, non_snake_case, unused_macros)]
    use super::Tensor;
    mod std {}
    mod core {}
    mod alloc {}
    mod private {}
    mod candle_profiler {}
    pub struct Option;
    pub struct String;
    pub struct Vec;
    pub struct Box;
    pub trait Fn {}
    pub trait FnOnce {}
    pub trait Future {}
    pub trait Observe {}
    pub trait Drop {}
    #[derive(Debug, PartialEq)]
    pub enum Result<T> {
        Ok(T),
        Err(u32),
    }
    pub use self::Result::{Err, Ok};
    pub fn Some() {}
    pub fn None() {}
    pub fn drop() {}
    pub fn invoke() {}
    macro_rules! file {
        () => {
            compile_error!("the user's own")
        };
    }
    macro_rules! line {
        () => {
            compile_error!("the user's own")
        };
    }
    macro_rules! module_path {
        () => {
            compile_error!("the user's own")
        };
    }
    macro_rules! format {
        ($($x:tt)*) => {
            compile_error!("the user's own")
        };
    }

    #[profile_step(forward)]
    #[record_scalar("it {x} {#}")]
    pub fn number(x: u32) -> u32 {
        #[record_scalar("y {x} {#}")]
        let y = x;
        #[profile_span(name = "for {y}")]
        for _ in 0..y {}
        y
    }
    #[measured(name = "own {x}", step = 1_u64, items = 2, tags(x = x))]
    #[record_scalar("own")]
    pub fn labelled(x: u32) -> u32 {
        #[measured]
        for _ in 0..x {}
        x
    }
    #[measured]
    pub fn own_result(x: u32) -> Result<u32> {
        if x == 0 {
            return Err(1);
        }
        #[measured]
        let y = x;
        Ok(y)
    }
    #[profile_step(forward)]
    pub fn of_tensor(x: &Tensor, bad: bool) -> Result<Tensor> {
        if bad { Err(2) } else { Ok(x.clone()) }
    }
    #[profile_step(forward)]
    pub fn of_tuple(x: &Tensor, bad: bool) -> Result<(Tensor, u32)> {
        if bad {
            return Err(3);
        }
        Ok((x.clone(), 1))
    }
    #[profile_span(ops(stats))]
    pub fn of_ops(x: &Tensor, y: Tensor) -> Result<Tensor> {
        match x + y {
            ::core::result::Result::Ok(sum) => Ok(sum),
            ::core::result::Result::Err(_) => Err(4),
        }
    }
    #[measured]
    pub async fn later(x: &Tensor) -> Result<Tensor> {
        Ok(x.clone())
    }
    #[profile_span]
    pub async fn later_tuple(x: Tensor) -> Result<(Tensor, u32)> {
        Ok((x, 1))
    }
    #[derive(::candle_profiler::Observe)]
    pub struct Parts {
        pub one: Tensor,
        pub two: ::core::option::Option<Tensor>,
    }
    #[derive(::candle_profiler::ObserveScalar)]
    pub enum Losses {
        Both { one: f32, two: f64 },
        Nothing,
    }
    #[record_stats("parts")]
    pub fn parts(one: Tensor) -> Parts {
        #[record_scalar("losses")]
        let _losses = Losses::Both { one: 1.0, two: 2.0 };
        #[record_scalar("nothing")]
        let _nothing = Losses::Nothing;
        let two = ::core::option::Option::None;
        Parts { one, two }
    }
}

/// Aliases and types whose names say less, or something else, than they seem to.
pub mod aliases {
    use super::{Tensor, mk};
    pub type Result<T> = std::result::Result<Vec<T>, String>;
    pub type BatchResult<A, B = u32> = (A, B);
    pub struct StepResult<T>(pub T);
    pub trait Layer {
        type Result<T>;
        fn run(&self, x: &Tensor) -> Self::Result<(Tensor, u32)>;
    }
    impl Layer for u32 {
        type Result<T> = Option<T>;
        #[profile_step(forward)]
        fn run(&self, x: &Tensor) -> Self::Result<(Tensor, u32)> {
            Some((x.clone(), *self))
        }
    }
    #[profile_span]
    pub fn listed(x: &Tensor) -> Result<(Tensor, u32)> {
        Ok(vec![(x.clone(), 1)])
    }
    #[profile_span]
    pub fn listed_tensors(x: &Tensor) -> Result<Tensor> {
        Ok(vec![x.clone()])
    }
    #[profile_span]
    pub fn tuple(x: &Tensor) -> BatchResult<(Tensor, u32)> {
        ((x.clone(), 1), 2)
    }
    #[profile_span]
    pub fn structure(x: &Tensor) -> StepResult<(Tensor, u32)> {
        StepResult((x.clone(), 1))
    }
    #[profile_span]
    pub async fn structure_later(x: Tensor) -> StepResult<(Tensor, u32)> {
        if x.rank() > 9 {
            return StepResult((mk(0.0), 0));
        }
        StepResult((x, 1))
    }
    /// Not candle's.
    pub mod own {
        pub type Tensor = str;
        pub struct Var(pub u32);
        #[profile_step(forward)]
        pub fn text(x: &Tensor, y: &Var) -> String {
            format!("{x}{}", y.0)
        }
        #[profile_step(forward)]
        pub fn var(x: &Tensor) -> Result<Var, std::num::ParseIntError> {
            Ok(Var(x.parse()?))
        }
    }
}

/// Arguments and variables called like ours.
#[measured(name = "n {key} {details}", step = key, items = details, tags(a = key, details = text0))]
#[record_stats("{guard} {span} {text0} {turns}")]
pub fn locals(
    guard: u32,
    span: u32,
    #[record_stats("value")] value: Tensor,
    ended: Tensor,
    given: Vec<Tensor>,
    lent: &Tensor,
    text0: u32,
    part0: &Tensor,
    noted0: u32,
    (argument0, argument1): (u32, u32),
    turns: u32,
    key: u64,
    details: u64,
) -> candle_core::Result<Tensor> {
    #[profile_span(name = "{guard} {key}")]
    let guard = guard + span + text0 + noted0 + argument0 + argument1 + turns;
    let _ = key;
    #[measured]
    for parked in 0..guard {
        if parked > 100 {
            return Ok(value);
        }
    }
    #[record_scalar("{value}")]
    let _ended = details;
    ((value + ended)? + given[0].broadcast_add(lent)?)? + part0
}

/// In a future.
#[record_stats("{text0}")]
#[profile_span]
pub async fn text_later(text0: u32, value: &Tensor) -> Tensor {
    let _ = text0;
    value.clone()
}

/// The same in a future.
#[profile_step(forward, name = "{span} {value}")]
pub async fn later(
    span: u32,
    value: Tensor,
    text0: u32,
    given: &Tensor,
    key: u32,
) -> (Tensor, u32) {
    #[record_scalar("{key}")]
    let ended = span + text0 + key;
    ((value + given).unwrap(), ended)
}

/// Keywords as names.
#[profile_step(forward, name = "raw {type} {fn}")]
#[record_stats("r {type}")]
pub fn r#match(r#type: u32, r#fn: &Tensor, #[record_scalar("in")] r#in: u32) -> Tensor {
    #[record_scalar("loop")]
    let r#loop = r#type as f32 + r#in as f32;
    if r#loop > 100.0 {
        return mk(0.0);
    }
    (r#fn + f64::from(r#loop)).unwrap()
}

macro_rules! written {
    ($(#[$meta:meta])* $name:ident, $label:expr, $text:literal, $items:expr, $key:ident, $step:ident) => {
        $(#[$meta])*
        #[measured(name = $label, items = $items, tags($key = $items))]
        #[record_stats($label)]
        #[record_stats($text)]
        #[record_stats($key)]
        pub fn $name($key: &Tensor) -> Tensor {
            #[profile_step($step, name = $text)]
            #[record_stats($label)]
            let y = $key.clone();
            y
        }
    };
}
written!(
    /// Of a macro.
    #[profile_span(kind = module)]
    #[must_use]
    #[inline]
    by_macro, "it", "text", 1 + 1, key, forward
);

macro_rules! forwarded {
    ($(#[$meta:meta])* fn $name:ident ($($arg:ident : $ty:ty),*) -> $out:ty { $(#[$inner:meta])* let $x:ident = $value:expr; }) => {
        $(#[$meta])*
        pub fn $name($($arg: $ty),*) -> $out {
            $(#[$inner])*
            let $x = $value;
            $x
        }
    };
}
forwarded! {
    /// All attributes pass through a macro.
    #[profile_step(forward)]
    #[record_stats("sum")]
    fn forwarded(a: &Tensor, b: Tensor) -> candle_core::Result<Tensor> {
        #[profile_span(name = "inner")]
        let sum = a + b;
    }
}

macro_rules! whole {
    ($($item:tt)*) => { $($item)* };
}
whole! {
    #[cfg_attr(all(), measured)]
    #[cfg_attr(any(), record_stats("never"))]
    #[cfg_attr(all(), record_stats("always"), doc = "Documented.")]
    pub fn configured(#[cfg(all())] x: &Tensor, #[cfg(any())] y: Gone) -> Tensor {
        #[cfg(any())]
        #[profile_span]
        let x = Gone;
        #[cfg(all())]
        #[profile_span]
        let x = x.clone();
        x
    }
}
/// The outer one is ours.
#[profile_span]
#[cfg_attr(all(), record_stats("always"))]
#[cfg(all())]
pub fn configured_below(x: &Tensor) -> Tensor {
    x.clone()
}

/// Jumps of all kinds.
#[profile_span]
#[record_scalar("n")]
pub fn jumps(list: &[Option<u32>]) -> Option<u32> {
    let mut sum = 0;
    #[profile_span]
    let Some(first) = list.first() else {
        return None;
    };
    #[measured]
    'outer: for x in list {
        #[profile_span]
        let found = 'block: {
            if let Some(x) = x {
                if *x == 7 {
                    continue 'outer;
                }
                break 'block *x;
            }
            break 'outer;
        };
        #[profile_span]
        sum += found;
    }
    #[measured]
    let more = 'value: {
        if sum > 10 {
            break 'value None;
        }
        Some(1)
    }?;
    #[profile_span]
    while let Some(Some(5)) = list.get(sum as usize) {
        sum += 1;
    }
    Some(sum + more + (*first)?)
}

/// Items between statements.
#[measured]
pub fn items(x: u32) -> u32 {
    #[profile_span]
    let y = double(x);
    #[profile_span]
    fn double(x: u32) -> u32 {
        x * FACTOR
    }
    const FACTOR: u32 = 2;
    #[derive(candle_profiler::ObserveScalar)]
    struct Local {
        y: u32,
    }
    #[record_scalar("local")]
    let local = Local { y };
    use std::cmp::max;
    macro_rules! three {
        () => {
            3
        };
    }
    #[profile_span]
    max(local.y, three!())
}

/// All of them.
pub fn check() {
    let one = mk(1.0);
    assert_eq!(shadowed::number(2), 2);
    assert_eq!(shadowed::labelled(2), 2);
    assert_eq!(shadowed::own_result(0), shadowed::Err(1));
    assert_eq!(shadowed::own_result(2), shadowed::Ok(2));
    assert!(matches!(shadowed::of_tensor(&one, false), shadowed::Ok(x) if first(&x) == 1.0));
    assert!(matches!(shadowed::of_tensor(&one, true), shadowed::Err(2)));
    assert!(matches!(
        shadowed::of_tuple(&one, false),
        shadowed::Ok((_, 1))
    ));
    assert!(matches!(
        shadowed::of_ops(&one, one.clone()),
        shadowed::Ok(_)
    ));
    assert!(matches!(block_on(shadowed::later(&one)), shadowed::Ok(_)));
    assert!(matches!(
        block_on(shadowed::later_tuple(one.clone())),
        shadowed::Ok(_)
    ));
    assert!(shadowed::parts(one.clone()).two.is_none());
    assert_eq!(aliases::Layer::run(&4, &one).unwrap().1, 4);
    assert_eq!(aliases::listed(&one).unwrap().len(), 1);
    assert_eq!(aliases::listed_tensors(&one).unwrap().len(), 1);
    assert_eq!(aliases::tuple(&one).1, 2);
    assert_eq!(aliases::structure(&one).0.1, 1);
    assert_eq!(block_on(aliases::structure_later(one.clone())).0.1, 1);
    assert_eq!(aliases::own::text("a", &aliases::own::Var(1)), "a1");
    assert_eq!(aliases::own::var("3").map(|var| var.0), Ok(3));
    let sum = locals(
        1,
        2,
        one.clone(),
        one.clone(),
        vec![one.clone()],
        &one,
        3,
        &one,
        4,
        (5, 6),
        7,
        8,
        9,
    );
    assert_eq!(first(&sum.unwrap()), 5.0);
    assert_eq!(first(&block_on(text_later(1, &one))), 1.0);
    let (sum, ended) = block_on(later(1, one.clone(), 2, &one, 3));
    assert_eq!((first(&sum), ended), (2.0, 6));
    assert_eq!(first(&r#match(1, &one, 2)), 4.0);
    assert_eq!(first(&by_macro(&one)), 1.0);
    assert_eq!(first(&forwarded(&one, one.clone()).unwrap()), 2.0);
    assert_eq!(first(&configured(&one)), 1.0);
    assert_eq!(first(&configured_below(&one)), 1.0);
    assert_eq!(jumps(&[Some(1), Some(7), Some(2), None, Some(9)]), Some(5));
    assert_eq!(jumps(&[]), None);
    assert_eq!(jumps(&[Some(11)]), None);
    assert_eq!(items(1), 3);
}
