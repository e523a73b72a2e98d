//! Calls whose texts alone are worth more than the smallest budget.

use std::pin::Pin;
use std::task::{Context, Waker};

use anyhow::Result;
use candle_core::{DType, Device, Tensor, Var};
use candle_profiler::candle::GradientCapturePlan;
use candle_profiler::{
    GradientFamilyContract, backward, current, measure_with, measured, profile_span, record_scalar,
    span,
};

/// A text of 900 bytes that are six times as many in a file.
fn text(number: u32) -> String {
    format!("{number}{}", "\u{1}".repeat(900))
}

/// Two calls: of a name the default captures the second.
fn twice(work: impl Fn() -> Result<()>) -> Result<()> {
    for _ in 0..2 {
        // The program goes on where a call fails.
        let _ = measure_with("step", &work);
    }
    Ok(())
}

#[profile_span(name = "{name}")]
async fn held(name: String) {
    std::future::pending::<()>().await;
}

/// So many futures with names of their own are open at once.
pub(crate) fn futures(number: u32) -> Result<()> {
    twice(|| {
        let futures = (0..number).map(|number| Box::pin(held(text(number))));
        let mut futures: Vec<Pin<Box<_>>> = futures.collect();
        let mut context = Context::from_waker(Waker::noop());
        for future in &mut futures {
            let _ = future.as_mut().poll(&mut context);
        }
        Ok(())
    })
}

/// So many threads with long names record a span each.
pub(crate) fn threads(number: u32) -> Result<()> {
    twice(|| {
        let handle = current();
        for number in 0..number {
            let handle = handle.clone();
            let work = move || {
                let _entered = handle.enter();
                let _span = span("work");
            };
            let thread = std::thread::Builder::new()
                .name(text(number).repeat(6))
                .spawn(work)?;
            thread.join().map_err(|_| anyhow::anyhow!("a panic"))?;
        }
        Ok(())
    })
}

/// So many labels, and then a failure with a long reason.
pub(crate) fn reason(number: u32) -> Result<()> {
    let long = "l".repeat(200);
    twice(|| {
        for number in 0..number {
            record_scalar(&format!("label/{number}/{long}"), &1.0);
        }
        anyhow::bail!("{}", text(0).repeat(5))
    })
}

#[measured(name = "step", gradients = plan)]
fn promised_step(plan: &GradientCapturePlan, loss: &Tensor) -> Result<()> {
    let _ = backward(loss)?;
    for _ in 0..2000 {
        let _span = span("work");
    }
    Ok(())
}

/// A list of so many gradients is promised, and what comes after them takes all the room that is left.
pub(crate) fn gradients(number: u32) -> Result<()> {
    let named = |number| -> Result<(String, Var)> {
        let var = Var::ones((), DType::F32, &Device::Cpu)?;
        Ok((format!("net.layer{number}.weight"), var))
    };
    let vars: Vec<(String, Var)> = (0..number).map(named).collect::<Result<_>>()?;
    let mut loss = Tensor::zeros((), DType::F32, &Device::Cpu)?;
    for (_, var) in &vars {
        loss = (loss + var.as_tensor())?;
    }
    let family = vec![GradientFamilyContract::active("net", 1)];
    let plan = GradientCapturePlan::from_named_vars("root", vars, |_| "net".into(), family)?;
    for _ in 0..2 {
        promised_step(&plan, &loss)?;
    }
    Ok(())
}

/// So many spans of one place, each with a name of its own.
pub(crate) fn names(number: u32) -> Result<()> {
    twice(|| {
        for number in 0..number {
            let _layer = span(format!("layer {number}"));
        }
        Ok(())
    })
}
