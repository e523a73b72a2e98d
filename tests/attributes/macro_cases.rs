//! One module for each way in which an attribute macro can break the function it stands on.
//!
//! Every module has `check()`, which asserts behaviour that attributes must not change.

pub mod support {
    use std::future::Future;
    use std::pin::Pin;
    use std::sync::{Arc, Mutex};
    use std::task::{Context, Poll, Waker};

    pub fn poll_once<F: Future + ?Sized>(fut: Pin<&mut F>) -> Poll<F::Output> {
        fut.poll(&mut Context::from_waker(Waker::noop()))
    }

    pub fn block_on<F: Future>(fut: F) -> F::Output {
        let mut fut = std::pin::pin!(fut);
        loop {
            if let Poll::Ready(out) = poll_once(fut.as_mut()) {
                return out;
            }
        }
    }

    /// Pending on the first poll, ready on the second.
    pub struct YieldOnce(bool);

    pub fn yield_now() -> YieldOnce {
        YieldOnce(false)
    }

    impl Future for YieldOnce {
        type Output = ();
        fn poll(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<()> {
            if self.0 {
                Poll::Ready(())
            } else {
                self.0 = true;
                Poll::Pending
            }
        }
    }

    /// A shared list of the things that happened, in order.
    #[derive(Clone, Default)]
    pub struct Log(Arc<Mutex<Vec<&'static str>>>);

    impl Log {
        pub fn new() -> Self {
            Self::default()
        }
        pub fn push(&self, what: &'static str) {
            self.0.lock().unwrap().push(what);
        }
        pub fn take(&self) -> Vec<&'static str> {
            std::mem::take(&mut *self.0.lock().unwrap())
        }
    }

    /// Writes its name into the log when it is dropped.
    pub struct Noisy(pub &'static str, pub Log);

    impl Noisy {
        pub fn name(&self) -> &'static str {
            self.0
        }
    }

    impl Drop for Noisy {
        fn drop(&mut self) {
            self.1.push(self.0);
        }
    }
}

/// Candle's tensors, as the cases use them.
pub mod tensor {
    pub use candle_core::{Error, Result, Tensor};
    pub fn mk(v: f32) -> Tensor {
        Tensor::new(&[v], &candle_core::Device::Cpu).unwrap()
    }
    pub fn first(t: &Tensor) -> f32 {
        t.flatten_all().unwrap().to_vec1::<f32>().unwrap()[0]
    }
    pub fn fail() -> Error {
        Error::Msg("no tensor".into())
    }
}

// M01: the future of an annotated async fn stays Send and 'static.
pub mod m01_async_send {
    use super::support::{block_on, yield_now};

    fn is_send<T: Send>(t: T) -> T {
        t
    }
    fn is_static<T: 'static>(t: T) -> T {
        t
    }

    #[measured]
    pub async fn step(x: u64) -> u64 {
        let y = x + 1;
        yield_now().await;
        y * 2
    }

    #[profile_step(forward)]
    pub async fn outer(x: u64) -> u64 {
        let first = step(x).await;
        step(first).await
    }

    pub fn check() {
        let fut = is_static(is_send(outer(3)));
        let got = std::thread::spawn(move || block_on(fut)).join().unwrap();
        assert_eq!(got, 18);
    }
}

// M02: two futures on one thread take turns; their spans must not nest into each other.
pub mod m02_interleaved {
    use super::support::{poll_once, yield_now};
    use std::pin::pin;
    use std::sync::Mutex;

    #[measured]
    pub fn leaf(id: u32) -> u32 {
        id
    }

    #[measured]
    pub async fn worker(id: u32, turns: u32, seen: &Mutex<Vec<u32>>) {
        for _ in 0..turns {
            seen.lock().unwrap().push(leaf(id));
            yield_now().await;
        }
    }

    pub fn check() {
        let seen = Mutex::new(Vec::new());
        // `a` starts first and ends first, while `b` is still suspended: not a stack order.
        let mut a = pin!(worker(1, 2, &seen));
        let mut b = pin!(worker(2, 3, &seen));
        let (mut a_done, mut b_done) = (false, false);
        while !(a_done && b_done) {
            if !a_done {
                a_done = poll_once(a.as_mut()).is_ready();
            }
            if !b_done {
                b_done = poll_once(b.as_mut()).is_ready();
            }
        }
        assert_eq!(*seen.lock().unwrap(), [1, 2, 1, 2, 2]);
        // With a session: every leaf(1) has parent worker(1), every leaf(2) has parent worker(2),
        // and after this line the thread's span depth is what it was before check().
    }
}

// M03: a future is dropped midway; its locals run annotated code while they are dropped.
pub mod m03_cancelled {
    use super::support::{block_on, poll_once, yield_now};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[measured]
    pub fn cleanup(n: &AtomicU32) {
        n.fetch_add(1, Ordering::SeqCst);
    }

    pub struct OnDrop(pub Arc<AtomicU32>);

    impl Drop for OnDrop {
        fn drop(&mut self) {
            cleanup(&self.0);
        }
    }

    #[measured]
    pub async fn long(n: Arc<AtomicU32>) -> u32 {
        let _on_drop = OnDrop(n);
        yield_now().await;
        yield_now().await;
        7
    }

    pub fn check() {
        let n = Arc::new(AtomicU32::new(0));
        let mut fut = Box::pin(long(n.clone()));
        assert!(poll_once(fut.as_mut()).is_pending());
        drop(fut);
        assert_eq!(n.load(Ordering::SeqCst), 1);
        assert_eq!(block_on(long(n.clone())), 7);
        assert_eq!(n.load(Ordering::SeqCst), 2);
        // With a session: the first `long` is closed as cancelled, its `cleanup` is its child.
    }
}

// M04: a plain fn that returns a future: work before the async block stays eager.
pub mod m04_returns_future {
    use super::support::{block_on, yield_now};
    use std::cell::Cell;
    use std::future::Future;
    use std::pin::Pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[measured]
    pub fn eager<'a>(n: &'a Cell<u32>) -> impl Future<Output = u32> + 'a {
        n.set(n.get() + 1);
        async move {
            yield_now().await;
            n.get() * 10
        }
    }

    #[measured]
    pub fn with_handle(start: u32) -> (impl Future<Output = u32>, Arc<AtomicU32>) {
        let progress = Arc::new(AtomicU32::new(start));
        let shared = progress.clone();
        let fut = async move {
            yield_now().await;
            shared.fetch_add(1, Ordering::SeqCst)
        };
        (fut, progress)
    }

    #[measured]
    #[allow(clippy::manual_async_fn)]
    pub fn only_block() -> impl Future<Output = u32> + Send {
        async { 5 }
    }

    #[measured]
    pub fn two_exits(early: bool) -> Pin<Box<dyn Future<Output = u32> + Send>> {
        if early {
            return Box::pin(std::future::ready(1));
        }
        Box::pin(async { 2 })
    }

    pub fn check() {
        let n = Cell::new(1);
        let fut = eager(&n);
        assert_eq!(
            n.get(),
            2,
            "the part before the async block runs at the call"
        );
        assert_eq!(block_on(fut), 20);
        let (fut, progress) = with_handle(4);
        assert_eq!(progress.load(Ordering::SeqCst), 4);
        assert_eq!(block_on(fut), 4);
        assert_eq!(progress.load(Ordering::SeqCst), 5);
        assert_eq!(block_on(only_block()), 5);
        assert_eq!(block_on(two_exits(true)) + block_on(two_exits(false)), 3);
    }
}

// M05: the shape that async-trait leaves behind, with statements before the `Box::pin`.
pub mod m05_boxed_future {
    use super::support::{block_on, yield_now};
    use std::future::Future;
    use std::pin::Pin;

    pub trait Service {
        fn call<'s, 'r, 'f>(
            &'s mut self,
            req: &'r str,
        ) -> Pin<Box<dyn Future<Output = usize> + Send + 'f>>
        where
            's: 'f,
            'r: 'f,
            Self: 'f;
    }

    pub struct Counter {
        pub total: usize,
    }

    impl Service for Counter {
        #[measured]
        #[allow(clippy::useless_vec)]
        fn call<'s, 'r, 'f>(
            &'s mut self,
            req: &'r str,
        ) -> Pin<Box<dyn Future<Output = usize> + Send + 'f>>
        where
            's: 'f,
            'r: 'f,
            Self: 'f,
        {
            let base = self.total;
            let history = vec![base];
            Box::pin(async move {
                let this = self;
                let req = req;
                yield_now().await;
                this.total += req.len();
                history[0] + this.total
            })
        }
    }

    #[measured]
    #[deny(unused_braces)]
    pub fn tiny() -> Pin<Box<dyn Future<Output = ()>>> {
        Box::pin(async move {})
    }

    pub fn check() {
        let mut c = Counter { total: 10 };
        assert_eq!(block_on(c.call("abc")), 23);
        block_on(tiny());
    }
}

// M06: async fn in traits, without a helper crate.
pub mod m06_async_in_trait {
    use super::support::{block_on, yield_now};
    use std::future::Future;

    #[allow(async_fn_in_trait)]
    pub trait Layer {
        const GAIN: f32;

        async fn forward(&self, x: f32) -> f32;

        #[profile_step(forward)]
        async fn forward_twice(&self, x: f32) -> f32 {
            let y = self.forward(x).await;
            self.forward(y).await * Self::GAIN
        }
    }

    pub trait SendLayer {
        fn run(&self) -> impl Future<Output = f32> + Send;
    }

    pub struct Scale(pub f32);

    impl Layer for Scale {
        const GAIN: f32 = 2.0;

        #[measured]
        async fn forward(&self, x: f32) -> f32 {
            yield_now().await;
            self.0 * x
        }
    }

    impl SendLayer for Scale {
        #[measured]
        async fn run(&self) -> f32 {
            yield_now().await;
            self.0
        }
    }

    fn is_send<T: Send>(t: T) -> T {
        t
    }
    fn run_generic<L: SendLayer>(layer: &L) -> f32 {
        block_on(is_send(layer.run()))
    }

    pub fn check() {
        assert_eq!(block_on(Scale(3.0).forward_twice(1.0)), 18.0);
        assert_eq!(run_generic(&Scale(4.0)), 4.0);
    }
}

// M07: a `mut` reference parameter is re-pointed at a local of an async fn.
pub mod m07_reassigned_reference {
    use super::support::{block_on, yield_now};

    #[measured]
    pub async fn pick(mut name: &str, mut limit: &usize) -> usize {
        let fallback = String::from("fallback");
        let cap = 4;
        if name.is_empty() {
            name = &fallback;
        }
        if *limit > cap {
            limit = &cap;
        }
        yield_now().await;
        name.len().min(*limit)
    }

    pub fn check() {
        assert_eq!(block_on(pick("", &100)), 4);
        assert_eq!(block_on(pick("abc", &3)), 3);
    }
}

// M08: the declared return type drives coercions inside the body.
pub mod m08_coercion {
    use super::support::{block_on, yield_now};
    use std::error::Error;
    use std::future::Future;
    use std::pin::Pin;

    pub type Callback = Box<dyn Fn(u32) -> u32 + Send + Sync>;
    pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

    #[measured]
    pub async fn make(k: u32) -> Result<Callback, std::io::Error> {
        yield_now().await;
        Ok(Box::new(move |x| x + k))
    }

    #[measured]
    pub async fn make_future(k: u32) -> Option<BoxFuture<u32>> {
        let inner = async move { k };
        Some(Box::pin(inner))
    }

    #[measured]
    pub fn make_sync(k: u32) -> Result<Callback, Box<dyn Error>> {
        if k == 0 {
            return Err("zero".into());
        }
        Ok(Box::new(move |x| x * k))
    }

    #[measured]
    pub async fn parse(s: &str) -> Result<u32, Box<dyn Error + Send + Sync>> {
        let n: u32 = s.trim().parse()?;
        if n > 9 {
            Err(format!("{n} is too large"))?;
        }
        Ok(n)
    }

    pub fn check() {
        assert_eq!(block_on(make(2)).unwrap()(3), 5);
        assert_eq!(block_on(block_on(make_future(4)).unwrap()), 4);
        assert!(make_sync(0).is_err());
        assert_eq!(make_sync(2).unwrap()(3), 6);
        assert_eq!(block_on(parse(" 7 ")).unwrap(), 7);
        assert!(block_on(parse("10")).is_err());
    }
}

// M09: `impl Trait` inside other types of the return type.
pub mod m09_nested_impl_trait {
    use super::support::block_on;
    use std::fmt::{Display, Write};

    #[measured]
    pub fn evens(limit: u32) -> Result<impl Iterator<Item = u32>, String> {
        if limit == 0 {
            return Err("empty".to_owned());
        }
        Ok((0..limit).filter(|x| x % 2 == 0))
    }

    #[measured]
    pub async fn below(limit: u32) -> Result<impl Iterator<Item = u32>, &'static str> {
        Ok((0..10).filter(move |x| *x < limit))
    }

    #[measured]
    pub fn sink() -> (impl Write + Into<String>, Option<impl Display>) {
        (String::new(), Some(1))
    }

    pub struct Words(pub String);

    impl Words {
        #[measured]
        pub fn long<'a>(&'a self, min: &'a usize) -> Box<impl Iterator<Item = &'a str> + 'a> {
            Box::new(self.0.split(' ').filter(move |w| w.len() >= *min))
        }
    }

    pub fn check() {
        assert_eq!(evens(5).unwrap().sum::<u32>(), 6);
        assert!(evens(0).is_err());
        assert_eq!(block_on(below(3)).unwrap().count(), 3);
        let (mut w, d) = sink();
        write!(w, "{}", d.unwrap()).unwrap();
        assert_eq!(w.into(), "1");
        assert_eq!(Words("a bcd ef".into()).long(&2).count(), 2);
    }
}

// M10: bodies that never come to their end, `-> !`, and no new warnings from them.
pub mod m10_diverging {
    #![deny(warnings)]
    use super::support::{block_on, poll_once, yield_now};
    use std::cell::Cell;

    #[measured]
    pub fn never(message: &str) -> ! {
        panic!("{}", message)
    }

    #[measured]
    pub fn unfinished(_x: u32) -> Result<u32, String> {
        todo!()
    }

    #[measured]
    pub fn counted(n: &mut u32) -> u32 {
        loop {
            *n += 1;
            if *n > 3 {
                return *n;
            }
        }
    }

    #[measured]
    pub async fn unfinished_async(_x: u32) -> Result<u32, String> {
        unimplemented!()
    }

    #[measured]
    pub async fn serve(turns: &Cell<u32>) -> u32 {
        loop {
            yield_now().await;
            turns.set(turns.get() + 1);
            if turns.get() == 2 {
                return 1;
            }
        }
    }

    #[measured]
    pub async fn forever() -> ! {
        loop {
            yield_now().await
        }
    }

    #[record_stats("never")]
    pub fn no_tensor() -> super::tensor::Tensor {
        unreachable!("only the type is of interest")
    }

    pub fn check() {
        assert_eq!(counted(&mut 0), 4);
        assert_eq!(block_on(serve(&Cell::new(0))), 1);
        assert!(poll_once(std::pin::pin!(forever())).is_pending());
        let _typed: fn(&str) -> ! = never;
        let _typed: fn() -> super::tensor::Tensor = no_tensor;
        let _not_run = (unfinished, unfinished_async);
    }
}

// M11: rustc lints about the user's own function still fire, and fire once.
pub mod m11_lints_alive {
    #![deny(unfulfilled_lint_expectations)]

    #[expect(dead_code)]
    #[measured]
    fn never_called() {}

    pub struct Model;

    impl Model {
        #[measured]
        #[expect(dead_code)]
        async fn never_called_method(&self) -> u32 {
            42
        }
    }

    #[expect(unused_variables)]
    #[measured]
    pub fn unused_argument(x: u32, y: u32) -> u32 {
        y
    }

    #[profile_step(forward)]
    #[expect(unused_mut)]
    #[allow(clippy::let_and_return)]
    pub fn unused_mut() -> u32 {
        let mut v = 1;
        v
    }

    #[must_use]
    #[measured]
    pub fn important() -> u32 {
        3
    }

    #[expect(unused_must_use)]
    pub fn forgets() {
        important();
    }

    #[measured]
    #[expect(unreachable_code)]
    pub fn dead_tail() -> u32 {
        return 1;
        2
    }

    pub fn check() {
        forgets();
        assert_eq!(unused_argument(0, 1) + unused_mut() + dead_tail(), 3);
        let _model = Model;
    }
}

// M12: inner attributes at the head of the body.
pub mod m12_inner_attributes {
    #![deny(unused_variables, dead_code)]
    use super::support::block_on;

    #[measured]
    pub fn sync_body() -> u32 {
        #![allow(unused_variables, dead_code)]
        //! Inner documentation is legal here as well.
        let unused = 42;
        struct Unused;
        1
    }

    #[measured]
    pub async fn async_body() -> u32 {
        #![allow(unused_variables)]
        let unused = 42;
        2
    }

    pub fn check() {
        assert_eq!(sync_body() + block_on(async_body()), 3);
    }
}

// M13: names in the signature mean something else inside the body.
pub mod m13_body_scope {
    use super::support::block_on;

    pub type Out = u32;

    pub enum Kind {
        Out,
        Other,
    }

    #[measured]
    pub fn glob(other: bool) -> Out {
        use Kind::*;
        let kind = if other { Other } else { Out };
        match kind {
            Out => 1,
            Other => 2,
        }
    }

    #[measured]
    pub async fn local_type() -> Out {
        struct Out;
        let _local = Out;
        3
    }

    #[measured]
    pub fn empty_tail() -> Unit {
        use Shadow::*;
        let _shadow = Unit;
    }

    pub type Unit = ();

    pub enum Shadow {
        Unit,
    }

    pub fn check() {
        assert_eq!(glob(false) + glob(true) + block_on(local_type()), 6);
        empty_tail();
    }
}

// M14: user names equal to names the expansion is likely to use.
pub mod m14_name_collisions {
    use super::support::{block_on, yield_now};

    /// The user's own module, named like the run-time crate.
    pub mod candle_profiler {
        pub struct Span;
        pub fn enter() -> u32 {
            100
        }
    }

    pub struct Guard;
    pub struct Session;

    #[measured]
    #[allow(clippy::duplicate_underscore_argument)]
    pub fn sync_names(guard: u32, _guard: u32, __guard: u32, span: u32, session: u32) -> u32 {
        let __span = 1;
        let result = guard + _guard + __guard + span + session + __span;
        result + candle_profiler::enter()
    }

    #[measured]
    pub async fn async_names(__fut: u32, future: u32, __result: u32, ret: u32, x: u32) -> u32 {
        let inner = __fut + future + __result + ret + x;
        yield_now().await;
        inner
    }

    /// A value named like the attribute.
    pub fn measured() -> u32 {
        7
    }

    #[profile_step(forward)]
    pub fn forward(forward: u32) -> u32 {
        forward + measured()
    }

    #[record_stats("result")]
    pub fn tensor(value: f32, stats: f32, label: f32) -> super::tensor::Tensor {
        let result = value + stats + label;
        super::tensor::mk(result)
    }

    pub fn check() {
        assert_eq!(sync_names(1, 2, 3, 4, 5), 116);
        assert_eq!(block_on(async_names(1, 2, 3, 4, 5)), 15);
        assert_eq!(forward(1), 8);
        assert_eq!(super::tensor::first(&tensor(1.0, 2.0, 3.0)), 6.0);
    }
}

// M15: the names of the prelude, of `std`/`core`, and of primitives are taken by the user.
pub mod m15_shadowed_std {
    pub enum Outcome {
        Ok,
        Err,
        Some,
        None,
    }
    pub use self::Outcome::*;

    pub struct Option;
    pub struct Result;
    pub struct String;
    pub struct Vec;
    pub struct Box;
    pub trait Drop {}
    pub trait Send {}
    pub trait Sync {}
    pub trait Into {}
    pub fn drop() {}

    pub mod std {
        pub mod time {}
        pub mod thread {}
    }
    pub mod core {
        pub mod future {}
    }
    pub mod alloc {}

    #[measured]
    pub fn choose(n: i32) -> Outcome {
        match n {
            0 => Ok,
            1 => Err,
            2 => Some,
            _ => None,
        }
    }

    #[measured]
    pub fn real_result(n: i32) -> ::std::result::Result<i32, ::std::string::String> {
        let n = real_option(n).ok_or_else(|| ::std::string::String::from("none"))?;
        ::std::result::Result::Ok(n)
    }

    #[profile_step(forward)]
    pub fn real_option(n: i32) -> ::std::option::Option<i32> {
        if n < 0 {
            return ::std::option::Option::None;
        }
        ::std::option::Option::Some(n)
    }

    #[measured]
    pub async fn later(n: i32) -> ::std::result::Result<i32, ::std::string::String> {
        super::support::yield_now().await;
        real_result(n)
    }

    #[record_stats("shadowed")]
    pub fn tensor(n: i32) -> super::tensor::Result<super::tensor::Tensor> {
        if n < 0 {
            return ::std::result::Result::Err(super::tensor::fail());
        }
        ::std::result::Result::Ok(super::tensor::mk(1.0))
    }

    #[allow(non_camel_case_types)]
    pub mod primitives {
        pub struct bool;
        pub struct str;
        pub struct u64;
        pub struct usize;

        #[measured]
        pub fn plus_one(x: i32) -> i32 {
            x + 1
        }
    }

    pub fn check() {
        assert!(matches!(choose(0), Outcome::Ok) && matches!(choose(3), Outcome::None));
        assert!(real_result(-1).is_err());
        assert!(super::support::block_on(later(5)).is_ok_and(|n| n == 5));
        assert!(tensor(-1).is_err() && tensor(1).is_ok());
        assert_eq!(primitives::plus_one(1), 2);
        drop();
    }
}

// M16: the function comes out of a macro_rules macro.
pub mod m16_macro_rules {
    use super::support::block_on;

    macro_rules! make_fn {
        ($(#[$m:meta])* $vis:vis fn $name:ident($arg:ident: $ty:ty) -> $ret:ty $body:block) => {
            $(#[$m])*
            #[measured]
            $vis fn $name($arg: $ty) -> $ret $body
        };
    }

    make_fn! {
        /// Doubles.
        #[inline]
        pub fn doubled(x: u32) -> u32 {
            if x > 100 {
                return 0;
            }
            x * 2
        }
    }

    pub trait Layer {
        fn forward(&self, x: f32) -> f32;
    }

    macro_rules! scale_layer {
        ($t:ident, $gain:expr) => {
            pub struct $t;
            impl Layer for $t {
                #[profile_step(forward)]
                fn forward(&self, x: f32) -> f32 {
                    x * $gain
                }
            }
        };
    }

    scale_layer!(Triple, 1.0 + 2.0);

    macro_rules! make_async {
        ($name:ident, $e:expr) => {
            #[measured]
            pub async fn $name() -> u32 {
                10 - $e
            }
        };
    }

    make_async!(seven, 1 + 2);

    macro_rules! with_statements {
        ($name:ident { $($body:tt)* }) => {
            #[measured]
            pub fn $name() -> u32 { $($body)* }
        };
    }

    with_statements!(nine {
        let a = 4;
        let b = 5;
        a + b
    });

    pub fn check() {
        assert_eq!(doubled(4) + doubled(101), 8);
        assert_eq!(
            Triple.forward(2.0),
            6.0,
            "the invisible group around `$gain` must survive"
        );
        assert_eq!(block_on(seven()), 7);
        assert_eq!(nine(), 9);
    }
}

// M17: a `&mut` argument is returned, in whole or in part.
pub mod m17_reborrow {
    use std::collections::HashMap;

    #[measured]
    pub fn same(x: &mut u32) -> &mut u32 {
        x
    }

    #[measured]
    pub fn shared(v: &mut [u32]) -> &[u32] {
        v[0] += 1;
        v
    }

    #[measured]
    pub fn slot<'m>(m: &'m mut HashMap<String, u32>, key: &str) -> &'m mut u32 {
        m.entry(key.to_owned()).or_insert(0)
    }

    #[measured]
    #[allow(clippy::manual_find)]
    pub fn find(v: &mut [u32], want: u32) -> Option<&mut u32> {
        for x in v.iter_mut() {
            if *x == want {
                return Some(x);
            }
        }
        None
    }

    pub struct Arena(pub Vec<u32>);

    impl Arena {
        #[measured]
        pub fn get(&mut self, i: usize) -> Result<&mut u32, String> {
            let len = self.0.len();
            let x = self.0.get_mut(i).ok_or_else(|| format!("{i} of {len}"))?;
            *x += 1;
            Ok(x)
        }
    }

    pub fn check() {
        let mut v = [1, 2, 3];
        *same(&mut v[0]) = 5;
        assert_eq!(shared(&mut v), [6, 2, 3]);
        *find(&mut v, 2).unwrap() = 9;
        let mut m = HashMap::new();
        *slot(&mut m, "a") += 2;
        assert_eq!((v[1], m["a"]), (9, 2));
        let mut arena = Arena(vec![1]);
        assert_eq!(*arena.get(0).unwrap(), 2);
        assert!(arena.get(1).is_err());
    }
}

// M18: every kind of parameter pattern.
pub mod m18_parameters {
    #![deny(unused_mut, unused_variables)]
    use super::support::{block_on, yield_now};

    pub struct Shape {
        pub rows: usize,
        pub cols: usize,
    }
    pub struct Pair(pub u32, pub u32);

    #[measured]
    pub fn mutated(mut x: u32, mut v: Vec<u32>) -> u32 {
        x += 1;
        v.push(x);
        v.iter().sum()
    }

    #[measured]
    pub fn destructured(
        Shape { rows, cols: mut c }: Shape,
        Pair(a, _): Pair,
        (b, [first, .., last]): (u32, [u32; 4]),
        &(ref name, n): &(String, usize),
    ) -> usize {
        c += 1;
        rows * c + (a + b + first + last) as usize + name.len() + n
    }

    #[measured]
    pub fn ignored(_: u32, _: &str, _named: u32, (): ()) -> u32 {
        1
    }

    #[measured]
    pub fn bound(whole @ (a, _): (u32, u32)) -> u32 {
        whole.0 + whole.1 + a
    }

    #[measured]
    pub async fn in_async(mut x: u32, Pair(a, mut b): Pair, _: String, &n: &u32) -> u32 {
        x += 1;
        b += a;
        yield_now().await;
        x + b + n
    }

    pub fn check() {
        assert_eq!(mutated(1, vec![1]), 3);
        let named = ("ab".to_owned(), 1);
        let got = destructured(
            Shape { rows: 2, cols: 2 },
            Pair(1, 9),
            (1, [1, 0, 0, 1]),
            &named,
        );
        assert_eq!(got, 13);
        assert_eq!(ignored(0, "", 0, ()) + bound((1, 2)), 5);
        assert_eq!(block_on(in_async(1, Pair(1, 1), String::new(), &3)), 7);
    }
}

// M19: every kind of receiver.
pub mod m19_receivers {
    use super::support::{block_on, yield_now};
    use std::pin::Pin;
    use std::rc::Rc;
    use std::sync::Arc;

    pub struct Model {
        pub w: u32,
    }

    impl Model {
        #[measured]
        pub fn by_ref(&self) -> u32 {
            self.w
        }
        #[measured]
        pub fn by_mut(&mut self) -> &mut Self {
            self.w += 1;
            self
        }
        #[measured]
        pub fn by_value(mut self) -> Self {
            self.w *= 2;
            self
        }
        #[measured]
        #[allow(clippy::boxed_local)]
        pub fn boxed(self: Box<Self>) -> u32 {
            self.w
        }
        #[measured]
        pub fn arc(self: Arc<Self>) -> u32 {
            self.w
        }
        #[measured]
        pub fn rc_ref(self: &Rc<Self>) -> Rc<Self> {
            Rc::clone(self)
        }
        #[measured]
        pub fn pinned(mut self: Pin<&mut Self>) -> u32 {
            self.w += 1;
            self.w
        }
        #[measured]
        pub fn mut_box(mut self: Box<Self>) -> Box<Self> {
            self.w += 3;
            self
        }
        #[profile_step(forward)]
        pub async fn forward(&mut self, x: u32) -> u32 {
            yield_now().await;
            self.w += x;
            self.w
        }
        #[measured]
        pub async fn arc_async(self: Arc<Self>) -> u32 {
            yield_now().await;
            self.w
        }
        #[measured]
        pub fn constructor() -> Self {
            Self { w: 1 }
        }
    }

    pub fn check() {
        let mut m = Model::constructor();
        assert_eq!(m.by_mut().by_ref(), 2);
        assert_eq!(block_on(m.forward(1)), 3);
        let m = m.by_value();
        assert_eq!(Box::new(m).mut_box().boxed(), 9);
        let a = Arc::new(Model { w: 4 });
        assert_eq!(a.clone().arc() + block_on(a.arc_async()), 8);
        assert_eq!(Rc::new(Model { w: 5 }).rc_ref().w, 5);
        assert_eq!(std::pin::pin!(Model { w: 6 }).as_mut().pinned(), 7);
    }
}

// M20: qualifiers keep their order and their meaning.
pub mod m20_qualifiers {
    use super::support::block_on;

    /// # Safety
    /// `p` is valid for reads.
    #[measured]
    pub unsafe fn read(p: *const u32) -> u32 {
        unsafe { *p }
    }

    /// # Safety
    /// `p` is valid for reads until the future ends.
    #[measured]
    pub async unsafe fn read_later(p: *const u32) -> u32 {
        unsafe { read(p) }
    }

    #[measured]
    pub extern "C" fn add(a: i32, b: i32) -> i32 {
        a + b
    }

    #[measured]
    pub(crate) unsafe extern "C" fn add_through(a: *const i32, b: i32) -> i32 {
        unsafe { add(*a, b) }
    }

    #[measured]
    pub(super) extern "system" fn sub(a: i32, b: i32) -> i32 {
        a - b
    }

    pub fn check() {
        let x = 5;
        assert_eq!(
            unsafe { read(&x) } + block_on(unsafe { read_later(&x) }),
            10
        );
        let f: extern "C" fn(i32, i32) -> i32 = add;
        let g: unsafe extern "C" fn(*const i32, i32) -> i32 = add_through;
        let h: extern "system" fn(i32, i32) -> i32 = sub;
        assert_eq!(f(1, 2) + unsafe { g(&3, 4) } + h(9, 1), 18);
    }
}

// M21: what the attribute cannot do is refused in one clear error.
pub mod m21_refused {
    pub const fn square(x: u32) -> u32 {
        x * x
    }
    pub const NINE: u32 = square(3);

    pub trait Step {
        fn run(&self) -> u32;
    }
    pub struct NotAFunction;
    pub fn unknown_phase() {}
    pub fn no_label() -> super::tensor::Tensor {
        super::tensor::mk(0.0)
    }
    pub fn not_a_tensor() {}

    pub fn check() {
        assert_eq!(NINE, 9);
        unknown_phase();
        not_a_tensor();
        let _unused = (NotAFunction, no_label());
    }
}

// M22: generics of every kind survive.
pub mod m22_generics {
    use std::borrow::Borrow;
    use std::collections::HashMap;
    use std::fmt::Debug;
    use std::hash::Hash;

    #[measured]
    pub fn longest<'a, 'b: 'a, T>(x: &'a [T], y: &'b [T]) -> &'a [T]
    where
        T: PartialOrd,
    {
        if x.len() < y.len() { y } else { x }
    }

    #[measured]
    pub fn sum<const N: usize, T>(xs: [T; N]) -> T
    where
        T: Copy + std::ops::Add<Output = T> + Default,
    {
        let mut acc = T::default();
        let mut i = 0;
        while i < N {
            acc = acc + xs[i];
            i += 1;
        }
        acc
    }

    #[measured]
    pub fn lookup<'m, K, V, Q>(map: &'m HashMap<K, V>, key: &Q) -> Option<&'m V>
    where
        K: Borrow<Q> + Eq + Hash,
        Q: Eq + Hash + ?Sized,
    {
        map.get(key)
    }

    #[measured]
    pub fn higher_ranked<F>(f: F) -> usize
    where
        for<'x> F: Fn(&'x str) -> &'x str,
    {
        f("abc").len()
    }

    pub struct Buffer<T, const N: usize = 4> {
        pub data: [T; N],
    }

    impl<T: Debug, const N: usize> Buffer<T, N> {
        #[measured]
        pub fn show<S: ?Sized + AsRef<str>>(&self, sep: &S) -> String
        where
            T: Clone,
        {
            let parts: Vec<_> = self.data.iter().map(|d| format!("{d:?}")).collect();
            parts.join(sep.as_ref())
        }
        #[measured]
        pub fn try_map<U, E>(self, f: impl Fn(T) -> Result<U, E>) -> Result<Vec<U>, E> {
            let mut out = Vec::with_capacity(N);
            for d in self.data {
                out.push(f(d)?);
            }
            Ok(out)
        }
    }

    pub fn check() {
        assert_eq!(longest(&[1], &[1, 2]), [1, 2]);
        assert_eq!(sum([1, 2, 3]), 6);
        assert_eq!(lookup(&HashMap::from([("a".to_owned(), 1)]), "a"), Some(&1));
        assert_eq!(higher_ranked(|s| &s[1..]), 2);
        let b: Buffer<u8> = Buffer { data: [1, 2, 3, 4] };
        assert_eq!(b.show("-"), "1-2-3-4");
        assert_eq!(
            b.try_map(|x| if x < 9 { Ok(x) } else { Err(()) }),
            Ok(vec![1, 2, 3, 4])
        );
    }
}

// M23: `impl Trait` arguments; in an async fn they may even hold an unnamed lifetime.
pub mod m23_impl_arguments {
    use super::support::{block_on, yield_now};

    #[measured]
    pub async fn total(items: impl Iterator<Item = &u32>, scale: &u32) -> u32 {
        let mut sum = 0;
        for i in items {
            sum += i * scale;
            yield_now().await;
        }
        sum
    }

    #[measured]
    pub fn apply(f: impl FnOnce(u32) -> u32, x: u32) -> u32 {
        f(x)
    }

    #[measured]
    pub fn each(mut f: impl FnMut(&str), words: &[&str]) {
        for w in words {
            f(w);
        }
    }

    #[measured]
    pub fn dynamic(f: &mut dyn FnMut(u32)) {
        f(1);
    }

    pub fn check() {
        assert_eq!(block_on(total([1, 2].iter(), &10)), 30);
        let moved = String::from("x");
        assert_eq!(apply(move |x| x + moved.len() as u32, 1), 2);
        let mut n = 0;
        each(|w| n += w.len(), &["a", "bc"]);
        dynamic(&mut |k| n += k as usize);
        assert_eq!(n, 4);
    }
}

// M24: arguments are dropped when and in the order in which they were dropped before.
pub mod m24_drop_order {
    use super::support::{Log, Noisy, block_on, poll_once, yield_now};

    pub fn plain(_used: Noisy, _: Noisy, _unused: Noisy, log: &Log) {
        let _local = Noisy("local", log.clone());
        log.push(_used.name());
    }

    #[measured]
    pub fn marked(_used: Noisy, _: Noisy, _unused: Noisy, log: &Log) {
        let _local = Noisy("local", log.clone());
        log.push(_used.name());
    }

    pub async fn plain_async(_used: Noisy, _: Noisy, _unused: Noisy, log: &Log) {
        let _local = Noisy("local", log.clone());
        yield_now().await;
        log.push(_used.name());
    }

    #[measured]
    pub async fn marked_async(_used: Noisy, _: Noisy, _unused: Noisy, log: &Log) {
        let _local = Noisy("local", log.clone());
        yield_now().await;
        log.push(_used.name());
    }

    fn three(log: &Log) -> (Noisy, Noisy, Noisy) {
        (
            Noisy("a", log.clone()),
            Noisy("b", log.clone()),
            Noisy("c", log.clone()),
        )
    }

    pub fn check() {
        let log = Log::new();
        let (a, b, c) = three(&log);
        plain(a, b, c, &log);
        let want = log.take();
        let (a, b, c) = three(&log);
        marked(a, b, c, &log);
        assert_eq!(log.take(), want, "sync");

        // The async fn is polled 0, 1 or 2 times and then dropped.
        for polls in 0..3 {
            let mut logs = Vec::new();
            for with_attribute in [false, true] {
                let (a, b, c) = three(&log);
                if with_attribute {
                    let mut fut = Box::pin(marked_async(a, b, c, &log));
                    for _ in 0..polls {
                        let _ = poll_once(fut.as_mut());
                    }
                    log.push("drop");
                    drop(fut);
                } else {
                    let mut fut = Box::pin(plain_async(a, b, c, &log));
                    for _ in 0..polls {
                        let _ = poll_once(fut.as_mut());
                    }
                    log.push("drop");
                    drop(fut);
                }
                logs.push(log.take());
            }
            assert_eq!(logs[1], logs[0], "async, {polls} polls");
        }
        let (a, b, c) = three(&log);
        block_on(marked_async(a, b, c, &log));
        assert_eq!(log.take().len(), 5);
    }
}

// M25: `?`, `return`, labelled `break`, `let ... else`.
pub mod m25_control_flow {
    use super::support::{block_on, yield_now};
    use std::ops::ControlFlow;

    #[measured]
    pub fn parse_pair(s: &str) -> Result<(u32, u32), Box<dyn std::error::Error>> {
        let Some((a, b)) = s.split_once(',') else {
            return Err("no comma".into());
        };
        Ok((a.parse()?, b.parse()?))
    }

    #[measured]
    pub fn option(v: &[u32]) -> Option<u32> {
        let first = v.first()?;
        let last = v.last()?;
        if first == last {
            return None;
        }
        Some(first + last)
    }

    #[measured]
    pub fn labelled(grid: &[[u32; 2]; 2]) -> u32 {
        let found = 'search: {
            for row in grid {
                for &cell in row {
                    if cell > 2 {
                        break 'search cell;
                    }
                }
            }
            break 'search 0;
        };
        'outer: for row in grid {
            for &cell in row {
                if cell == 9 {
                    continue 'outer;
                }
                if cell == found {
                    break 'outer;
                }
            }
        }
        found
    }

    #[measured]
    pub fn flow(v: &[u32]) -> ControlFlow<u32> {
        for &x in v {
            if x > 3 {
                return ControlFlow::Break(x);
            }
        }
        ControlFlow::Continue(())
    }

    #[measured]
    pub async fn async_flow(v: &[&str]) -> Result<u32, std::num::ParseIntError> {
        let mut sum = 0;
        for s in v {
            if s.is_empty() {
                return Ok(sum);
            }
            yield_now().await;
            sum += s.parse::<u32>()?;
        }
        Ok(sum)
    }

    #[measured]
    pub fn unit_exits(n: &mut u32) {
        if *n > 0 {
            return;
        }
        *n += 1;
    }

    pub fn check() {
        assert_eq!(parse_pair("1,2").unwrap(), (1, 2));
        assert!(parse_pair("1;2").is_err() && parse_pair("1,x").is_err());
        assert_eq!(option(&[1, 2, 3]), Some(4));
        assert!(option(&[]).is_none());
        assert_eq!(labelled(&[[1, 2], [3, 4]]), 3);
        assert_eq!(flow(&[1, 5]), ControlFlow::Break(5));
        assert_eq!(block_on(async_flow(&["1", "2", "", "x"])), Ok(3));
        assert!(block_on(async_flow(&["x"])).is_err());
        let mut n = 0;
        unit_exits(&mut n);
        unit_exits(&mut n);
        assert_eq!(n, 1);
    }
}

// M26: inference inside the body is not changed by wrapping it.
pub mod m26_inference {
    use super::support::block_on;
    use std::collections::BTreeMap;
    use std::rc::Rc;

    #[measured]
    pub fn collected() -> Vec<usize> {
        (0..4).collect()
    }

    #[measured]
    pub fn parsed(s: &str) -> Option<i64> {
        s.parse().ok()
    }

    #[measured]
    pub fn defaulted<T: Default>() -> T {
        Default::default()
    }

    #[measured]
    pub fn through_into(s: &str) -> Rc<str> {
        s.into()
    }

    #[measured]
    pub fn inner_error(bad: bool) -> Result<BTreeMap<u8, u8>, String> {
        if bad {
            return Err("bad".into());
        }
        vec![(1, 2)].into_iter().map(Ok).collect()
    }

    #[measured]
    pub fn trait_object(b: bool) -> Box<dyn Fn(u8) -> u8> {
        if b {
            Box::new(|x| x + 1)
        } else {
            Box::new(|x| x)
        }
    }

    #[measured]
    pub fn function_pointer() -> fn(u8) -> u8 {
        |x| x.wrapping_add(255)
    }

    #[measured]
    pub fn unsized_slice() -> &'static [u8] {
        &[1, 2, 3]
    }

    #[measured]
    #[allow(clippy::let_and_return)]
    pub async fn collected_later() -> Result<Vec<u64>, String> {
        let r = (0..3).map(Ok).collect();
        r
    }

    pub fn check() {
        assert_eq!(
            collected().len() + block_on(collected_later()).unwrap().len(),
            7
        );
        assert_eq!(parsed("-3"), Some(-3));
        assert_eq!(defaulted::<u8>(), 0);
        assert_eq!(&*through_into("a"), "a");
        assert!(inner_error(true).is_err() && inner_error(false).is_ok());
        assert_eq!(trait_object(true)(1) + trait_object(false)(1), 3);
        assert_eq!(function_pointer()(2), 1);
        assert_eq!(unsized_slice().len(), 3);
    }
}

// M27: a panic passes through annotated frames.
pub mod m27_panics {
    use super::support::{poll_once, yield_now};
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

    #[measured]
    pub fn inner(n: u32) -> u32 {
        if n == 0 {
            // Not `panic!`: the panic hook would print.
            resume_unwind(Box::new("inner"));
        }
        n
    }

    #[measured]
    pub fn outer(n: u32) -> u32 {
        inner(n) + 1
    }

    #[measured]
    pub fn recovers(n: u32) -> u32 {
        catch_unwind(|| outer(n)).unwrap_or(100)
    }

    pub struct CallsOnDrop;

    impl Drop for CallsOnDrop {
        fn drop(&mut self) {
            // An annotated call while the thread is panicking.
            let _ = inner(1);
        }
    }

    #[measured]
    pub fn unwinds_with_destructor() {
        let _calls = CallsOnDrop;
        inner(0);
    }

    #[measured]
    pub async fn panics_on_second_poll() -> u32 {
        yield_now().await;
        inner(0)
    }

    pub fn check() {
        assert_eq!(recovers(1) + recovers(0), 102);
        let payload = catch_unwind(unwinds_with_destructor).unwrap_err();
        assert_eq!(payload.downcast_ref::<&str>(), Some(&"inner"));
        let mut fut = Box::pin(panics_on_second_poll());
        assert!(poll_once(fut.as_mut()).is_pending());
        assert!(catch_unwind(AssertUnwindSafe(|| poll_once(fut.as_mut()))).is_err());
        drop(fut);
        // With a session: the depth is as before, and this span is a root of its own.
        assert_eq!(outer(1), 2);
    }
}

// M28: annotated code runs while the thread's thread-locals are being destroyed.
pub mod m28_thread_exit {
    use std::cell::RefCell;
    use std::sync::atomic::{AtomicU32, Ordering};

    pub static SEEN: AtomicU32 = AtomicU32::new(0);

    #[measured]
    pub fn flush() {
        SEEN.fetch_add(1, Ordering::SeqCst);
    }

    pub struct FlushOnExit;

    impl Drop for FlushOnExit {
        fn drop(&mut self) {
            flush();
        }
    }

    thread_local! {
        pub static EARLY: RefCell<Option<FlushOnExit>> = const { RefCell::new(None) };
        pub static LATE: RefCell<Option<FlushOnExit>> = const { RefCell::new(None) };
    }

    pub fn check() {
        SEEN.store(0, Ordering::SeqCst);
        let ended = std::thread::spawn(|| {
            // One thread-local is set up before the profiler's own, one after it: destructors run
            // in an order that is not ours to choose.
            EARLY.with(|e| *e.borrow_mut() = Some(FlushOnExit));
            flush();
            LATE.with(|l| *l.borrow_mut() = Some(FlushOnExit));
        })
        .join();
        assert!(ended.is_ok());
        assert_eq!(SEEN.load(Ordering::SeqCst), 3);
    }
}

// M29: the other attributes of the function keep working.
pub mod m29_attributes_kept {
    use std::panic::Location;

    #[track_caller]
    #[measured]
    pub fn above() -> u32 {
        Location::caller().line()
    }

    #[measured]
    #[track_caller]
    pub fn below() -> u32 {
        above()
    }

    /// Documented.
    ///
    /// # Errors
    /// Never.
    #[measured]
    #[inline(always)]
    #[must_use = "it is the loss"]
    #[cold]
    pub fn loss() -> Result<u32, String> {
        Ok(1)
    }

    #[cfg(any())]
    #[measured]
    pub fn not_there() -> MissingType {
        compile_error!("cfg was ignored")
    }

    #[measured]
    #[cfg_attr(not(any()), allow(unused_variables))]
    pub fn through_cfg_attr(x: u32) -> u32 {
        #[cfg(any())]
        let unreachable_type: MissingType = ();
        #[cfg(not(any()))]
        let y = 2;
        y
    }

    #[cfg(target_arch = "x86_64")]
    #[measured]
    #[allow(clippy::missing_safety_doc)]
    #[target_feature(enable = "sse2")]
    pub fn with_feature(a: [i32; 4]) -> i32 {
        use std::arch::x86_64::{_mm_cvtsi128_si32, _mm_set_epi32};
        // Safe calls: this function has the feature that they need.
        _mm_cvtsi128_si32(_mm_set_epi32(a[3], a[2], a[1], a[0]))
    }

    #[deprecated(note = "old")]
    #[measured]
    pub fn old() -> u32 {
        3
    }

    pub fn check() {
        let here = line!();
        assert_eq!(above(), here + 1);
        assert_eq!(below(), here + 2);
        assert_eq!(loss(), Ok(1));
        assert_eq!(through_cfg_attr(0), 2);
        #[cfg(target_arch = "x86_64")]
        #[allow(unused_unsafe)]
        let seven = unsafe { with_feature([7, 0, 0, 0]) };
        #[cfg(not(target_arch = "x86_64"))]
        let seven = 7;
        assert_eq!(seven, 7);
        #[allow(deprecated)]
        let three = old();
        assert_eq!(three, 3);
    }
}

// M30: a strict crate: nothing in the expansion may trip its lints (run clippy on this one too).
pub mod m30_strict_lints {
    //! Documented.
    #![forbid(unsafe_code)]
    #![deny(warnings, missing_docs, unused, nonstandard_style)]
    #![deny(unused_qualifications, unused_results, let_underscore_drop)]
    #![deny(
        single_use_lifetimes,
        trivial_casts,
        elided_lifetimes_in_paths,
        unused_lifetimes
    )]
    #![deny(clippy::all, clippy::pedantic)]
    #![deny(
        clippy::used_underscore_binding,
        clippy::shadow_unrelated,
        clippy::shadow_same
    )]
    #![deny(clippy::let_underscore_untyped, clippy::let_underscore_must_use)]
    #![deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing
    )]
    #![deny(
        clippy::absolute_paths,
        clippy::std_instead_of_core,
        clippy::str_to_string
    )]
    #![deny(
        clippy::question_mark_used,
        clippy::unreachable,
        clippy::allow_attributes
    )]
    #![deny(clippy::arithmetic_side_effects, clippy::default_numeric_fallback)]
    #![deny(clippy::print_stdout, clippy::print_stderr, clippy::disallowed_names)]
    use super::support::yield_now;
    use super::tensor::{Tensor, mk};

    /// A unit function.
    #[measured]
    pub fn unit() {}

    /// A unit function that says so.
    #[measured]
    pub fn explicit_unit(n: &mut u32) {
        *n = 1;
    }

    /// Takes an argument that it does not use.
    #[measured]
    #[must_use]
    pub fn unused_argument(_step: u32) -> u32 {
        1
    }

    /// Takes an argument that it does not use, and waits.
    #[measured]
    pub async fn unused_argument_async(_step: u32) -> u32 {
        yield_now().await;
        1
    }

    /// An `if` right at the head of the body.
    #[measured]
    pub async fn else_formatting(flag: bool) -> &'static str {
        yield_now().await;
        if flag { "true" } else { "false" }
    }

    /// An async unit function.
    #[measured]
    pub async fn async_unit(n: &mut u32) {
        yield_now().await;
        *n = 2;
    }

    /// Borrowing iterator.
    #[measured]
    pub fn items(v: &[u32]) -> impl Iterator<Item = u32> + '_ {
        v.iter().copied()
    }

    /// Fails.
    ///
    /// # Errors
    ///
    /// Always.
    #[profile_step(forward)]
    pub fn fails() -> Result<u32, String> {
        Err(String::new())
    }

    /// A tensor.
    #[record_stats("strict")]
    #[must_use]
    pub fn tensor() -> Tensor {
        mk(1.0)
    }

    /// Runs all of them.
    ///
    /// # Panics
    ///
    /// If one of them is wrong.
    pub fn check() {
        let mut n = 0;
        unit();
        explicit_unit(&mut n);
        super::support::block_on(async_unit(&mut n));
        assert_eq!(n, 2);
        assert_eq!(unused_argument(0), 1);
        assert_eq!(super::support::block_on(unused_argument_async(0)), 1);
        assert_eq!(super::support::block_on(else_formatting(true)), "true");
        assert_eq!(items(&[1, 2]).count(), 2);
        assert!(fails().is_err());
        let _one: Tensor = tensor();
    }
}

// M31: record_stats looks at the value, not at the spelling of the return type.
pub mod m31_stats_return_types {
    use super::tensor::{self, Tensor, fail, first, mk};

    pub type Fallible = tensor::Result<Tensor>;
    pub type Maybe<T> = Option<T>;

    /// Ends in `Result` but is not one.
    pub struct StepResult {
        pub loss: f32,
    }

    #[record_stats("plain")]
    pub fn plain(v: f32) -> Tensor {
        mk(v)
    }

    #[record_stats("alias")]
    pub fn alias(v: f32) -> Fallible {
        if v < 0.0 {
            return Err(fail());
        }
        Ok(mk(v))
    }

    #[record_stats("candle result")]
    pub fn one_parameter(v: f32) -> tensor::Result<Tensor> {
        let t = alias(v)?;
        Ok(t)
    }

    #[record_stats("option")]
    pub fn maybe(v: f32) -> Maybe<Tensor> {
        (v > 0.0).then(|| mk(v))
    }

    #[record_stats("pair")]
    pub fn pair(v: f32) -> (Tensor, Tensor) {
        (mk(v), mk(v + 1.0))
    }

    #[record_stats("list")]
    pub fn list(n: usize) -> Vec<Tensor> {
        (0..n).map(|i| mk(i as f32)).collect()
    }

    #[record_stats("nested")]
    pub fn nested(v: f32) -> Result<(Tensor, Option<Tensor>), Box<dyn std::error::Error>> {
        if v < 0.0 {
            Err("negative")?;
        }
        Ok((mk(v), None))
    }

    #[measured]
    pub fn not_a_result() -> StepResult {
        StepResult { loss: 0.5 }
    }

    pub fn check() {
        assert_eq!(first(&plain(1.0)), 1.0);
        assert!(alias(-1.0).is_err() && one_parameter(-1.0).is_err());
        assert_eq!(first(&one_parameter(2.0).unwrap()), 2.0);
        assert!(maybe(-1.0).is_none());
        assert_eq!(first(&maybe(3.0).unwrap()), 3.0);
        assert_eq!(first(&pair(4.0).1), 5.0);
        assert_eq!(list(3).len(), 3);
        assert!(nested(-1.0).is_err() && nested(1.0).unwrap().1.is_none());
        assert_eq!(not_a_result().loss, 0.5);
        // With a session: nothing is recorded for an `Err`, a `None` or an empty list.
    }
}

// M32: two of our attributes on one function, in either order.
pub mod m32_stacked {
    use super::support::{block_on, yield_now};
    use super::tensor::{Tensor, first, mk};

    #[measured]
    #[record_stats("inner")]
    pub fn stats_below(v: f32) -> Tensor {
        mk(v)
    }

    #[record_stats("outer")]
    #[measured]
    pub fn stats_above(v: f32) -> Tensor {
        if v > 1.0 {
            return mk(1.0);
        }
        mk(v)
    }

    #[profile_step(forward)]
    #[record_stats("async")]
    pub async fn in_async(v: f32) -> Tensor {
        yield_now().await;
        mk(v)
    }

    #[record_stats("async, other order")]
    #[profile_step(forward)]
    #[inline]
    pub async fn in_async_reversed(v: f32) -> Tensor {
        yield_now().await;
        mk(v)
    }

    #[record_stats("first label")]
    #[record_stats("second label")]
    pub fn two_labels(v: f32) -> Tensor {
        mk(v)
    }

    pub fn check() {
        assert_eq!(first(&stats_below(1.0)) + first(&stats_above(2.0)), 2.0);
        assert_eq!(first(&block_on(in_async(1.0))), 1.0);
        assert_eq!(first(&block_on(in_async_reversed(1.0))), 1.0);
        assert_eq!(first(&two_labels(3.0)), 3.0);
        // With a session: one span and one set of statistics per call and label in each case.
    }
}

// M33: the returned value is lazy; the span ends when the function returns.
pub mod m33_lazy_returns {
    #[measured]
    pub fn squares(v: &[u32]) -> impl Iterator<Item = u32> + '_ {
        v.iter().map(|x| leaf(*x))
    }

    #[measured]
    pub fn leaf(x: u32) -> u32 {
        x * x
    }

    #[measured]
    pub fn adder(k: u32) -> impl Fn(u32) -> u32 {
        move |x| leaf(x) + k
    }

    #[measured]
    pub fn counter(mut n: u32) -> Box<dyn FnMut() -> u32 + Send> {
        Box::new(move || {
            n += 1;
            n
        })
    }

    #[measured]
    pub fn generated(limit: u32) -> impl Iterator<Item = u32> + Send + 'static {
        let mut n = 0;
        std::iter::from_fn(move || {
            n += 1;
            (n <= limit).then_some(n)
        })
    }

    #[measured]
    pub fn compose<A, B, C>(f: impl Fn(A) -> B, g: impl Fn(B) -> C) -> impl Fn(A) -> C {
        move |x| g(f(x))
    }

    pub fn check() {
        assert_eq!(squares(&[1, 2, 3]).sum::<u32>(), 14);
        assert_eq!(adder(1)(2), 5);
        let mut c = counter(1);
        assert_eq!(c() + c(), 5);
        let it = generated(3);
        assert_eq!(
            std::thread::spawn(move || it.sum::<u32>()).join().unwrap(),
            6
        );
        assert_eq!(compose(|x: u32| x + 1, |y| y * 2)(1), 4);
        // With a session: `leaf` called from the iterator is not a child of `squares`.
    }
}

// M34: threads that have no session.
pub mod m34_other_threads {
    #[measured]
    pub fn work(x: u32) -> u32 {
        x + 1
    }

    #[profile_step(forward)]
    pub fn fan_out(xs: &[u32]) -> u32 {
        std::thread::scope(|s| {
            let handles: Vec<_> = xs.iter().map(|&x| s.spawn(move || work(x))).collect();
            handles.into_iter().map(|h| h.join().unwrap()).sum()
        })
    }

    pub fn check() {
        assert_eq!(fan_out(&[1, 2, 3]), 9);
        let f: fn(u32) -> u32 = work;
        assert_eq!(std::thread::spawn(move || f(1)).join().unwrap(), 2);
        assert_eq!([1, 2].map(work), [2, 3]);
    }
}

pub fn check_all() {
    m01_async_send::check();
    m02_interleaved::check();
    m03_cancelled::check();
    m04_returns_future::check();
    m05_boxed_future::check();
    m06_async_in_trait::check();
    m07_reassigned_reference::check();
    m08_coercion::check();
    m09_nested_impl_trait::check();
    m10_diverging::check();
    m11_lints_alive::check();
    m12_inner_attributes::check();
    m13_body_scope::check();
    m14_name_collisions::check();
    m15_shadowed_std::check();
    m16_macro_rules::check();
    m17_reborrow::check();
    m18_parameters::check();
    m19_receivers::check();
    m20_qualifiers::check();
    m21_refused::check();
    m22_generics::check();
    m23_impl_arguments::check();
    m24_drop_order::check();
    m25_control_flow::check();
    m26_inference::check();
    m27_panics::check();
    m28_thread_exit::check();
    m29_attributes_kept::check();
    m30_strict_lints::check();
    m31_stats_return_types::check();
    m32_stacked::check();
    m33_lazy_returns::check();
    m34_other_threads::check();
}
