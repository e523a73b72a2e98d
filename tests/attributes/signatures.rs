//! Every kind of signature: patterns, receivers, generics, lifetimes, qualifiers, and what tensors go through it.
#![deny(warnings)]
#![allow(clippy::all, unsafe_op_in_unsafe_fn)]
use crate::macro_cases::support::{Log, Noisy, block_on, yield_now};
use crate::macro_cases::tensor::{Tensor, first, mk};
use candle_core::{Module, Result, Var};
use std::borrow::Cow;
use std::collections::HashMap;
use std::future::Future;
use std::marker::PhantomData;
use std::path::Path;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard};

/// A pair in a structure.
pub struct Wrapper {
    w: u32,
    t: Tensor,
}
macro_rules! patterns {
    ($name:ident, $(#[$meta:meta])*) => {
        $(#[$meta])*
        pub fn $name(
            &(a, ref b): &(u32, Tensor),
            mut x: Tensor,
            _: Tensor,
            ref y: Tensor,
            [c, ..]: [u32; 3],
            Wrapper { w, t: ref inner }: Wrapper,
            n @ _: u32,
            (d @ 1..=u32::MAX | d @ 0): u32,
            _unused: &Tensor,
            mut list: Vec<Tensor>,
        ) -> Result<(Tensor, u32)> {
            if a == 100 {
                return Ok((x, 0));
            }
            x = (x + b)?;
            list.push(y.clone());
            let all = list.into_iter().try_fold(x, |sum, each| sum + each)?;
            Ok(((all + inner)?, a + c + w + n + d))
        }
    };
}
patterns!(patterns_plain,);
patterns!(patterns_span, #[profile_step(forward)]);
patterns!(patterns_measured, #[measured(name = "m")]);
patterns!(patterns_recorded, #[profile_span(name = "{#}")]);
patterns!(patterns_ops, #[profile_span(ops(stats))]);

/// Labels of what patterns bind.
#[measured(name = "m {n} {w}", items = d, tags(a = a))]
pub fn told_measured(
    &(a, ref b): &(u32, Tensor),
    Wrapper { w, t }: Wrapper,
    n @ _: u32,
    (mut d, _e): (u64, Tensor),
) -> Option<Tensor> {
    d += u64::from(a + w + n);
    if d == 0 {
        return Some(b.clone());
    }
    (b + t).ok()
}
/// The same, early returns seen.
#[profile_span(name = "m {a} {w}")]
#[record_stats("m {a} {w} {#}")]
pub fn told_recorded((a, w): (u32, u32), x: &Tensor) -> Tensor {
    if a > w {
        return x.clone();
    }
    (x + x).unwrap()
}
/// The same.
#[profile_span(name = "m {a} {w}")]
pub async fn told_later((a, mut w): (u32, u32), x: &Tensor) -> Tensor {
    yield_now().await;
    w += a;
    (x + f64::from(w)).unwrap()
}

/// Tensors that the body takes.
pub mod taken {
    use super::*;
    #[profile_step(forward)]
    pub fn moved(x: Tensor, keep: &mut Vec<Tensor>) -> Tensor {
        let y = x.clone();
        keep.push(x);
        y
    }
    #[profile_step(forward)]
    #[record_stats("list {#}")]
    pub fn list(xs: Vec<Tensor>, n: usize) -> Option<Tensor> {
        if n > 3 {
            return None;
        }
        xs.into_iter().nth(n)
    }
    #[profile_span]
    pub fn option(x: Option<Tensor>, y: Option<&Tensor>) -> Option<Tensor> {
        let (x, y) = (x?, y?);
        (x + y).ok()
    }
    #[profile_span]
    pub fn map(xs: HashMap<String, Tensor>, key: &str) -> Result<Tensor> {
        for (name, x) in xs {
            if name == key {
                return Ok(x);
            }
        }
        candle_core::bail!("no {key}")
    }
    #[profile_span]
    pub fn shared(x: Arc<Mutex<Tensor>>, r: Rc<Tensor>, b: Box<Tensor>) -> Result<Tensor> {
        let locked = x.lock().unwrap();
        (&*locked + &*r)? + *b
    }
    #[profile_span]
    pub fn locked<'a>(x: &'a Mutex<Tensor>, y: &Tensor) -> MutexGuard<'a, Tensor> {
        let mut locked = x.lock().unwrap();
        *locked = y.clone();
        locked
    }
    #[profile_span]
    pub fn exclusive<'a>(x: &'a mut Tensor, y: &Tensor) -> Option<&'a mut Tensor> {
        if y.rank() > 7 {
            return None;
        }
        *x = y.clone();
        Some(x)
    }
    #[measured]
    pub fn iterated<'a>(xs: &'a mut [Tensor], y: &Tensor) -> std::slice::IterMut<'a, Tensor> {
        xs[0] = y.clone();
        xs.iter_mut()
    }
    #[profile_span]
    pub fn array<const N: usize>(xs: [Tensor; N], ys: &[Tensor; N]) -> [Tensor; N] {
        if N == 0 {
            return xs;
        }
        ys.clone()
    }
    #[profile_span]
    pub fn pointed<'a>(
        mut x: &'a Tensor,
        y: &&'a Tensor,
        p: *const Tensor,
    ) -> (Tensor, *const Tensor) {
        if y.rank() == 1 {
            x = *y;
        }
        (x.clone(), p)
    }
    #[profile_span]
    pub fn cow<'a>(x: &'a Tensor, y: Cow<'a, Tensor>, n: u32) -> Cow<'a, Tensor> {
        if n > 0 {
            return Cow::Borrowed(x);
        }
        y
    }
    #[profile_span]
    pub fn never(x: &Tensor, y: Tensor) -> ! {
        panic!("{} {}", x.rank(), y.rank())
    }
    #[profile_span]
    pub fn variables(x: &Var, xs: &[Var], plain: &Tensor) -> Result<Tensor> {
        let mut sum = x.as_tensor() + plain;
        for x in xs {
            sum = sum? + x.as_tensor();
        }
        sum
    }
    #[record_gradients(vars = vars, root = "loss", only = "0")]
    pub fn gradients(loss: Tensor, vars: &[Var]) -> Result<candle_core::backprop::GradStore> {
        let _ = vars;
        loss.backward()
    }
    #[record_gradients(vars = &[w.clone()])]
    #[profile_step(optimizer)]
    pub fn optimize(grads: &mut candle_core::backprop::GradStore, w: &Var) -> Option<Tensor> {
        if grads.get(w).is_none() {
            return None;
        }
        grads.remove(w)
    }
}

/// Receivers, generics, associated types.
pub mod generic {
    use super::*;
    pub struct Layer<T, const N: usize = 2>
    where
        T: Clone,
    {
        pub w: Tensor,
        pub of: [T; N],
    }
    impl<T: Clone + PartialOrd, const N: usize> Layer<T, N>
    where
        for<'a> &'a T: PartialEq,
    {
        #[profile_step(forward, name = "at {self.w:?} {N}")]
        pub fn pinned(mut self: Pin<&mut Self>, x: &Tensor) -> Result<Tensor>
        where
            Self: Unpin,
        {
            if N == 9 {
                return Ok(x.clone());
            }
            self.w = (&self.w + x)?;
            Ok(self.w.clone())
        }
        #[measured]
        pub fn counted(self: Rc<Self>, x: &Tensor) -> Result<(Rc<Self>, Tensor)> {
            let y = (&self.w + x)?;
            Ok((self, y))
        }
        #[profile_span]
        pub fn lent(self: &Rc<Self>, x: Option<&T>) -> Option<T> {
            #[profile_span]
            let x = x?;
            Some(x.clone())
        }
        #[measured(items = N as u64)]
        pub async fn boxed(self: Box<Self>, x: Tensor) -> Result<[Tensor; 2]> {
            yield_now().await;
            Ok([self.w, x])
        }
        #[profile_span]
        #[track_caller]
        pub fn tracked(&mut self, x: &Tensor, early: bool) -> (Tensor, u32) {
            if early {
                return (x.clone(), std::panic::Location::caller().line());
            }
            (self.w.clone(), std::panic::Location::caller().line())
        }
        #[profile_span]
        pub fn entry(&mut self, at: usize, other: &Tensor) -> Option<&mut T> {
            if other.rank() > 5 {
                return None;
            }
            self.of.get_mut(at)
        }
    }
    pub trait Lending {
        type Item<'a>
        where
            Self: 'a;
        fn next<'a>(&'a mut self, x: &Tensor) -> Option<Self::Item<'a>>;
        #[profile_span(name = "twice {#}")]
        fn twice(&mut self, x: &Tensor) -> bool {
            self.next(x).is_some() && self.next(x).is_some()
        }
    }
    impl Lending for Vec<Tensor> {
        type Item<'a> = (&'a mut Tensor, u32);
        #[profile_span]
        #[measured(infer)]
        fn next<'a>(&'a mut self, x: &Tensor) -> Option<Self::Item<'a>> {
            if x.rank() == 9 {
                return None;
            }
            self.first_mut().map(|each| (each, 1))
        }
    }
    #[profile_step(forward)]
    pub fn module<T: Module + ?Sized>(m: &T, x: &Tensor, _of: PhantomData<T>) -> Result<Tensor> {
        if x.rank() == 7 {
            return m.forward(&m.forward(x)?);
        }
        m.forward(x)
    }
    #[profile_step(forward, ops)]
    pub fn modules(
        m: &impl Module,
        n: &dyn Module,
        b: Box<dyn Module>,
        x: &Tensor,
    ) -> Result<Tensor> {
        b.forward(&n.forward(&x.apply(m)?)?)
    }
    #[profile_span]
    #[record_stats("as {#}")]
    pub fn as_tensor(x: impl AsRef<Tensor>, y: &impl AsRef<Tensor>) -> Tensor {
        if x.as_ref().rank() == 5 {
            return y.as_ref().clone();
        }
        (x.as_ref() + y.as_ref()).unwrap()
    }
    #[measured]
    pub fn each<F>(f: F, x: &Tensor) -> Tensor
    where
        F: for<'a> Fn(&'a Tensor) -> Cow<'a, Tensor>,
    {
        f(&x.clone()).into_owned()
    }
    #[profile_span]
    pub fn unsized_ones(a: &str, b: &[Tensor], c: &Path, d: &dyn Fn(&Tensor) -> Tensor) -> Tensor {
        if a.is_empty() && c.as_os_str().is_empty() {
            return d(&b[0]);
        }
        b[1].clone()
    }
    #[profile_span]
    pub fn returned<'a>(w: &'a Tensor, n: u32) -> impl Fn(&Tensor) -> Result<Tensor> + 'a {
        move |x| if n == 0 { Ok(x.clone()) } else { x + w }
    }
    #[profile_step(forward)]
    pub fn iterator<'a>(xs: &'a [Tensor]) -> Box<dyn Iterator<Item = Tensor> + 'a> {
        if xs.is_empty() {
            return Box::new(std::iter::empty());
        }
        Box::new(xs.iter().map(|x| (x + x).unwrap()))
    }
}

/// Qualifiers.
pub mod qualified {
    use super::*;
    #[measured]
    #[must_use]
    #[inline]
    pub unsafe fn raw(x: *const Tensor, y: &Tensor) -> Tensor {
        if x.is_null() {
            return y.clone();
        }
        (*x).clone()
    }
    #[profile_step(forward)]
    pub unsafe extern "C" fn foreign(x: &Tensor, p: *const u32) -> Option<Box<Tensor>> {
        if *p == 0 {
            return None;
        }
        Some(Box::new(x.clone()))
    }
    #[profile_span]
    pub async unsafe fn later(p: *const Tensor, y: &Tensor) -> (Tensor, u32) {
        ((&*p + y).unwrap(), 1)
    }
}

/// Futures.
pub mod later {
    use super::*;
    fn is_send<T: Send>(future: T) -> T {
        future
    }
    #[profile_step(forward, name = "a {n}")]
    pub async fn all<'a, 'b: 'a>(
        x: &'a Tensor,
        y: &'b Tensor,
        z: Tensor,
        xs: Vec<Tensor>,
        o: Option<&Tensor>,
        mut n: u32,
    ) -> Result<(&'a Tensor, Tensor, u32)> {
        n += 1;
        yield_now().await;
        if n > 9 {
            return Ok((y, z, n));
        }
        let sum = (z + &xs[0])?;
        yield_now().await;
        drop(xs);
        Ok((if o.is_some() { x } else { y }, sum, n))
    }
    #[measured]
    pub async fn deep(n: u32, x: Tensor) -> Result<Tensor> {
        if n == 0 {
            return Ok(x);
        }
        #[profile_span]
        let y = (&x + &x)?;
        Box::pin(deep(n - 1, y)).await
    }
    #[profile_step(forward, name = "boxed {n}")]
    pub fn boxed<'a>(
        n: u32,
        x: &'a Tensor,
    ) -> Pin<Box<dyn Future<Output = Result<Tensor>> + Send + 'a>> {
        Box::pin(async move {
            if n == 0 {
                return Ok(x.clone());
            }
            boxed(n - 1, &(x + x)?).await
        })
    }
    #[profile_span]
    pub async fn generic<F, T>(f: F, x: &Tensor) -> T
    where
        F: FnOnce(&Tensor) -> T,
    {
        let Some(x) = Some(x) else { unreachable!() };
        f(x)
    }
    #[profile_span(detached)]
    pub async fn block(x: &Tensor) -> Option<Tensor> {
        let inner = async { Some((x + x).ok()?) };
        #[measured]
        let y = 'found: {
            if x.rank() > 4 {
                break 'found None;
            }
            Some(1)
        };
        let y: u32 = y?;
        assert_eq!(y, 1);
        inner.await
    }
    pub fn check() {
        let one = mk(1.0);
        let all = is_send(all(&one, &one, one.clone(), vec![one.clone()], None, 1));
        let (_, sum, n) = block_on(all).unwrap();
        assert_eq!((first(&sum), n), (2.0, 2));
        assert_eq!(
            first(&block_on(is_send(deep(3, one.clone()))).unwrap()),
            8.0
        );
        assert_eq!(first(&block_on(boxed(2, &one)).unwrap()), 4.0);
        assert_eq!(block_on(generic(|x| x.rank(), &one)), 1);
        assert_eq!(first(&block_on(is_send(block(&one))).unwrap()), 2.0);
    }
}

/// When arguments are dropped which the body was given beside tensors.
pub mod drops {
    use super::*;
    macro_rules! dropping {
        ($name:ident, $(#[$meta:meta])*) => {
            $(#[$meta])*
            pub fn $name(a: Noisy, x: &Tensor, _: Noisy, t: (Tensor, Noisy), log: &Log) -> Result<Tensor> {
                let _local = Noisy("local", log.clone());
                if x.rank() == 2 {
                    return Ok(t.0);
                }
                log.push(a.name());
                x + t.0
            }
        };
    }
    dropping!(plain,);
    dropping!(span, #[profile_span]);
    dropping!(step, #[profile_step(forward, ops)]);
    dropping!(measured_call, #[measured]);
    dropping!(recorded, #[record_stats("x")]);
    pub fn check() {
        let one = mk(1.0);
        let run = |f: fn(Noisy, &Tensor, Noisy, (Tensor, Noisy), &Log) -> Result<Tensor>| {
            let log = Log::new();
            let noisy = |name| Noisy(name, log.clone());
            f(noisy("a"), &one, noisy("_"), (mk(2.0), noisy("t")), &log).unwrap();
            let x = one.unsqueeze(0).unwrap();
            f(noisy("a"), &x, noisy("_"), (mk(2.0), noisy("t")), &log).unwrap();
            log.take()
        };
        for other in [span, step, measured_call, recorded] {
            assert_eq!(run(other), run(plain));
        }
    }
}

/// Derived observers of all shapes.
pub mod derived {
    #![allow(dead_code)]
    use super::*;
    use candle_profiler::{Observe, ObserveScalar};
    #[derive(Clone, Observe)]
    pub struct Tree {
        pub value: Tensor,
        pub children: Vec<Tree>,
        pub next: Option<Box<Tree>>,
    }
    #[derive(Observe)]
    pub struct Many<'a, T, const N: usize = 1>(pub &'a T, pub [T; N], #[observe(skip)] pub &'a str)
    where
        T: Clone + 'a;
    #[derive(Observe, ObserveScalar)]
    pub struct Nothing;
    #[derive(Observe)]
    pub enum Output<T: ?Sized, I: Iterator = std::vec::IntoIter<u32>>
    where
        I::Item: Clone,
    {
        Tuple(Tensor, #[observe(skip)] Option<I>),
        Named {
            r#type: Tensor,
            #[observe(skip)]
            of: PhantomData<T>,
        },
        Empty,
    }
    #[derive(ObserveScalar)]
    pub struct Losses<T> {
        pub r#final: T,
        #[observe(skip)]
        pub parts: Vec<T>,
        pub rest: Option<f64>,
    }
    macro_rules! made {
        ($name:ident, $ty:ty) => {
            #[derive(Observe)]
            pub struct $name {
                pub made: $ty,
            }
        };
    }
    made!(Made, Option<Tensor>);
    #[record_stats("tree {#}")]
    #[profile_span]
    pub fn tree(tree: Tree, more: &Many<'_, Tensor, 2>, out: Output<str>) -> Result<Tree> {
        if let Output::Empty = out {
            return Ok(Tree {
                value: more.1[0].clone(),
                ..tree
            });
        }
        Ok(tree)
    }
    #[record_scalar("losses")]
    pub async fn losses(x: f32) -> Losses<f32> {
        #[record_stats]
        let _made = Made { made: None };
        #[record_stats("nothing")]
        let _nothing = Nothing;
        Losses {
            r#final: x,
            parts: vec![x],
            rest: None,
        }
    }
    pub fn check() {
        let one = mk(1.0);
        let leaf = Tree {
            value: one.clone(),
            children: vec![],
            next: None,
        };
        let root = Tree {
            value: one.clone(),
            children: vec![leaf.clone()],
            next: Some(Box::new(leaf)),
        };
        let many = Many(&one, [one.clone(), mk(2.0)], "a");
        assert_eq!(
            first(&tree(root.clone(), &many, Output::Empty).unwrap().value),
            1.0
        );
        let named = Output::Named {
            r#type: one.clone(),
            of: PhantomData,
        };
        assert_eq!(tree(root, &many, named).unwrap().children.len(), 1);
        assert_eq!(block_on(losses(2.0)).parts, [2.0]);
    }
}

fn check_patterns() {
    let one = || mk(1.0);
    let fns = [
        patterns_plain,
        patterns_span,
        patterns_measured,
        patterns_recorded,
        patterns_ops,
    ];
    for each in fns {
        let wrapper = || Wrapper { w: 1, t: one() };
        let got = each(
            &(1, one()),
            one(),
            one(),
            one(),
            [1, 2, 3],
            wrapper(),
            1,
            1,
            &one(),
            vec![one()],
        );
        let (sum, n) = got.unwrap();
        assert_eq!((first(&sum), n), (5.0, 5));
        let early = each(
            &(100, one()),
            one(),
            one(),
            one(),
            [1, 2, 3],
            wrapper(),
            1,
            0,
            &one(),
            vec![],
        );
        assert_eq!(early.unwrap().1, 0);
    }
}

fn check_told() {
    let one = || mk(1.0);
    let wrapper = Wrapper { w: 1, t: one() };
    let sum = told_measured(&(1, one()), wrapper, 1, (1, one()));
    assert_eq!(first(&sum.unwrap()), 2.0);
    assert_eq!(first(&told_recorded((2, 1), &one())), 1.0);
    assert_eq!(first(&block_on(told_later((1, 2), &one()))), 4.0);
}

fn check_taken() {
    use taken::*;
    let one = mk(1.0);
    let mut keep = vec![];
    assert_eq!(first(&moved(one.clone(), &mut keep)), 1.0);
    assert_eq!(keep.len(), 1);
    assert!(list(vec![one.clone()], 0).is_some() && list(vec![], 4).is_none());
    assert!(option(Some(one.clone()), Some(&one)).is_some() && option(None, None).is_none());
    assert!(map(HashMap::from([("a".to_owned(), one.clone())]), "a").is_ok());
    assert!(map(HashMap::new(), "a").is_err());
    let mutex = Arc::new(Mutex::new(one.clone()));
    let sum = shared(mutex.clone(), Rc::new(one.clone()), Box::new(one.clone()));
    assert_eq!(first(&sum.unwrap()), 3.0);
    assert_eq!(first(&locked(&mutex, &mk(4.0))), 4.0);
    let mut x = one.clone();
    assert_eq!(first(exclusive(&mut x, &mk(3.0)).unwrap()), 3.0);
    assert_eq!(iterated(&mut [one.clone()], &one).len(), 1);
    assert_eq!(array([one.clone()], &[mk(2.0)]).len(), 1);
    assert_eq!(first(&pointed(&one, &&one, &one).0), 1.0);
    assert_eq!(first(&cow(&one, Cow::Owned(mk(2.0)), 0)), 2.0);
    let end = std::panic::catch_unwind(|| never(&mk(1.0), mk(1.0)));
    let text = end.unwrap_err().downcast::<String>().unwrap();
    assert_eq!(*text, "1 1");
    let var = Var::from_tensor(&one).unwrap();
    let sum = variables(&var, &[var.clone()], &one).unwrap();
    assert_eq!(first(&sum), 3.0);
    let mut grads = gradients(sum, &[var.clone()]).unwrap();
    assert_eq!(first(&optimize(&mut grads, &var).unwrap()), 2.0);
    assert!(optimize(&mut grads, &var).is_none());
}

fn check_generic() {
    use generic::*;
    let one = mk(1.0);
    let new = || Layer {
        w: mk(1.0),
        of: [1u32, 2],
    };
    let mut layer = new();
    assert_eq!(first(&Pin::new(&mut layer).pinned(&one).unwrap()), 2.0);
    let (counted, y) = Rc::new(new()).counted(&one).unwrap();
    assert_eq!((first(&y), counted.lent(Some(&3))), (2.0, Some(3)));
    assert_eq!(
        block_on(Box::new(new()).boxed(one.clone())).unwrap().len(),
        2
    );
    let here = line!();
    assert_eq!(layer.tracked(&one, true).1, here + 1);
    assert_eq!(layer.entry(1, &one), Some(&mut 2));
    assert!(vec![one.clone()].twice(&one));
    let relu = |x: &Tensor| x.relu();
    assert_eq!(first(&module(&relu, &one, PhantomData).unwrap()), 1.0);
    assert_eq!(
        first(&modules(&relu, &relu, Box::new(relu), &one).unwrap()),
        1.0
    );
    assert_eq!(first(&as_tensor(&one, &one)), 2.0);
    assert_eq!(first(&each(|x| Cow::Owned(x.clone()), &one)), 1.0);
    let both = [mk(1.0), mk(2.0)];
    assert_eq!(
        first(&unsized_ones("", &both, Path::new(""), &|x| x.clone())),
        1.0
    );
    assert_eq!(first(&returned(&one, 1)(&one).unwrap()), 2.0);
    assert_eq!(iterator(&both).count(), 2);
}

/// All of them.
pub fn check() {
    check_patterns();
    check_told();
    check_taken();
    check_generic();
    later::check();
    drops::check();
    derived::check();
    let one = mk(1.0);
    unsafe {
        assert_eq!(first(&qualified::raw(std::ptr::null(), &one)), 1.0);
        assert_eq!(first(&qualified::raw(&mk(2.0), &one)), 2.0);
        assert!(qualified::foreign(&one, &0).is_none());
        assert_eq!(first(&block_on(qualified::later(&one, &one)).0), 2.0);
    }
}
