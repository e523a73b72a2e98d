//! More of the kinds in `macro_cases`: statements, parameters, temporaries, macros, boxed futures.
#![deny(warnings)]
#![allow(clippy::all)]
use crate::macro_cases::tensor::{Tensor, mk};
use std::sync::Mutex;
/// Items lead.
#[measured]
pub fn items_first(x: u32) -> u32 {
    use std::collections::HashMap;
    const K: u32 = 2;
    fn inner(x: u32) -> u32 {
        x * K
    }
    let mut m = HashMap::new();
    m.insert(1, inner(x));
    m[&1]
}
/// Items lead.
#[profile_step(forward, name = "lead {x}")]
pub fn items_first_plain(x: u32) -> u32 {
    use std::collections::HashMap;
    let mut m = HashMap::new();
    m.insert(1, x);
    m[&1]
}
/// Unit.
#[measured]
pub fn items_first_unit(x: &mut u32, m: Mutex<u32>) {
    use std::mem::swap;
    let mut y = 2;
    swap(x, &mut y);
    *m.lock().unwrap() += 1;
}
/// Temporaries in the tail.
#[measured]
pub fn tail_temporary(m: Mutex<u32>) -> u32 {
    *m.lock().unwrap()
}
/// Temporaries in the tail.
#[measured]
pub fn tail_temporary_unit(m: Mutex<Vec<u32>>) {
    m.lock().unwrap().push(1)
}
/// Temporaries in the tail.
#[measured]
pub async fn tail_temporary_async(m: Mutex<u32>) -> u32 {
    *m.lock().unwrap()
}
/// Temporaries in the tail.
#[profile_span(kind = module, detached)]
pub async fn tail_temporary_async2(m: Mutex<u32>) -> u32 {
    *m.lock().unwrap()
}
/// closure
#[measured]
pub fn closure() -> impl Fn(&str) -> usize {
    |s| s.len()
}
/// closure
#[measured]
pub fn boxed_closure() -> Box<dyn Fn(&str) -> usize> {
    Box::new(|s| s.len())
}
/// params
#[measured(name = "par {x}", step = x, items = x, tags(a = x, "b" = "c"))]
#[record_stats("out {x}")]
#[record_stats]
pub fn params(
    x: u32,
    #[record_stats] t: &Tensor,
    #[record_stats("pat {x}")] (a, _b): (Tensor, Tensor),
) -> Tensor {
    #[record_stats]
    let y = mk(1.0);
    #[profile_span]
    #[record_stats("z {x}")]
    let z = (t + &a).unwrap();
    #[record_scalar("s")]
    let s = 1.0_f32;
    #[record_stats]
    let (p, q) = (mk(s), mk(2.0));
    for _i in 0..x {
        #[profile_step(backward, name = "b {_i}")]
        {
            let _ = p.clone();
        }
    }
    let _ = q;
    #[profile_span]
    (z + y).unwrap()
}
/// A model.
pub struct M {
    w: Vec<Tensor>,
    n: (u32, &'static str),
}
impl M {
    /// method
    #[profile_step(forward, name = "layer {self.n.0} {self.n.1:>4} {#}")]
    #[record_stats("o {self.n.0}")]
    pub fn forward(&self, x: &Tensor) -> crate::macro_cases::tensor::Result<Tensor> {
        let mut x = x.clone();
        for w in &self.w {
            #[record_stats("x {#}")]
            x = (x + w)?;
            #[record_stats]
            let _t = x.clone();
        }
        Ok(x)
    }
    /// method
    #[measured]
    pub async fn later(&self, mut n: u32, _unused: u32) -> u32 {
        n += self.n.0;
        n
    }
    /// method
    #[record_stats("lt {self.n.0}")]
    #[measured(name = "nm {n}")]
    pub async fn later2(&self, n: u32) -> Tensor {
        #[allow(clippy::cast_precision_loss)]
        mk(n as f32)
    }
    /// method
    #[record_stats("lt {n}")]
    pub async fn later3(&self, n: u32) -> Tensor {
        #[allow(clippy::cast_precision_loss)]
        mk(n as f32)
    }
}
/// The loop.
#[profile_span]
pub fn training(batches: &[u32]) -> Result<u32, String> {
    let mut sum = 0;
    'outer: loop {
        #[measured(name = "step", tags(k = sum))]
        for b in batches {
            use std::cmp::max;
            if *b == 1 {
                continue;
            }
            if *b == 2 {
                continue 'outer;
            }
            if *b == 3 {
                break 'outer;
            }
            if *b == 4 {
                return Ok(sum);
            }
            if *b == 5 {
                Err("five")?;
            }
            #[profile_step(optimizer)]
            {
                sum += max(*b, 1);
            }
            #[profile_span(name = "sum {sum}")]
            sum += 3_u32;
        }
        #[profile_step(forward)]
        while sum > 100 {
            sum -= 1;
        }
        #[profile_span]
        loop {
            if sum > 0 {
                break;
            }
            sum += 1;
        }
        let f = |x: u32| {
            #[profile_span]
            let y = x + 1;
            y
        };
        #[profile_span]
        vec![f(1)].clear();
        #[profile_span]
        println!("x");
        break;
    }
    Ok(sum)
}
/// track
#[measured]
#[track_caller]
pub fn tracked(_x: &Tensor) -> u32 {
    std::panic::Location::caller().line()
}
macro_rules! make {
    ($name:ident, $e:expr, $t:ty, $l:literal) => {
        /// Doc.
        #[measured]
        #[record_stats($l)]
        pub fn $name(x: &$t) -> Tensor {
            #[record_stats]
            let y = (x * $e).unwrap();
            let z: &$t = &y;
            z.clone()
        }
    };
}
make!(six, 1.0 + 2.0, Tensor, "lab");
macro_rules! num {
    ($e:expr) => {
        /// n
        #[profile_span]
        pub fn num() -> i32 {
            #[profile_span]
            let a = 2 * $e;
            let _b = a * $e;
            a * $e - $e
        }
    };
}
num!(1 + 2);
/// All.
pub fn check() {
    assert_eq!(crate::macro_cases::tensor::first(&six(&mk(2.0))), 6.0);
    assert_eq!(num(), 15);
    assert_eq!(items_first(2), 4);
    let here = line!();
    assert_eq!(tracked(&mk(1.0)), here + 1);
    assert_eq!(
        crate::macro_cases::tensor::first(&params(1, &mk(1.0), (mk(2.0), mk(3.0)))),
        4.0
    );
    assert_eq!(training(&[1, 1, 7, 3]), Ok(10));
    let m = M {
        w: vec![mk(1.0)],
        n: (1, "a"),
    };
    assert!(m.forward(&mk(1.0)).is_ok());
}
/// More.
pub mod more {
    #![allow(missing_docs, clippy::all, unreachable_pub, dead_code)]
    use super::*;
    use candle_profiler as cp;
    #[cp::measured]
    #[cp::record_stats("y")]
    pub fn paths(
        #[cfg(any())] gone: Missing,
        #[allow(unused_variables)] x: u32,
        #[cfg(all())] t: Tensor,
    ) -> Tensor {
        #[cfg(any())]
        #[cp::record_stats]
        #[cp::profile_span]
        let g = Missing;
        #[cp::profile_span]
        fn nested(x: u32) -> u32 {
            #[cp::profile_span]
            let y = x;
            y
        }
        nested(1);
        struct Local;
        impl Local {
            #[cp::measured]
            fn m(&self) -> u32 {
                1
            }
        }
        Local.m();
        t
    }
    #[expect(dead_code)]
    struct Dead;
    pub struct N {
        pub w: u32,
    }
    impl N {
        #[measured]
        pub async fn owned(mut self) -> Self {
            self.w = 1;
            self
        }
        #[profile_span]
        pub fn mine(mut self: Box<Self>, f: impl Fn(u32) -> u32) -> u32 {
            self.w += 1;
            f(self.w)
        }
        #[measured]
        pub fn me(&mut self, f: &mut dyn FnMut(u32)) -> &mut u32 {
            f(1);
            &mut self.w
        }
        #[measured]
        pub fn r#match(&self) -> Vec<(u32, [u32; 2])> {
            vec![]
        }
    }
    pub trait D {
        #[measured]
        fn d(&self) -> Result<u32, std::fmt::Error> {
            Ok(1)
        }
        #[profile_span(name = "{#}")]
        fn e(&self)
        where
            Self: Sized,
        {
        }
        #[profile_step(fwd)]
        fn fw(self) -> Self
        where
            Self: Sized,
        {
            self
        }
    }
    impl D for str {}
    impl<T> D for [T] {}
    #[async_trait::async_trait]
    pub trait Svc {
        async fn call(&self, x: &str) -> Result<usize, String>;
        #[measured(name = "df {x}")]
        async fn dflt(&mut self, x: u32) -> u32 {
            x + 1
        }
    }
    #[async_trait::async_trait]
    impl Svc for N {
        #[measured]
        #[record_scalar("len")]
        async fn call(&self, x: &str) -> Result<usize, String> {
            let y = x.to_owned();
            tokio_like().await;
            if y.is_empty() {
                return Err("e".into());
            }
            Ok(y.len())
        }
    }
    #[async_trait::async_trait]
    impl Svc for u32 {
        #[profile_step(forward, name = "call {x} {self}")]
        async fn call(&self, x: &str) -> Result<usize, String> {
            Ok(x.len())
        }
    }
    async fn tokio_like() {}
    #[measured]
    pub async fn infer<T: Default>() -> T
    where
        T: Send,
    {
        T::default()
    }
    #[measured(infer, device = candle_core::Device::Cpu)]
    pub async fn cl(
        f: impl Fn(u32) -> u32,
    ) -> Result<Box<dyn Fn(&str) -> usize>, Box<dyn std::error::Error>> {
        f(1);
        Ok(Box::new(|s| s.len()))
    }
    #[measured]
    pub fn lifetimes<'a>(a: &'a str, _b: &str) -> std::borrow::Cow<'a, str> {
        a.into()
    }
    #[measured]
    pub fn ptr() -> Option<fn() -> !> {
        None
    }
    #[measured]
    pub async fn ptr2() -> Option<fn() -> !> {
        None
    }
    macro_rules! ty {
        ($t:ty) => {
            $t
        };
    }
    #[measured]
    pub async fn mac(x: ty!(u32)) -> ty!(u32) {
        x
    }
    macro_rules! wrapped {
        ($i:item) => {
            #[measured]
            $i
        };
    }
    wrapped! { pub fn wr(x: u32) -> u32 { #[profile_span] let y = x; y } }
    macro_rules! blk {
        ($b:block $p:pat, $t:ty, $e:expr) => {
            #[measured]
            pub fn blk($p: $t) -> u32 {
                #[profile_span]
                let z = $e;
                let w: u32 = $b;
                w * z
            }
        };
    }
    blk!({ 3 }(_a, _), (u32, u32), 1 + 1);
    #[profile_span]
    pub fn values(n: u32) -> usize {
        #[measured]
        let r: Result<u32, String> = Ok(n);
        #[profile_span]
        let Ok(v) = r else { return 0 };
        #[record_scalar("v")]
        #[profile_span]
        v_of(v as f32);
        let mut a = [0.0f32; 2];
        #[record_scalar("a")]
        a[0] += 1.0;
        #[profile_span]
        match n {
            0 => {}
            _ => {}
        }
        #[profile_span]
        if n > 2 {
            a[1] = 1.0
        } else {
            a[1] = 2.0
        }
        #[profile_span]
        unsafe {
            core::hint::unreachable_unchecked_if(n)
        };
        #[record_scalar("tail")]
        (a[0] + a[1]).to_us()
    }
    fn v_of(x: f32) -> f32 {
        x
    }
    mod core {
        pub mod hint {
            pub unsafe fn unreachable_unchecked_if(_: u32) {}
        }
    }
    trait ToU {
        fn to_us(self) -> usize;
    }
    impl ToU for f32 {
        fn to_us(self) -> usize {
            self as usize
        }
    }
}
