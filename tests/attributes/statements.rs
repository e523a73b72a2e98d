//! Statements: places that an assignment evaluates, what a statement takes in, names of arguments, waiting closures.
#![deny(warnings)]
#![allow(clippy::all)]
use crate::macro_cases::support::{block_on, yield_now};
use crate::macro_cases::tensor::{Tensor, first, mk};
use std::cell::Cell;
use std::collections::HashMap;
use std::future::Future;

/// Places that may be evaluated once only.
pub mod places {
    use super::*;

    /// Which place, and how often it was asked for.
    pub struct Asked(pub Vec<f32>, pub Cell<u32>);
    impl Asked {
        fn place(&mut self) -> &mut f32 {
            self.1.set(self.1.get() + 1);
            &mut self.0[0]
        }
    }
    /// A target of a destructuring assignment.
    #[derive(Clone, Copy, candle_profiler::ObserveScalar)]
    pub struct Pair {
        a: f32,
        b: f32,
    }

    #[profile_span]
    pub fn once(losses: &mut [f32], asked: &mut Asked, key: String) -> (Vec<usize>, f32) {
        let mut it = 0..losses.len();
        #[record_scalar("l")]
        losses[it.next().unwrap()] = 1.0;
        #[record_scalar("again", allow_nonfinite)]
        #[profile_span(name = "spanned")]
        losses[{
            let next = it.next().unwrap();
            next
        }] = f32::INFINITY;
        let mut slots = vec![&mut losses[0], &mut asked.0[1]];
        #[record_scalar("slot")]
        *slots.pop().unwrap() = 3.0;
        drop(slots);
        #[measured]
        #[record_scalar("asked")]
        *asked.place() = "4".parse().unwrap();
        let mut map: HashMap<String, f32> = HashMap::new();
        #[record_scalar("entry")]
        *map.entry(key).or_insert(0.) = 5.0;
        let (a, b);
        #[record_scalar("pair")]
        Pair { a, b } = Pair { a: 1.0, b: 2.0 };
        (it.collect(), map.values().sum::<f32>() + a + b)
    }

    /// A value by its key, which it takes.
    pub struct Keyed(pub HashMap<String, f32>);
    impl std::ops::Index<String> for Keyed {
        type Output = f32;
        fn index(&self, key: String) -> &f32 {
            &self.0[&key]
        }
    }
    impl std::ops::IndexMut<String> for Keyed {
        fn index_mut(&mut self, key: String) -> &mut f32 {
            self.0.entry(key).or_default()
        }
    }

    macro_rules! raised {
        ($list:ident, $place:expr, $by:expr) => {
            #[profile_span]
            fn raised(mut $list: Vec<f32>) -> Vec<f32> {
                #[record_scalar("raised")]
                $place = $list[0] * $by;
                #[record_scalar("raised")]
                $place *= $by;
                $list
            }
        };
    }
    raised!(list, list[0], 1.0 + 1.0);

    /// What jumps out of the value; what the value is turned into.
    #[profile_span]
    pub fn jumps(
        keyed: &mut Keyed,
        key: String,
        text: &str,
    ) -> Result<f32, std::num::ParseFloatError> {
        let mut best: &dyn Fn(f32) -> f32 = &|x| x;
        let mut list: Vec<Option<f32>> = vec![None; 3];
        for i in 0..3 {
            #[record_scalar("keyed")]
            keyed[key.clone()] = if i == 2 { break } else { text.parse()? };
            let at = i as u8;
            #[record_scalar("at")]
            list[usize::from(at)] = Some(i as f32).filter(|x| *x > 0.0);
        }
        #[profile_span]
        best = if text.len() == 1 { &|x| x * 2.0 } else { best };
        Ok(best(keyed.0[&key]) + list[1].unwrap())
    }

    /// Places that are read again: names, fields, indices.
    pub struct State {
        of: (f32, [[f32; 2]; 2]),
        at: usize,
    }
    impl State {
        #[profile_span]
        pub fn added(&mut self, mut list: Vec<f32>, i: usize, by: &mut f32) -> f32 {
            let n = list.len();
            #[record_scalar("of")]
            self.of.0 += 1.0;
            #[record_scalar("of")]
            self.of.1[1][self.at] += 2.0;
            #[record_scalar("list")]
            list[(i + 1) % n] -= 1.0;
            #[record_scalar("by")]
            *by *= 2.0;
            #[record_scalar("by")]
            (*by) *= 2.0;
            #[record_scalar("by")]
            list[i as u8 as usize] /= *by;
            list.iter().sum::<f32>() + self.of.0 + self.of.1[1][0]
        }
    }

    pub(super) fn check() {
        let mut losses = vec![0.0; 4];
        let mut asked = Asked(vec![0.0; 2], Cell::new(0));
        let (left, sum) = once(&mut losses, &mut asked, "k".to_owned());
        assert_eq!(left, [2, 3]);
        assert_eq!(sum, 8.0);
        assert_eq!(losses, [1.0, f32::INFINITY, 0.0, 0.0]);
        assert_eq!((asked.0[0], asked.0[1], asked.1.get()), (4.0, 3.0, 1));
        let mut keyed = Keyed(HashMap::new());
        assert_eq!(jumps(&mut keyed, "k".to_owned(), "3").unwrap(), 7.0);
        assert!(jumps(&mut keyed, "k".to_owned(), "x").is_err());
        assert_eq!(raised(vec![2.0]), [8.0]);
        let mut state = State {
            of: (0.0, [[0.0; 2]; 2]),
            at: 0,
        };
        let mut by = 1.0;
        assert_eq!(
            state.added(vec![4.0, 4.0], 0, &mut by),
            1.0 + 3.0 + 1.0 + 2.0
        );
    }
}

/// Arguments that are called as variables of the expansion are.
pub mod arguments {
    use super::*;

    macro_rules! named {
        ($($name:ident),*) => {$(
            pub mod $name {
                use super::*;
                #[measured(items = 32)]
                pub fn items($name: &Tensor) -> Tensor {
                    $name.clone()
                }
                #[measured(tags(of = $name.rank()), step = 3_u64)]
                pub fn tags(other: &Tensor, $name: Tensor) -> Result<Tensor, String> {
                    let _ = other;
                    Ok($name)
                }
                #[measured]
                pub fn many(a: u8, b: u8, c: u8, d: u8, e: u8, f: u8, $name: &Tensor) -> Tensor {
                    let _ = (a, b, c, d, e, f);
                    $name.clone()
                }
                #[measured]
                pub async fn later(a: u8, b: u8, c: u8, d: u8, e: u8, f: u8, $name: &Tensor) -> Tensor {
                    let _ = (a, b, c, d, e, f);
                    yield_now().await;
                    $name.clone()
                }
                #[profile_step(backward, ops(stats), name = "{#}")]
                #[record_stats("{#}")]
                pub fn step(mut $name: Tensor, unused: &Tensor) -> Tensor {
                    $name = ($name + unused).unwrap();
                    #[record_stats]
                    let again = $name.clone();
                    again
                }
                #[profile_span]
                #[record_scalar("{#}")]
                pub fn taken($name: Vec<Tensor>) -> usize {
                    $name.len()
                }
                pub fn check() {
                    let x = mk(1.0);
                    assert_eq!(first(&items(&x)), 1.0);
                    assert_eq!(first(&tags(&x, x.clone()).unwrap()), 1.0);
                    assert_eq!(first(&many(1, 2, 3, 4, 5, 6, &x)), 1.0);
                    assert_eq!(first(&block_on(later(1, 2, 3, 4, 5, 6, &x))), 1.0);
                    assert_eq!(first(&step(x.clone(), &x)), 2.0);
                    assert_eq!(taken(vec![x]), 1);
                }
            }
        )*
        pub(super) fn check() {
            $($name::check();)*
        }};
    }
    named!(
        details, key, ordinal, show, value, guard, span, ended, parked, turns, given, lent, text0,
        argument0, noted0, part0, text, r#type
    );
}

/// What a statement's span does not take in, and what it may hold.
pub mod reach {
    use super::*;

    macro_rules! show {
        ($x:expr) => {
            let _ = $x;
        };
        ($(#[$m:meta])* value $x:expr) => {
            $x
        };
    }
    mod inner {
        macro_rules! list {
            ($($x:expr),*) => {
                vec![$($x),*]
            };
        }
        pub(super) use list;
    }

    /// What follows a macro's braces is in sight, and is no part of it.
    #[profile_span]
    pub fn braces(x: u32) -> u32 {
        #[profile_span]
        show! { x }
        let y = x + 1;
        #[profile_span]
        const {
            assert!(true)
        }
        let z = y + 1;
        #[profile_span]
        inner::list! { x, y }.clear();
        #[profile_span]
        self::inner::list! { x, y };
        #[record_scalar("z")]
        show! { value z }
    }

    fn run<F: Future>(f: impl FnOnce() -> F) -> F::Output {
        block_on(f())
    }
    async fn later(x: u8) -> Result<u8, String> {
        yield_now().await;
        Ok(x)
    }
    async fn over<R>(f: impl AsyncFnOnce((u8, u8)) -> R) -> R {
        f((1, 2)).await
    }

    /// Closures and functions that wait, in a statement that does not.
    #[profile_span]
    pub fn waiting() -> Result<u8, String> {
        #[profile_span]
        let a = block_on(over(async |(a, b)| later(a + b).await))?;
        #[profile_span]
        let b = run(async || -> Result<u8, String> { later(2).await })?;
        #[measured(name = "inside")]
        {
            async fn inside(x: u8) -> Result<u8, String> {
                later(x).await
            }
            let _ = block_on(inside(a));
        }
        #[profile_span]
        let c = run(async move || Ok::<u8, String>(later(a).await?.max(later(b).await?)))?;
        #[profile_span]
        let d = run(async || match later(a).await {
            Ok(a) => later(a).await,
            Err(_) => later(1).await,
        })?;
        #[profile_span]
        let e =
            run(async || Option::<(u8, u8)>::None.is_none() && later(0).await.is_ok()).then_some(1);
        Ok(a + b + c + d + e.unwrap_or(0))
    }

    pub(super) fn check() {
        assert_eq!(braces(1), 3);
        assert_eq!(waiting(), Ok(3 + 2 + 3 + 3 + 1));
    }
}

/// Blocks and statements that `macro_rules` hands on as a whole.
pub mod fragments {
    use candle_profiler::{measured, profile_span};

    fn used<T>(_: T) {}

    macro_rules! before {
        ($name:ident, $turn:lifetime, $block:block) => {
            #[profile_span]
            pub fn $name() -> u8 {
                let mut turns = 0;
                #[measured]
                $turn: for i in 0..3 {
                    if i == 1 {
                        continue $turn;
                    }
                    turns += 1;
                }
                #[profile_span(name = "block")]
                $block
                let one = 1;
                #[profile_span]
                $block
                return turns + one;
            }
        };
    }
    before!(blocks, 'turn, { used(()); });

    macro_rules! after {
        ($name:ident, $block:block) => {
            #[profile_span(ops)]
            pub fn $name() -> u8 {
                $block
                #[profile_span]
                used(());
                $block
                7
            }
        };
    }
    after!(call, {});

    macro_rules! locals {
        ($plain:ident, $spanned:ident, $ops:ident, $x:ident, $($statement:stmt;)*) => {
            pub fn $plain() -> u8 {
                $($statement)*
                $x
            }
            #[profile_span]
            pub fn $spanned() -> u8 {
                $($statement)*
                #[profile_span]
                let $x = $x + 1;
                $x
            }
            #[profile_span(ops)]
            pub fn $ops() -> u8 {
                $($statement)*
                $x
            }
        };
    }
    locals!(plain, spanned, ops, x, let x = 1; used(x); let x = x + 1; { used(x); }; fn item() {}; item(););

    macro_rules! last {
        ($name:ident, $statement:stmt) => {
            #[profile_span]
            pub fn $name() {
                #[profile_span]
                $statement
            }
        };
    }
    last!(last, used(3));

    pub(super) fn check() {
        assert_eq!(blocks(), 3);
        assert_eq!(call(), 7);
        assert_eq!((plain(), spanned(), ops()), (2, 3, 2));
        last();
    }
}

/// A caller that is told only by a condition.
#[measured]
#[cfg_attr(all(), inline, track_caller)]
pub fn caller_line() -> Option<u32> {
    Some(std::panic::Location::caller().line())
}

/// Names that are keywords.
#[profile_span(name = "{r#type}")]
#[record_scalar("{r#fn}")]
pub fn keywords(#[record_scalar("type")] r#type: u32, #[record_stats] r#fn: &Tensor) -> u32 {
    #[record_scalar("match {r#type}")]
    #[profile_span]
    let r#match = r#type + r#fn.rank() as u32;
    r#match
}

/// All of them.
pub fn check() {
    places::check();
    arguments::check();
    reach::check();
    fragments::check();
    let here = line!();
    assert_eq!(caller_line(), Some(here + 1));
    assert_eq!(keywords(1, &mk(1.0)), 2);
}
