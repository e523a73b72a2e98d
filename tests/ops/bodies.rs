//! Bodies of every kind with `ops`: they compile, and give what they give without.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use candle_core::{DType, Device, Module, Result, Tensor, Var};
use candle_profiler::profile_span;
use tests::capturing::region;

fn ones(rows: usize, columns: usize) -> Tensor {
    Tensor::ones((rows, columns), DType::F32, &Device::Cpu).expect("a tensor")
}

/// Inference from what is expected of a call's value.
#[profile_span(ops(stats))]
fn inference(xs: &[f32]) -> f32 {
    let n: f32 = xs.iter().sum();
    let all: Vec<f32> = xs.iter().map(|x| x + 1.0).collect();
    let parsed: u8 = "7".parse().unwrap();
    let text: String = 'a'.into();
    let map: HashMap<_, _> = all.iter().map(|x| (x.to_bits(), *x)).collect();
    let boxed: Box<dyn Debug> = Box::new(n);
    let shared: Arc<dyn Fn(f32) -> f32> = Arc::new(|x| x * 2.0);
    let locked: Mutex<Box<dyn Debug>> = Mutex::new(Box::new(text));
    let cow: Cow<'_, str> = "x".into();
    let closure: Box<dyn Fn(&str) -> usize> = Box::new(|s| s.len());
    let sum = shared(n) + f32::from(parsed) + closure(&cow) as f32 + map.len() as f32;
    drop((boxed, locked));
    sum + all.iter().fold(0.0, |a, b| a + b)
}

/// What `&` hints at is not what its operand is.
#[profile_span(ops(stats))]
fn dereferenced(var: &Var) -> Result<f32> {
    fn total(x: &Tensor) -> Result<f32> {
        x.sum_all()?.to_scalar()
    }
    fn make(var: &Var) -> Var {
        var.clone()
    }
    let held = Arc::new(var.clone());
    let a = total(&make(var))?;
    let b = total(&held.as_ref().clone())?;
    let c: &Tensor = &make(var);
    let text: &str = &String::from("ab").replace('a', "b");
    let slice: &[u8] = &text.as_bytes().to_vec();
    let nested: &Mutex<Box<dyn Debug>> = &Mutex::new(Box::new(1));
    drop(nested.lock().unwrap());
    let negated = -total(&make(var))?;
    Ok(a + b + total(c)? + slice.len() as f32 + negated)
}

struct Layer {
    weight: Tensor,
    hidden: Vec<Tensor>,
    name: String,
}

impl Module for Layer {
    #[profile_span(ops(stats))]
    fn forward(&self, xs: &Tensor) -> Result<Tensor> {
        let mut x = xs.matmul(&self.weight)?;
        for (index, hidden) in self.hidden.iter().enumerate() {
            x = if index % 2 == 0 {
                (x.broadcast_add(hidden)? * 2.0)?
            } else {
                match hidden.rank() {
                    1 => x.broadcast_mul(hidden)?,
                    rank if rank > 5 => candle_core::bail!("rank {rank} of {}", self.name),
                    _ => (&x + hidden)?,
                }
            };
        }
        Ok(x)
    }
}

impl Layer {
    /// References, writing receivers, two-phase borrows.
    #[profile_span(ops)]
    fn grow(&mut self, more: &[Tensor]) -> &mut Tensor {
        let count = self.hidden.len();
        self.hidden.extend(more.iter().cloned());
        self.hidden
            .insert(self.hidden.len() - 1, self.weight.clone());
        self.hidden.swap_remove(self.hidden.len() - 1);
        self.name.push_str(&format!("{count}"));
        let longest = |a: &str, b: &str| a.len().max(b.len());
        let _ = longest(self.name.as_str(), "b");
        *self.name.as_mut_string() += "x";
        self.hidden.last_mut().expect("one")
    }

    #[profile_span(ops)]
    fn first<'a>(&'a self, other: &'a Tensor) -> &'a Tensor {
        let pick = |x: &'a Tensor| -> &'a Tensor { x };
        self.hidden
            .first()
            .map_or_else(|| pick(other), |first| pick(first))
    }

    #[profile_span(ops)]
    fn shapes(&self) -> impl Iterator<Item = Vec<usize>> + '_ {
        self.hidden.iter().map(|x| x.dims().to_vec())
    }
}

trait AsMutString {
    fn as_mut_string(&mut self) -> &mut String;
}

impl AsMutString for String {
    fn as_mut_string(&mut self) -> &mut String {
        self
    }
}

/// Jumps, blocks, labels, patterns, constants, what never returns.
#[profile_span(ops(stats))]
fn jumps(x: &Tensor, limit: usize) -> Result<usize> {
    const SIZE: usize = 3;
    trait Same {
        fn same(self) -> Self;
    }
    impl Same for usize {
        fn same(self) -> Self {
            self
        }
    }
    let array = [[1usize; SIZE]; { SIZE - 1 }];
    let rows = 'outer: loop {
        for (at, row) in array.iter().enumerate() {
            let Some(&first) = row.first() else {
                unreachable!("{at}")
            };
            if let Some(last) = row.last().copied().filter(|_| first == 1)
                && last < limit
            {
                break 'outer row.len() + last.same();
            }
            while let Ok(y) = x.narrow(0, at, SIZE)
                && y.rank() > 9
            {
                continue 'outer;
            }
        }
        break 0;
    };
    let inline = const { 1usize.wrapping_add(2) };
    let value = 'block: {
        if limit > 100 {
            break 'block x.dim(0)?;
        }
        // SAFETY: the text is ASCII.
        unsafe { std::str::from_utf8_unchecked(b"four").len() }
    };
    let range = (0..rows.min(limit)).rev().upto(..=2).count() + (1..).take(2).count();
    if limit == 77 {
        std::process::exit(77);
    }
    let or_exit = if limit < 1000 {
        value
    } else {
        std::process::exit(1)
    };
    Ok(match (rows, or_exit) {
        (0, _) | (_, 0) => 0,
        (a @ 1..=9, b) => a + b + inline + range,
        (a, b) if a == b && x.rank() == 2 => return Ok(a),
        _ => usize::MAX,
    })
}

trait Chained {
    fn upto(self, range: std::ops::RangeToInclusive<usize>) -> std::ops::Range<usize>;
}

impl<I: Iterator<Item = usize>> Chained for I {
    fn upto(self, range: std::ops::RangeToInclusive<usize>) -> std::ops::Range<usize> {
        0..self.count() + range.end
    }
}

/// Macros are left alone; generics, casts, structs, tuples and fields are not mistaken for calls.
#[profile_span(ops(stats))]
fn forms<T: Into<f64> + Copy>(x: &Tensor, scale: T) -> Result<(Tensor, f64)> {
    #[derive(Clone, Default)]
    struct Holder {
        inner: (Option<Tensor>, f64),
        call: Option<fn(f64) -> f64>,
    }
    fn twice(x: f64) -> f64 {
        x * 2.0
    }
    let factor = scale.into() as f32 as f64;
    let mut holder = Holder {
        inner: (Some(x.affine(factor, 0.0)?), twice(factor)),
        ..Default::default()
    };
    holder.call = Some(twice as fn(f64) -> f64);
    holder.inner.1 += (holder.call.unwrap())(1.0) - -1f64 * 2.;
    let Holder { inner: (y, n), .. } = holder.clone();
    let y = y.ok_or_else(|| candle_core::Error::Msg(format!("{n}")))?;
    let less = n < factor && n > 0.0 || !(y.rank() << 1 > 1);
    let texts = vec![format!("{:?}", y.shape()), stringify!(a.b()).to_owned()];
    assert_eq!(texts.len(), 2, "{}", texts.join(","));
    let z = <Tensor as Clone>::clone(&y);
    let z = Tensor::stack(&[&z, &y], 0)?.sum(0)?;
    let mut parts = z.chunk(2, 1)?.into_iter();
    let (a, b) = (parts.next().unwrap(), parts.next().unwrap());
    let total = [&a, &b]
        .iter()
        .try_fold(a.zeros_like()?, |sum, part| sum + *part)?;
    Ok((total, if less { n } else { -n }))
}

/// A future keeps what it was, `Send` and all.
#[profile_span(ops(stats))]
async fn waiting(x: Tensor) -> Result<Tensor> {
    async fn later<T>(value: T) -> T {
        value
    }
    let y = later(x.relu()?).await.add(&later(x.clone()).await)?;
    let block = async { y.sqr() };
    let z = block.await?;
    later(z.sum_all()?).await.affine(1.0, later(2.0).await)
}

use std::ops::Add;

macro_rules! called {
    ($x:expr, $method:ident($($argument:expr),*)) => {
        $x.$method($($argument),*)
    };
    (product $a:expr, $b:expr) => {
        #[profile_span(ops)]
        fn product() -> i32 {
            $a * $b - twice($a)
        }
    };
}

fn twice(x: i32) -> i32 {
    2 * x
}

called!(product 1 + 2, 3 + 4);

#[profile_span(ops)]
fn never(fail: bool) -> std::result::Result<u8, String> {
    fn fails() -> ! {
        panic!("never")
    }
    let value: u8 = if fail { fails() } else { 3 };
    Ok(value)
}

fn all() -> Result<Vec<f64>> {
    let x = ones(4, 4);
    let var = Var::from_tensor(&x)?;
    let mut layer = Layer {
        weight: x.clone(),
        hidden: vec![
            ones(1, 4),
            Tensor::ones(4, DType::F32, &Device::Cpu)?,
            ones(4, 4),
        ],
        name: "layer".to_owned(),
    };
    let mut found = vec![
        f64::from(inference(&[1.0, 2.0])),
        f64::from(dereferenced(&var)?),
    ];
    let y = layer.forward(&x)?;
    found.push(f64::from(y.sum_all()?.to_scalar::<f32>()?));
    *layer.grow(&[x.clone()]) = ones(1, 1);
    found.push(layer.shapes().map(|shape| shape.len()).sum::<usize>() as f64);
    found.push(layer.first(&x).elem_count() as f64);
    found.push(layer.name.len() as f64);
    found.push(jumps(&x, 9)? as f64);
    let (total, n) = forms(&x, 1.5f32)?;
    found.push(f64::from(total.sum_all()?.to_scalar::<f32>()?) + n);
    fn is_send<T: Send>(value: T) -> T {
        value
    }
    let waited = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime")
        .block_on(is_send(waiting(x.clone())))?;
    found.push(f64::from(waited.to_scalar::<f32>()?));
    found.push(f64::from(product()));
    found.push(f64::from(never(false).unwrap()));
    found.push(called!(x, elem_count()) as f64);
    Ok(found)
}

#[test]
fn any_body_gives_what_it_gave() {
    let expected = [3.0 * 2.0 + 7.0 + 1.0 + 2.0 + 5.0, 16.0 * 3.0 + 2.0 - 16.0];
    tests::capturing::folder();
    let plain = all().expect("tensors");
    assert_eq!(plain[..2], expected);
    let (recorded, trace) = region(all);
    assert_eq!(recorded.expect("tensors"), plain);
    assert!(!trace.kind("op").is_empty());
}
