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
