//! Forms of code with `ops`: functions handed on, closures that are returned, constants that live for ever, and where
//! expressions begin and end.

use candle_core::{DType, Device, Result, Tensor};
use candle_profiler::profile_span;
use tests::capturing::region;

fn ones(rows: usize, columns: usize) -> Tensor {
    Tensor::ones((rows, columns), DType::F32, &Device::Cpu).expect("a tensor")
}

/// Functions handed on by name: what they are for is known only where they are called.
#[profile_span(ops(stats))]
fn handed_on(text: &str, f: impl FnOnce() -> u8, twice: bool) -> usize {
    use std::convert::identity;
    fn same<T>(x: T) -> T {
        x
    }
    fn make<T: Default>() -> T {
        T::default()
    }
    mod inner {
        pub fn keep<T>(x: Option<T>) -> Option<T> {
            x
        }
    }
    use inner::keep;
    let parsed = text.parse::<u8>().map(same);
    let _ = text.parse::<u8>().map(drop);
    let some: usize = [Some(1), None].into_iter().filter_map(identity).sum();
    let kept: usize = vec![Some(2), None].into_iter().filter_map(keep).sum();
    let made: Option<u8> = twice.then(make);
    let called = twice.then(f);
    let opened: fn(usize) -> usize = if twice { same } else { identity };
    let map = |x: usize| Some(x).map(opened).unwrap_or_else(make);
    some + kept
        + usize::from(parsed.unwrap_or_default() + made.unwrap_or_default())
        + usize::from(called.unwrap_or(1))
        + map(3)
}

/// What a closure holds is what it held: it may be returned.
mod returned {
    use super::*;

    pub trait Scaled {
        fn scale(&self, by: &Tensor) -> Result<Tensor>;
        fn scale_all(&self, by: &[Tensor]) -> Result<Tensor>;
    }
    impl Scaled for Tensor {
        fn scale(&self, by: &Tensor) -> Result<Tensor> {
            self.broadcast_mul(by)
        }
        fn scale_all(&self, by: &[Tensor]) -> Result<Tensor> {
            by.iter().try_fold(self.clone(), |x, by| x.scale(by))
        }
    }
    pub struct Held<'a> {
        pub of: &'a Tensor,
        pub own: Tensor,
    }
    #[profile_span(ops)]
    pub fn lazily<'a>(
        xs: &'a [Tensor],
        w: &'a Tensor,
    ) -> impl Iterator<Item = Result<Tensor>> + 'a {
        xs.iter().map(|t| t.scale(w)?.scale(w))
    }
    #[profile_span(ops)]
    pub fn boxed<'a>(
        held: &'a Held<'a>,
        all: &'a [Tensor],
    ) -> Box<dyn Fn(&Tensor) -> Result<Tensor> + 'a> {
        Box::new(|t| {
            let y = t.scale(held.of)?.scale_all(all)?;
            let z = y.scale(&held.own)?;
            let again = || z.scale(held.of)?.scale(&z);
            again()
        })
    }
    #[profile_span(ops)]
    pub fn waiting<'a>(
        x: &'a Tensor,
        w: &'a Tensor,
    ) -> impl std::future::Future<Output = Result<Tensor>> + 'a {
        async { x.scale(w) }
    }
    #[profile_span(ops)]
    pub fn moved(x: Tensor, w: Tensor) -> impl Fn(&Tensor) -> Result<Tensor> {
        let scaled = x.scale(&w);
        move |t| t.scale(scaled.as_ref().unwrap_or(&x))?.scale(&w)
    }
    #[profile_span(ops)]
    pub fn counted<'a>(
        state: &'a mut Vec<Tensor>,
        w: &'a Tensor,
    ) -> impl FnMut(Tensor) -> usize + 'a {
        |t| {
            state.extend(t.scale(w));
            state.len()
        }
    }
}

/// What is known when the program is built lives for ever.
mod promoted {
    use candle_profiler::profile_span;
    pub const N: usize = 4;
    pub struct Size<const M: usize>;
    impl<const M: usize> Size<M> {
        const HALF: usize = M / 2;
        #[profile_span(ops)]
        pub fn sizes(&self) -> [&'static usize; 4] {
            [
                &(N * 2),
                &(Self::HALF + N - 1),
                &((N * 2) % 3 + 1 * 2 + 3),
                &(usize::MAX / 2 - (super::promoted::N as usize) * 1),
            ]
        }
    }
    #[profile_span(ops(stats))]
    pub fn list() -> &'static [f32] {
        &[-1.0 + 2.0 * 3.0 - f32::MIN_POSITIVE, 1.0 / 2.0 + 3.0]
    }
}

/// Forms that end or begin where one would not think.
mod written {
    use super::*;

    #[allow(non_camel_case_types)]
    #[derive(Clone, Copy)]
    pub struct point {
        pub x: i32,
    }
    impl point {
        fn norm(self) -> i32 {
            self.x.abs()
        }
    }
    #[derive(Default)]
    pub struct Builder<T> {
        at: point,
        of: T,
    }
    impl Default for point {
        fn default() -> Self {
            point { x: -7 }
        }
    }
    impl<T> Builder<T> {
        fn build(self) -> (i32, T) {
            (self.at.x, self.of)
        }
    }
    macro_rules! built {
        ($t:ident, $p:ident) => {
            #[profile_span(ops)]
            pub fn built(x: i32) -> i32 {
                let at = $p { x };
                let (n, of) = $t { at, of: x }.build();
                $t {
                    of: 1,
                    ..Default::default()
                }
                .build()
                .0 + n
                    + of
            }
        };
    }
    built!(Builder, point);

    #[profile_span(ops(stats))]
    pub fn arms(s: i32, a: bool) -> i32 {
        let first = match s {
            1 => {
                if a {
                    1
                } else {
                    2
                }
            }
            -1 => 3,
            // SAFETY: the text is ASCII.
            2 => unsafe { std::str::from_utf8_unchecked(b"").len() as i32 },
            -2 => match a {
                true => 4,
                false => 5,
            },
            -3 => loop {
                break 6;
            },
            3 => 'out: {
                if a {
                    break 'out 7;
                }
                8
            }
            -4 => if a { 1 } else { 2 }.max(9),
            _ => point { x: s }.norm(),
        };
        let p = point { x: s };
        let same = if (p.x == s) && matches!(p, point { .. }) {
            p.norm()
        } else {
            0
        };
        let q = self::point { x: -first }.norm() - point { x: 1 }.norm() * 2;
        match p {
            point { x } if x > 100 => x - 1,
            point { x } => first + same + q - x,
        }
    }
}

fn more() -> Result<Vec<f64>> {
    let mut found = vec![handed_on("3", || 2, true) as f64];
    let (x, w) = (ones(2, 2), (ones(2, 2) * 2.0)?);
    let number = |x: Tensor| -> Result<f64> { Ok(f64::from(x.sum_all()?.to_scalar::<f32>()?)) };
    for y in returned::lazily(&[x.clone()], &w) {
        found.push(number(y?)?);
    }
    let held = returned::Held {
        of: &w,
        own: w.clone(),
    };
    found.push(number(returned::boxed(&held, &[w.clone()])(&x)?)?);
    let waited = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime")
        .block_on(returned::waiting(&x, &w))?;
    found.push(number(waited)?);
    found.push(number(returned::moved(x.clone(), w.clone())(&x)?)?);
    found.push(returned::counted(&mut Vec::new(), &w)(x.clone()) as f64);
    let sizes = promoted::Size::<6>.sizes();
    found.push(*sizes[0] as f64 + *sizes[1] as f64 + *sizes[2] as f64);
    found.extend(promoted::list().iter().map(|x| f64::from(*x)));
    found.push(f64::from(written::built(5)));
    found.extend([1, -1, 2, -2, -3, 3, -4, 12].map(|s| f64::from(written::arms(s, true))));
    Ok(found)
}

#[test]
fn bodies_that_lend_and_return_give_what_they_gave() {
    tests::capturing::folder();
    let plain = more().expect("tensors");
    let arms = |s: f64, first: f64| first + s.abs() + (first - 2.0) - s;
    let expected = [
        1.0 + 2.0 + 3.0 + 0.0 + 2.0 + 3.0,
        16.0,
        512.0,
        8.0,
        16.0,
        1.0,
        8.0 + 6.0 + 7.0,
        5.0,
        3.5,
        -7.0 + 5.0 + 5.0,
        arms(1.0, 1.0),
        arms(-1.0, 3.0),
        arms(2.0, 0.0),
        arms(-2.0, 4.0),
        arms(-3.0, 6.0),
        arms(3.0, 7.0),
        arms(-4.0, 9.0),
        arms(12.0, 12.0),
    ];
    assert_eq!(plain, expected);
    let (recorded, trace) = region(more);
    assert_eq!(recorded.expect("tensors"), plain);
    assert!(!trace.kind("op").is_empty());
}
