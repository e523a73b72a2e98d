//! What is a future to the attributes and what is a call; what stays as it was.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use candle_core::{Device, Tensor};
use candle_profiler::{measured, profile_span, profile_step, record_scalar, record_stats, span};
use tests::capturing::{capture, captures, region};

use crate::{poll_once, turn, wait};

struct Client {
    id: u32,
}

#[async_trait]
trait Service: Send + Sync {
    async fn ask(&self, what: &str) -> Result<usize, String>;
    #[profile_span(name = "default")]
    async fn twice(&self, what: &str) -> Result<usize, String> {
        Ok(self.ask(what).await? + self.ask(what).await?)
    }
}

#[async_trait]
impl Service for Client {
    #[profile_step(forward, name = "ask {self.id} {what}")]
    async fn ask(&self, what: &str) -> Result<usize, String> {
        span("prepared").end();
        turn().await;
        if what.is_empty() {
            return Err("nothing asked".to_owned());
        }
        span("answered").end();
        Ok(what.len())
    }
}

const ASKED: &str = "ask 7 abc forward\n    prepared\n    answered\n";

#[test]
fn methods_that_async_trait_has_rewritten_are_futures() {
    let client: Box<dyn Service> = Box::new(Client { id: 7 });
    let ((), trace) = region(|| {
        let mut a = client.ask("abc");
        assert!(poll_once(a.as_mut()).is_pending());
        span("between").end();
        assert_eq!(wait(a), Ok(3));
        drop(client.ask("never polled"));
    });
    assert_eq!(trace.tree(), format!("region*\n  {ASKED}  between\n"));
    assert_eq!(trace.span("ask 7 abc").end["polls"], 2);
    let (value, trace) = region(|| wait(client.twice("abc")));
    assert_eq!(value, Ok(6));
    let inner = ASKED.replace("\n    ", "\n      ");
    assert_eq!(
        trace.tree(),
        format!("region*\n  default\n    {inner}    {inner}")
    );
}

struct Above;

#[async_trait]
trait Named {
    async fn name(&self) -> String;
}

mod rewritten {
    //! The attribute sees what async-trait leaves: a boxed future behind an ordinary signature.
    use super::{Above, Future, Named, Pin, measured, span, turn};

    impl Named for Above {
        #[measured(name = "boxed")]
        fn name<'a, 'b>(&'a self) -> Pin<Box<dyn Future<Output = String> + Send + 'b>>
        where
            'a: 'b,
            Self: 'b,
        {
            Box::pin(async move {
                let _this = self;
                turn().await;
                span("inside").end();
                "above".to_owned()
            })
        }
    }
}

#[test]
fn the_boxed_form_written_out_is_a_future_too() {
    let (name, trace) = capture(|| wait(Above.name()));
    assert_eq!(name, "above");
    assert_eq!(trace.tree(), "boxed*\n  inside\n");
    assert_eq!(trace.measured().end["polls"], 2);
    let ((), traces) = captures(|| drop(Above.name()));
    assert_eq!(traces.len(), 0, "never polled");
}

mod told {
    //! Boxed futures that do not have their arguments any more when they begin.
    use super::*;

    /// Its statements give the name of an argument to something else, and use up another.
    #[profile_span(name = "before {x} {y}")]
    #[record_scalar("result of {x}")]
    #[record_scalar("number {#}")]
    pub(super) fn shadowed(x: String, y: &str) -> Pin<Box<dyn Future<Output = usize> + Send>> {
        use std::convert::identity;
        let x = x.len() + y.len();
        span("prepared").end();
        Box::pin(async move {
            turn().await;
            span("inside").end();
            identity(x)
        })
    }

    #[measured(name = "of {x}", step = x.len(), items = list.len(), tags(first = list[0], y = y))]
    #[record_scalar("result of {x}")]
    pub(super) fn measured_one(
        x: String,
        list: Vec<u32>,
        y: &str,
    ) -> Pin<Box<dyn Future<Output = Result<u32, String>> + Send>> {
        let parsed = y.parse::<u32>().map_err(|error| format!("{x}: {error}"));
        drop(x);
        let sum: u32 = list.into_iter().sum();
        Box::pin(async move {
            turn().await;
            span("inside").end();
            Ok(sum + parsed?)
        })
    }

    /// The future keeps nothing of what was lent to the call.
    #[profile_span(name = "lent {x} {y.0}")]
    pub(super) fn lent(x: &str, y: &(u32, u32)) -> Pin<Box<dyn Future<Output = ()>>> {
        Box::pin(async move {
            span("inside").end();
        })
    }

    #[profile_span(name = "patterns {a}")]
    pub(super) fn patterns<'a>(
        a: &'a str,
        #[record_stats] (b, mut c): (Tensor, Tensor),
        #[record_scalar("d")] ref d: u32,
        (e, _): (u32, u32),
    ) -> Pin<Box<dyn Future<Output = usize> + Send + 'a>> {
        let e = e + 1;
        Box::pin(async move {
            c = (&b + c).expect("a tensor");
            turn().await;
            c.rank() + *d as usize + e as usize + a.len() - 1
        })
    }
}

#[test]
fn a_boxed_future_tells_of_its_arguments_as_they_were_passed() {
    let ((), trace) = region(|| {
        let future = told::shadowed("abc".to_owned(), &String::from("de"));
        assert_eq!(wait(future), 5);
        wait(told::lent(&String::from("x"), &(7, 8)));
    });
    assert_eq!(
        trace.tree(),
        "region*\n  prepared\n  before abc de\n    = result of abc\n    = number 0\n    inside\n  lent x 7\n    inside\n"
    );
    let (value, trace) = capture(|| wait(told::measured_one("abc".to_owned(), vec![4, 5], "6")));
    assert_eq!(value, Ok(15));
    assert_eq!(trace.tree(), "of abc*\n  = result of abc\n  inside\n");
    assert_eq!(trace.meta()["capture_step"], 3);
    assert_eq!(trace.meta()["tags"]["first"], "4");
    assert_eq!(trace.meta()["tags"]["y"], "6");
    let x = Tensor::new(1.0_f32, &Device::Cpu).expect("a tensor");
    let (value, trace) = region(|| wait(told::patterns("a", (x.clone(), x.clone()), 2, (3, 4))));
    assert_eq!(value, 6);
    assert_eq!(
        trace.tree(),
        "region*\n  patterns a\n    = (b, mut c)/0\n    = (b, mut c)/1\n    = d\n"
    );
}

trait Native {
    async fn load(&mut self, by: u32) -> u32;
    #[profile_span]
    async fn load_twice(&mut self) -> u32 {
        self.load(1).await;
        self.load(2).await
    }
}

impl Native for Client {
    #[profile_span(name = "load {by}")]
    async fn load(&mut self, by: u32) -> u32 {
        turn().await;
        self.id += by;
        self.id
    }
}

#[test]
fn async_functions_of_traits_are_futures() {
    let mut client = Client { id: 7 };
    let (value, trace) = region(|| wait(client.load_twice()));
    assert_eq!(value, 10);
    assert_eq!(
        trace.tree(),
        "region*\n  Client::load_twice\n    load 1\n    load 2\n"
    );
}

#[profile_span(name = "eager")]
fn eager(seen: &Cell<u32>) -> impl Future<Output = u32> + '_ {
    span("at the call").end();
    seen.set(seen.get() + 1);
    async move {
        turn().await;
        span("at the poll").end();
        seen.get()
    }
}

#[profile_span(name = "with handle")]
fn with_handle() -> (impl Future<Output = u32>, Arc<()>) {
    (std::future::ready(5), Arc::new(()))
}

#[test]
fn a_function_that_returns_a_future_is_a_call() {
    let seen = Cell::new(0);
    let (value, trace) = region(|| {
        let future = eager(&seen);
        assert_eq!(seen.get(), 1, "the eager part runs at the call");
        drop(with_handle());
        wait(future)
    });
    assert_eq!(value, 1);
    assert_eq!(
        trace.tree(),
        "region*\n  eager\n    at the call\n  with handle\n  at the poll\n"
    );
    assert!(trace.span("eager").end["polls"].is_null());
}

#[measured]
#[record_scalar("free")]
async fn free(x: u64, _name: String) -> u64 {
    let y = x + 1;
    turn().await;
    y * 2
}

#[profile_step(backward, name = "generic {x}", detached)]
async fn generic<T: std::fmt::Display + Send>(x: T) -> String {
    turn().await;
    x.to_string()
}

#[profile_span]
#[record_stats("kept")]
async fn tensor(x: Tensor) -> candle_core::Result<Tensor> {
    turn().await;
    x.sqr()
}

fn is_free<T: Send + 'static>(value: T) -> T {
    value
}

fn is_send<T: Send>(value: T) -> T {
    value
}

#[test]
fn futures_stay_send_and_static() {
    let ((), traces) = captures(|| {
        assert_eq!(wait(is_free(free(1, String::new()))), 4);
        assert_eq!(wait(is_free(generic(5))), "5");
        let x = Tensor::new(3_f32, &Device::Cpu).expect("a tensor");
        let squared = wait(is_free(tensor(x))).expect("a tensor");
        assert_eq!(squared.to_scalar::<f32>().expect("a number"), 9.0);
        let client = Client { id: 1 };
        assert_eq!(wait(is_send(client.ask("a"))), Ok(1));
        let task = std::thread::spawn(|| wait(free(2, String::new())));
        assert_eq!(task.join().expect("no panic"), 6);
    });
    assert_eq!(traces.len(), 2, "the measured ones");
}

#[test]
fn each_instantiation_of_a_generic_future_is_a_span() {
    let ((), trace) = region(|| {
        wait(async {
            tokio::join!(generic(1_u8), generic("text"));
        });
    });
    assert_eq!(
        trace.tree(),
        "region*\n  generic 1 backward\n  generic text backward\n"
    );
}
